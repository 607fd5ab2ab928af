package device

import (
	"sync"

	"goshmem/gocore/memory"
	"goshmem/gocore/status"
)

// Parts is what a symmetric heap on a device keeps of its PEs: this PE's memory, and the peers' as it is mapped here. V is what the device
// knows of one part. It is all of a [Heap] but the cards, and a Heap embeds it. All methods may be called from any goroutine.
//
// States: open -> closed. Closed stays closed; closing twice is fine.
type Parts[V any] struct {
	me         int
	size, page uint64
	end        func(pe int, at uintptr, v V) error

	mu     sync.Mutex // guards what follows
	parts  []part[V]  // of each PE; at is 0 where it is not mapped
	closed bool
}

type part[V any] struct {
	at uintptr
	v  V
}

// NewParts is the heap of n PEs before its own part is there. bytes is rounded up to whole pages. end gives one part back: a peer's is
// unmapped, the own one freed as well.
func NewParts[V any](bytes, page uint64, me, n int, end func(pe int, at uintptr, v V) error) (*Parts[V], error) {
	if bytes == 0 || n <= 0 || me < 0 || me >= n {
		return nil, status.New(status.InvalidArgument, "device heap", "%d bytes, PE %d of %d", bytes, me, n)
	}
	return &Parts[V]{me: me, size: (bytes + page - 1) / page * page, page: page, end: end, parts: make([]part[V], n)}, nil
}

// Own notes this PE's part, once, before anybody else sees the heap.
func (p *Parts[V]) Own(at uintptr, v V) { p.parts[p.me] = part[V]{at, v} }

// Me is the PE whose heap it is.
func (p *Parts[V]) Me() int { return p.me }

// Kind implements [memory.Region].
func (p *Parts[V]) Kind() memory.Kind { return memory.Device }

// Size implements [memory.Region].
func (p *Parts[V]) Size() uint64 { return p.size }

// Page implements [memory.Region].
func (p *Parts[V]) Page() uint64 { return p.page }

// Bytes is nil: the CPU does not reach device memory.
func (p *Parts[V]) Bytes() []byte { return nil }

// Commit checks bounds only: the memory is there from the start.
func (p *Parts[V]) Commit(off, n uint64) error { return p.within("commit", off, n) }

// Decommit checks bounds only: the memory stays, with what is in it.
func (p *Parts[V]) Decommit(off, n uint64) error { return p.within("decommit", off, n) }

func (p *Parts[V]) within(op string, off, n uint64) error {
	if off > p.size || n > p.size-off {
		return status.New(status.NotSymmetric, op, "%d bytes at offset %d of a device heap of %d", n, off, p.size)
	}
	return nil
}

// Base implements [Heap].
func (p *Parts[V]) Base(pe int) uintptr {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pe < 0 || pe >= len(p.parts) {
		return 0
	}
	return p.parts[pe].at
}

// Take maps a peer's part by the function given, which runs while nothing else happens to the heap.
func (p *Parts[V]) Take(pe int, mapped func() (at uintptr, v V, err error)) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed || pe < 0 || pe >= len(p.parts) || pe == p.me || p.parts[pe].at != 0 {
		return status.At(status.InvalidArgument, "map device heap", pe, "a heap of %d PEs, closed %v; a peer's part is mapped once", len(p.parts), p.closed)
	}
	at, v, err := mapped()
	if err == nil {
		p.parts[pe] = part[V]{at, v}
	}
	return err
}

// Unmap implements [Heap]. Unmapping what is not mapped does nothing.
func (p *Parts[V]) Unmap(pe int) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if pe < 0 || pe >= len(p.parts) || pe == p.me {
		return status.At(status.InvalidPE, "unmap device heap", pe, "a peer of %d PEs is wanted", len(p.parts))
	}
	return p.endLocked(pe)
}

// endLocked gives one part back, when it is there. Needs mu.
func (p *Parts[V]) endLocked(pe int) error {
	gone := p.parts[pe]
	if gone.at == 0 {
		return nil
	}
	p.parts[pe] = part[V]{}
	return p.end(pe, gone.at, gone.v)
}

// End unmaps the peers, then gives back this PE's own part, and tells the first failure. Work that uses them must be over, here and on
// the peers.
func (p *Parts[V]) End() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.closed {
		return nil
	}
	p.closed = true
	var first error
	for turn := range len(p.parts) {
		pe := (p.me + 1 + turn) % len(p.parts) // the own part last
		if err := p.endLocked(pe); err != nil && first == nil {
			first = err
		}
	}
	return first
}
