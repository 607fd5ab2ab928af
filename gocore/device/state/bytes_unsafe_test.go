package state

import "unsafe"

func bytesOf(at uintptr, n int) []byte { return unsafe.Slice((*byte)(pointerTo(at)), n) }
