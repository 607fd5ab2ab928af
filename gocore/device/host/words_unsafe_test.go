package host

import "unsafe"

// view is host memory that a test may follow.
func view(at uintptr, n int) []byte { return unsafe.Slice((*byte)(pointerTo(at)), n) }

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
