// Package faulty wraps a transport and makes chosen calls fail or wait: what tests of everything above the fabric use to see how
// it behaves when a transfer goes wrong.
package faulty

import (
	"context"
	"sync"

	"goshmem/gocore/fabric"
)

// Op names a method of a transport.
type Op string

// The operations that can be made to fail.
const (
	Any       Op = ""
	Put       Op = "put"
	Get       Op = "get"
	Atomic    Op = "atomic"
	PutSignal Op = "put_signal"
	Fence     Op = "fence"
	Quiet     Op = "quiet"
)

// AnyPE matches every PE, and Quiet, which has none.
const AnyPE = -1

// Fault says what happens to which call.
type Fault struct {
	Op    Op              // Any: every operation counts
	PE    int             // AnyPE: whichever PE
	Nth   int             // the first call that is hit, from 1 on; 0: the first
	Times int             // how many calls are hit; 0: one, negative: all from Nth on
	Hold  <-chan struct{} // the call waits until this is closed (or its context ends); nil: no wait
	Err   error           // the call fails with this instead of being made; nil: it is made after the wait
	After bool            // the call is made, and fails with Err afterwards (the effect is there, the answer is lost)

	seen int
}

// Transport is a fabric.Transport with faults.
type Transport struct {
	fabric.Transport

	mu     sync.Mutex
	faults []*Fault
	calls  map[Op]int
}

// New wraps a transport. Faults are tried in order; the first that matches a call and is due takes it.
func New(inner fabric.Transport, faults ...Fault) *Transport {
	t := &Transport{Transport: inner, calls: map[Op]int{}}
	for _, f := range faults {
		t.Inject(f)
	}
	return t
}

// Inject adds a fault; its count starts now.
func (t *Transport) Inject(f Fault) {
	if f.Nth == 0 {
		f.Nth = 1
	}
	if f.Times == 0 {
		f.Times = 1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.faults = append(t.faults, &f)
}

// Calls is how often an operation was called, Any for all together.
func (t *Transport) Calls(op Op) int {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.calls[op]
}

// due counts a call and finds the fault that takes it.
func (t *Transport) due(op Op, pe int) *Fault {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.calls[op]++
	t.calls[Any]++
	var hit *Fault
	for _, f := range t.faults {
		if f.Op != Any && f.Op != op || f.PE != AnyPE && f.PE != pe {
			continue
		}
		f.seen++
		if hit == nil && f.seen >= f.Nth && (f.Times < 0 || f.seen < f.Nth+f.Times) {
			hit = f
		}
	}
	return hit
}

// run makes a call with its fault, if it has one.
func (t *Transport) run(ctx context.Context, op Op, pe int, call func() error) error {
	f := t.due(op, pe)
	if f == nil {
		return call()
	}
	if f.Hold != nil {
		select {
		case <-f.Hold:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	if f.Err != nil && !f.After {
		return f.Err
	}
	if err := call(); err != nil {
		return err
	}
	return f.Err
}

// Put implements fabric.Transport.
func (t *Transport) Put(ctx context.Context, dst fabric.Addr, src []byte) error {
	return t.run(ctx, Put, dst.PE, func() error { return t.Transport.Put(ctx, dst, src) })
}

// Get implements fabric.Transport.
func (t *Transport) Get(ctx context.Context, dst []byte, src fabric.Addr) error {
	return t.run(ctx, Get, src.PE, func() error { return t.Transport.Get(ctx, dst, src) })
}

// Atomic implements fabric.Transport.
func (t *Transport) Atomic(ctx context.Context, at fabric.Addr, op fabric.Atomic) (old uint64, err error) {
	err = t.run(ctx, Atomic, at.PE, func() error {
		old, err = t.Transport.Atomic(ctx, at, op)
		return err
	})
	return old, err
}

// PutSignal implements fabric.Transport.
func (t *Transport) PutSignal(ctx context.Context, dst fabric.Addr, src []byte, sig fabric.Addr, op fabric.SignalOp, value uint64) error {
	return t.run(ctx, PutSignal, dst.PE, func() error { return t.Transport.PutSignal(ctx, dst, src, sig, op, value) })
}

// Fence implements fabric.Transport.
func (t *Transport) Fence(ctx context.Context, pe int) error {
	return t.run(ctx, Fence, pe, func() error { return t.Transport.Fence(ctx, pe) })
}

// Quiet implements fabric.Transport.
func (t *Transport) Quiet(ctx context.Context) error {
	return t.run(ctx, Quiet, AnyPE, func() error { return t.Transport.Quiet(ctx) })
}
