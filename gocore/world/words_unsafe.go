package world

import (
	"sync/atomic"
	"unsafe"
)

// baseOf is the address of mapped bytes.
func baseOf(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// loadWord reads an aligned shared word. Acquire: the partner is the release of the fabric's atomics.
func loadWord(b []byte) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b[:8]))))
}

// addressOf turns an address of mapped memory, outside of Go's heap, into a pointer.
func addressOf(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }
