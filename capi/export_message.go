package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"
)

//export goshmem_send
func goshmem_send(th C.uint64_t, data unsafe.Pointer, n C.uint64_t, dst C.int32_t, tag C.int64_t, flags C.uint32_t, timeout, slice C.int64_t, request *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "send")
		if err != nil {
			return err
		}
		bytes, err := bytesAt("send", data, n)
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
		bytes, err := bytesAt("recv", data, n)
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
