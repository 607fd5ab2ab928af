package world

import (
	"context"
	"time"
)

// Started runs a one-sided operation beside its caller, who waits for it in slices and may call it off. Released unfinished it ends at
// once, and has ended when Release returns: the caller's memory is not touched afterwards. Result word 0 is what f gives.
func (w *World) Started(slice time.Duration, f func(ctx context.Context) (uint64, error)) *Request {
	ctx, cancel := context.WithCancelCause(w.ctx)
	r := &Request{async: true, done: make(chan struct{}), name: make(chan uint64, 1)}
	r.cancel = func(why error) {
		cancel(why)
		<-r.done
	}
	go func() {
		defer cancel(nil)
		value, err := f(ctx)
		r.finish([4]uint64{value}, err)
	}()
	r.Wait(slice)
	return r
}
