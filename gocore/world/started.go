package world

import (
	"context"
	"fmt"
	"os"
	"runtime/debug"
	"time"

	"goshmem/gocore/status"
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
		value, err := contained(ctx, f)
		r.finish([4]uint64{value}, err)
	}()
	r.Wait(slice)
	return r
}

// contained makes an error of a panic, a bug's or a wild address', as package capi does on its callers' threads: out of a goroutine
// it would end the process.
func contained(ctx context.Context, f func(ctx context.Context) (uint64, error)) (value uint64, err error) {
	defer func() {
		if r := recover(); r != nil {
			err = status.New(status.Internal, "", "internal error: %v (a wild address of the caller's, or a bug in shmem; please report it with this text)\n%s", r, debug.Stack())
			fmt.Fprintln(os.Stderr, "shmem: "+err.Error())
		}
	}()
	return f(ctx)
}
