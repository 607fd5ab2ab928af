// Package fabric moves bytes between the segments of PEs.
//
// A [Transport] is one way of doing it (shared memory, TLS over TCP, ...), one folder each. Callers address memory by
// [Addr]: a PE and a reference into its segments; nothing above this package assumes that memory is mapped. [Router] picks
// a transport per peer and is a Transport itself.
//
// Ordering, the same on every transport: operations of one process to one PE take effect in the order given wherever a
// Fence or a signal asks for it; a PutSignal's data, and all Puts to that PE before it, are visible before its signal.
// Quiet returns when everything this process issued has taken effect.
package fabric

import "context"

// Ref is a place in a PE's segments: segment id in the top byte, offset below it (hot.h: hot_ref).
type Ref uint64

// MakeRef joins a segment id and an offset.
func MakeRef(seg uint8, off uint64) Ref { return Ref(uint64(seg)<<56 | off) }

// Seg is the segment id.
func (r Ref) Seg() uint8 { return uint8(r >> 56) }

// Off is the offset within the segment.
func (r Ref) Off() uint64 { return uint64(r) & (1<<56 - 1) }

// Addr is memory of some PE.
type Addr struct {
	PE  int
	Ref Ref
}

// AtomicOp is an atomic update; the numbers are those of gshmem.h (GSHMEM_A_*).
type AtomicOp uint8

// The atomic updates. Each returns the old value.
const (
	Set AtomicOp = iota + 1
	Fetch
	Swap
	CompareSwap
	Add
	Inc
	And
	Or
	Xor
)

// SignalOp says how a signal word changes; the numbers are those of gshmem.h (GSHMEM_SIGNAL_*).
type SignalOp uint8

// The signal updates.
const (
	SignalSet SignalOp = iota
	SignalAdd
)

// Atomic is one atomic update of a word of Width 4 or 8 bytes. NoReply says that the caller does not want the old value.
type Atomic struct {
	Op      AtomicOp
	Width   int
	Operand uint64
	Compare uint64
	NoReply bool
}

// Abilities says what a transport can do beyond moving bytes, and why it was or was not chosen.
type Abilities struct {
	LoadStore     bool // peers' memory can be read and written by plain instructions
	StreamOrdered bool // operations can be queued to a device stream
	NativeAtomics bool // atomics need no help of the target's process
	Encrypted     bool
	Authenticated bool
}

// Transport reaches some PEs. All methods may be called from any goroutine. An error names the PE; once a PE is lost,
// every later operation on it fails the same way. ctx bounds the call; its cause is returned when it ends it.
type Transport interface {
	// Name is what shmem.info() shows: "shm", "tcp", ...
	Name() string
	Abilities() Abilities
	// Put copies src to dst. src may be reused on return; the data are visible by the rules of the package.
	Put(ctx context.Context, dst Addr, src []byte) error
	// Get fills dst from src and returns when it is filled.
	Get(ctx context.Context, dst []byte, src Addr) error
	// Atomic updates one word; it is atomic against every other Atomic and signal on that word, on any transport.
	Atomic(ctx context.Context, at Addr, op Atomic) (old uint64, err error)
	// PutSignal puts, then updates the 8-byte word sig of the same PE. Empty src still signals.
	PutSignal(ctx context.Context, dst Addr, src []byte, sig Addr, op SignalOp, value uint64) error
	// Fence orders what was issued to pe before it against what is issued after.
	Fence(ctx context.Context, pe int) error
	// Quiet returns when everything issued so far has taken effect at its target.
	Quiet(ctx context.Context) error
	Close() error
}

// Memory is this PE's own segments as transports that serve remote requests see them.
type Memory interface {
	// Span is the n bytes at ref, or an error when they are not all inside one segment's shareable part.
	Span(ref Ref, n uint64) ([]byte, error)
	// Atomic updates a word of own memory, atomically against the C hot path.
	Atomic(ref Ref, op Atomic) (old uint64, err error)
	// Ring wakes this PE's waiters; called after remote data or signals were stored.
	Ring()
}
