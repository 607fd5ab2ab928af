package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

func how(flags C.uint32_t) world.How {
	return world.How{Async: flags&C.GSHMEM_ASYNC != 0, Notify: flags&C.GSHMEM_NOTIFY != 0}
}

// hand gives a started request to the caller: nothing when it is over, else a handle and pending.
func hand(p *pending, out *C.uint64_t) error {
	if ended, _ := p.r.Wait(0); ended && !p.r.Notifies() {
		_, err := p.settle()
		if err == nil {
			*out = 0
		}
		return err
	}
	return handPending(p, out)
}

// handPending gives the request a handle whatever its state.
func handPending(p *pending, out *C.uint64_t) error {
	h := all.requests.add(p)
	*out = C.uint64_t(h)
	p.r.Name(h)
	return status.Pending
}

// handWords is hand for requests whose result words matter: an ended one keeps its handle, so that they can be fetched. One that
// notifies is handed out as pending even so, because its end is reported under its handle.
func handWords(p *pending, out *C.uint64_t) error {
	if ended, _ := p.r.Wait(0); ended && !p.r.Notifies() {
		if _, err := p.settle(); err != nil {
			return err
		}
		*out = C.uint64_t(all.requests.add(p))
		return nil
	}
	return handPending(p, out)
}

//export goshmem_request_wait
func goshmem_request_wait(h C.uint64_t, slice C.int64_t) C.int32_t {
	return guard(func() error {
		p, ok := all.requests.get(uint64(h))
		if !ok {
			return status.New(status.StaleHandle, "request_wait", "no request has handle %#x: it was released, or never was", uint64(h))
		}
		if ended, _ := p.r.Wait(time.Duration(slice)); !ended {
			return status.Pending
		}
		_, err := p.settle()
		return err
	})
}

//export goshmem_request_result
func goshmem_request_result(h C.uint64_t, out *C.uint64_t, n C.uint32_t) C.int32_t {
	return guard(func() error {
		p, ok := all.requests.get(uint64(h))
		if !ok {
			return status.New(status.StaleHandle, "request_result", "no request has handle %#x", uint64(h))
		}
		if ended, _ := p.r.Wait(0); !ended {
			return status.New(status.InvalidArgument, "request_result", "the request has not finished; wait for it first")
		}
		words, err := p.settle()
		if err != nil {
			return err
		}
		p.fetched.Store(true)
		for i := range min(int(n), len(words)) {
			unsafe.Slice(out, int(n))[i] = C.uint64_t(words[i])
		}
		return nil
	})
}

//export goshmem_request_release
func goshmem_request_release(h C.uint64_t) C.int32_t {
	return guard(func() error {
		p, ok := all.requests.remove(uint64(h))
		if !ok {
			return status.New(status.StaleHandle, "request_release", "no request has handle %#x: it was released, or never was", uint64(h))
		}
		p.release()
		return nil
	})
}

//export goshmem_completions_wait
func goshmem_completions_wait(wh C.uint64_t, slice C.int64_t, out *C.uint64_t, max C.uint32_t, n *C.uint32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "completions_wait")
		if err != nil {
			return err
		}
		if max == 0 {
			return status.New(status.InvalidArgument, "completions_wait", "max is 0; give room for at least one request")
		}
		rs, err := w.Completions(time.Duration(slice), int(max))
		if err != nil {
			return err
		}
		if len(rs) == 0 {
			return status.Pending
		}
		for i, r := range rs {
			unsafe.Slice(out, int(max))[i] = C.uint64_t(r.Name(0))
		}
		*n = C.uint32_t(len(rs))
		return nil
	})
}
