package acl

import "unsafe"

func bytesOf(at uintptr, n int) []byte { return unsafe.Slice((*byte)(pointerTo(at)), n) }

func addressOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }
