// Package shm is the fabric over memory that this process has mapped: operations are plain copies and atomic instructions.
//
// It serves the Go side (collectives over any fabric, messages, the slow path); C callers use the hot path on the same memory. A store is
// visible to the target when it is made, so Quiet is a fence; nothing is ever pending. Every operation that changes memory rings its PE.
package shm

import (
	"context"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// Config says what is mapped. The functions may be called from any goroutine and must not block.
type Config struct {
	N int
	// Segment is a PE's segment as mapped here, nil when that one is not. It must stay mapped until Close has returned.
	Segment func(pe int, seg uint8) []byte
	// Ring wakes a PE's waiters; nil where nobody waits on a bell.
	Ring func(pe int)
	// Dead gives the error of a PE that died or left, nil while it lives; may be nil. Memory of a dead PE is still there, but
	// operations on it are errors.
	Dead func(pe int) error
	// Copy copies large blocks; nil: the runtime's own. It must store all bytes before it returns, in any order.
	Copy func(dst, src []byte)
}

// Transport implements fabric.Transport over mapped memory.
type Transport struct{ c Config }

// New makes a transport; it holds nothing.
func New(c Config) *Transport {
	if c.Ring == nil {
		c.Ring = func(int) {}
	}
	if c.Dead == nil {
		c.Dead = func(int) error { return nil }
	}
	if c.Copy == nil {
		c.Copy = func(dst, src []byte) { copy(dst, src) }
	}
	return &Transport{c}
}

// large is from where on the configured copy is used.
const large = 4096

// Name is "shm".
func (t *Transport) Name() string { return "shm" }

// Abilities: plain instructions reach the memory, and atomics need no help.
func (t *Transport) Abilities() fabric.Abilities {
	return fabric.Abilities{LoadStore: true, NativeAtomics: true, Authenticated: true}
}

// span is the memory at a place, or an error that names the PE.
func (t *Transport) span(op string, at fabric.Addr, n uint64) ([]byte, error) {
	if at.PE < 0 || at.PE >= t.c.N {
		return nil, status.At(status.InvalidPE, op, at.PE, "PEs are 0 to %d", t.c.N-1)
	}
	if err := t.c.Dead(at.PE); err != nil {
		return nil, err
	}
	mem := t.c.Segment(at.PE, at.Ref.Seg())
	if mem == nil {
		return nil, status.At(status.PeerUnreachable, op, at.PE, "its segment %d is not mapped here", at.Ref.Seg())
	}
	off, size := at.Ref.Off(), uint64(len(mem))
	if off > size || n > size-off {
		return nil, status.At(status.NotSymmetric, op, at.PE, "[%d, +%d) is outside of its segment %d of %d bytes", off, n, at.Ref.Seg(), size)
	}
	return mem[off : off+n : off+n], nil
}

// Put stores src. The data are there when it returns.
func (t *Transport) Put(_ context.Context, dst fabric.Addr, src []byte) error {
	mem, err := t.span("put", dst, uint64(len(src)))
	if err != nil {
		return err
	}
	if len(src) >= large {
		t.c.Copy(mem, src)
	} else {
		fabric.Store(mem, src)
	}
	t.c.Ring(dst.PE)
	return nil
}

// Get loads into dst.
func (t *Transport) Get(_ context.Context, dst []byte, src fabric.Addr) error {
	mem, err := t.span("get", src, uint64(len(dst)))
	if err != nil {
		return err
	}
	if len(dst) >= large {
		t.c.Copy(dst, mem)
	} else {
		fabric.Load(dst, mem)
	}
	return nil
}

// Atomic updates the word in place.
func (t *Transport) Atomic(_ context.Context, at fabric.Addr, op fabric.Atomic) (uint64, error) {
	mem, err := t.span("atomic", at, uint64(max(op.Width, 0)))
	if err != nil {
		return 0, err
	}
	old, err := fabric.Update(mem, op)
	if err != nil {
		return 0, about(at.PE, err)
	}
	if op.Op != fabric.Fetch {
		t.c.Ring(at.PE)
	}
	return old, nil
}

// PutSignal stores src, then updates the signal: the update releases the data to whoever acquires the signal.
func (t *Transport) PutSignal(ctx context.Context, dst fabric.Addr, src []byte, sig fabric.Addr, op fabric.SignalOp, value uint64) error {
	if sig.PE != dst.PE {
		return status.At(status.InvalidArgument, "put_signal", sig.PE, "the signal is on another PE than the data (PE %d)", dst.PE)
	}
	update, err := fabric.SignalUpdate(op, value)
	if err != nil {
		return err
	}
	word, err := t.span("put_signal", sig, 8)
	if err != nil {
		return err
	}
	if sig.Ref.Off()%8 != 0 {
		return status.At(status.Misaligned, "put_signal", sig.PE, "the signal is at offset %d, which is not a multiple of 8", sig.Ref.Off())
	}
	if len(src) > 0 {
		mem, err := t.span("put_signal", dst, uint64(len(src)))
		if err != nil {
			return err
		}
		t.c.Copy(mem, src)
	}
	if _, err := fabric.Update(word, update); err != nil {
		return about(dst.PE, err)
	}
	t.c.Ring(dst.PE)
	return nil
}

// Fence orders stores before it against stores after it.
func (t *Transport) Fence(_ context.Context, pe int) error {
	if pe < 0 || pe >= t.c.N {
		return status.At(status.InvalidPE, "fence", pe, "PEs are 0 to %d", t.c.N-1)
	}
	fabric.Barrier()
	return t.c.Dead(pe)
}

// Quiet is a fence: every store was made when its call returned.
func (t *Transport) Quiet(context.Context) error {
	fabric.Barrier()
	return nil
}

// Close does nothing: the memory belongs to the caller.
func (t *Transport) Close() error { return nil }

// about adds the PE to an error that does not name one.
func about(pe int, err error) error {
	if e, ok := err.(*status.Error); ok && e.PE < 0 {
		named := *e
		named.PE = pe
		return &named
	}
	return err
}
