package tcp

import (
	"context"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// getWindow is how many chunks of one get may be under way.
const getWindow = 8

// Put sends src in chunks. It returns when all of them are sealed; see Transport.Quiet for when they have arrived.
func (t *Transport) Put(ctx context.Context, dst fabric.Addr, src []byte) error {
	if dst.PE == t.c.Me {
		return t.putHere(dst.Ref, src)
	}
	l, err := t.link(dst.PE)
	if err != nil {
		return err
	}
	return l.put(ctx, dst.Ref, src)
}

func (l *link) put(ctx context.Context, ref fabric.Ref, src []byte) error {
	for len(src) > 0 {
		part := src[:min(len(src), chunk)]
		l.issued.Add(1)
		if err := l.send(ctx, header{kind: reqPut, ref: ref}, part); err != nil {
			return err
		}
		ref += fabric.Ref(len(part))
		src = src[len(part):]
	}
	return nil
}

// Get asks for chunks, a few at a time, and returns when all have come.
func (t *Transport) Get(ctx context.Context, dst []byte, src fabric.Addr) error {
	if src.PE == t.c.Me {
		return t.getHere(dst, src.Ref)
	}
	l, err := t.link(src.PE)
	if err != nil {
		return err
	}
	var window []*reply
	ref := src.Ref
	for len(dst) > 0 || len(window) > 0 {
		if len(dst) > 0 && len(window) < getWindow {
			part := dst[:min(len(dst), chunk)]
			r, err := l.ask(ctx, header{kind: reqGet, ref: ref, size: uint32(len(part))}, part)
			if err != nil {
				l.abandon(window)
				return err
			}
			window = append(window, r)
			ref += fabric.Ref(len(part))
			dst = dst[len(part):]
			continue
		}
		if _, err := l.answer(ctx, window[0]); err != nil {
			l.abandon(window)
			return err
		}
		window = window[1:]
	}
	return nil
}

// abandon makes sure that no later reply touches the destinations of a get that failed.
func (l *link) abandon(window []*reply) {
	for _, r := range window {
		l.drop(r.id)
		r.mu.Lock()
		r.abandoned = true
		r.mu.Unlock()
	}
}

// Atomic has the target update the word, and waits for the old value unless op.NoReply.
func (t *Transport) Atomic(ctx context.Context, at fabric.Addr, op fabric.Atomic) (uint64, error) {
	if at.PE == t.c.Me {
		old, err := t.c.Memory.Atomic(at.Ref, op)
		t.c.Memory.Ring()
		return old, err
	}
	l, err := t.link(at.PE)
	if err != nil {
		return 0, err
	}
	h := header{kind: reqAtomic, op: byte(op.Op), width: byte(op.Width), ref: at.Ref, operand: op.Operand, compare: op.Compare}
	if op.NoReply {
		h.flags = noReply
		l.issued.Add(1)
		return 0, l.send(ctx, h, nil)
	}
	r, err := l.ask(ctx, h, nil)
	if err != nil {
		return 0, err
	}
	return l.answer(ctx, r)
}

// PutSignal sends the data, then the signal, on the same connection; the target serves them in this order.
func (t *Transport) PutSignal(ctx context.Context, dst fabric.Addr, src []byte, sig fabric.Addr, op fabric.SignalOp, value uint64) error {
	if sig.PE != dst.PE {
		return status.At(status.InvalidArgument, "put_signal", sig.PE, "the signal is on another PE than the data (PE %d)", dst.PE)
	}
	if dst.PE == t.c.Me {
		return t.putSignalHere(dst.Ref, src, sig.Ref, op, value)
	}
	l, err := t.link(dst.PE)
	if err != nil {
		return err
	}
	if err := l.takeRefusal(); err != nil {
		return err
	}
	if err := l.put(ctx, dst.Ref, src); err != nil {
		return err
	}
	l.issued.Add(1)
	return l.send(ctx, header{kind: reqSignal, op: byte(op), ref: sig.Ref, operand: value}, nil)
}

// Fence has nothing to order: a PE's operations on one other take effect in the order given. It reports a put that was refused.
func (t *Transport) Fence(_ context.Context, pe int) error {
	if pe == t.c.Me {
		return nil
	}
	l, err := t.link(pe)
	if err != nil {
		return err
	}
	return l.takeRefusal()
}

// Quiet flushes every connection with unconfirmed operations and waits for the acknowledgements. The first error is returned, after all
// have been waited for. That operations on a lost PE did not arrive is reported once.
func (t *Transport) Quiet(ctx context.Context) error {
	type flush struct {
		l      *link
		r      *reply
		issued uint64
	}
	var first error
	note := func(err error) {
		if first == nil {
			first = err
		}
	}
	var flushes []flush
	for i := range t.links {
		l := t.links[i].Load()
		if l == nil || l.quiet() {
			continue
		}
		issued := l.issued.Load()
		r, err := l.ask(ctx, header{kind: reqFlush}, nil)
		if err == nil {
			flushes = append(flushes, flush{l, r, issued})
			continue
		}
		note(err)
		l.settle(issued)
	}
	for _, f := range flushes {
		if _, err := f.l.answer(ctx, f.r); err != nil {
			note(err)
			f.l.settle(f.issued)
			continue
		}
		f.l.confirm(f.issued)
		note(f.l.takeRefusal())
	}
	return first
}

// settle takes what a lost peer will never confirm off the account: it has been reported once, and survivors go on.
func (l *link) settle(issued uint64) {
	if l.failure() != nil {
		l.confirm(issued)
	}
}

// quiet says that nothing issued on this link is unconfirmed.
func (l *link) quiet() bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.issued.Load() == l.confirmed && l.refused == nil
}

func (l *link) confirm(issued uint64) {
	l.mu.Lock()
	l.confirmed = max(l.confirmed, issued)
	l.mu.Unlock()
}

func (t *Transport) putHere(ref fabric.Ref, src []byte) error {
	mem, err := t.c.Memory.Span(ref, uint64(len(src)))
	if err != nil {
		return err
	}
	fabric.Store(mem, src)
	t.c.Memory.Ring()
	return nil
}

func (t *Transport) getHere(dst []byte, ref fabric.Ref) error {
	mem, err := t.c.Memory.Span(ref, uint64(len(dst)))
	if err != nil {
		return err
	}
	fabric.Load(dst, mem)
	return nil
}

func (t *Transport) putSignalHere(ref fabric.Ref, src []byte, sig fabric.Ref, op fabric.SignalOp, value uint64) error {
	update, err := fabric.SignalUpdate(op, value)
	if err != nil {
		return err
	}
	if len(src) > 0 {
		if err := t.putHere(ref, src); err != nil {
			return err
		}
	}
	_, err = t.c.Memory.Atomic(sig, update)
	t.c.Memory.Ring()
	return err
}
