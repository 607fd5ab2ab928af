package state

import (
	"sync/atomic"
	"unsafe"
)

// fill copies b to pinned host memory.
func fill(at uintptr, b []byte) { copy(unsafe.Slice((*byte)(pointerTo(at)), len(b)), b) }

// setWord writes a word of pinned host memory, which a copy that is queued afterwards reads.
func setWord(at uintptr, v int32) { atomic.StoreInt32((*int32)(pointerTo(at)), v) }

// pointerTo must stay a call: inlined, it makes go 1.26 compile some copies wrongly.
//
//go:noinline
func pointerTo(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
