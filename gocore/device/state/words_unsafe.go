package state

import (
	"sync/atomic"
	"unsafe"
)

// fill copies b to pinned host memory.
func fill(at uintptr, b []byte) { copy(unsafe.Slice((*byte)(pointerTo(at)), len(b)), b) }

// setWord writes a word of pinned host memory, which a copy that is queued afterwards reads.
func setWord(at uintptr, v int32) { atomic.StoreInt32((*int32)(pointerTo(at)), v) }

// wordAt reads 8 bytes of pinned host memory that a copy which was waited for has written.
func wordAt(at uintptr) uint64 { return *(*uint64)(pointerTo(at)) }

// pointerTo must stay a call: inlined, it makes go 1.26 compile some copies wrongly.
//
//go:noinline
func pointerTo(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
