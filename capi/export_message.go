package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

// bytesAt is the caller's memory for the time of the call.
func bytesAt(op string, p unsafe.Pointer, n C.uint64_t) ([]byte, error) {
	if n == 0 {
		return nil, nil
	}
	if p == nil {
		return nil, status.New(status.InvalidArgument, op, "the address of %d bytes of this process is NULL", uint64(n))
	}
	const most = 1 << 47 // no address space holds more: the range check that follows refuses it, and Slice must not panic
	return unsafe.Slice((*byte)(p), int(min(uint64(n), most))), nil
}

// hostOnly is bytesAt for calls that take host memory only.
func hostOnly(w *world.World, op string, p unsafe.Pointer, n C.uint64_t) ([]byte, error) {
	if kind := w.KindOf(uintptr(p)); n != 0 && (kind == world.MemoryDevice || kind == world.MemoryOnDevice) {
		return nil, status.New(status.Unsupported, op, "%#x is device memory; copy it to host memory (gshmem_copy_on_stream), or use put and signals", uintptr(p))
	}
	return bytesAt(op, p, n)
}

//export goshmem_send
func goshmem_send(th C.uint64_t, data unsafe.Pointer, n C.uint64_t, dst C.int32_t, tag C.int64_t, flags C.uint32_t, timeout, slice C.int64_t, request *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "send")
		if err != nil {
			return err
		}
		bytes, err := hostOnly(t.World(), "send", data, n)
		if err != nil {
			return err
		}
		r, err := t.Send(bytes, int(dst), int64(tag), how(flags), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return hand(&pending{r: r}, request)
	})
}

//export goshmem_recv
func goshmem_recv(th C.uint64_t, data unsafe.Pointer, n C.uint64_t, src C.int32_t, tag C.int64_t, flags C.uint32_t, timeout, slice C.int64_t, request *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "recv")
		if err != nil {
			return err
		}
		bytes, err := hostOnly(t.World(), "recv", data, n)
		if err != nil {
			return err
		}
		r, err := t.Recv(bytes, int(src), int64(tag), how(flags), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(&pending{r: r}, request)
	})
}
