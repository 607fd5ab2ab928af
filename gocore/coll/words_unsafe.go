package coll

import (
	"sync/atomic"
	"unsafe"
)

// loadWord32 reads a shared word of an own control block; pairs with the stores of peers, by C or by a transport.
func loadWord32(block []byte, off uint64) uint32 {
	return atomic.LoadUint32((*uint32)(unsafe.Pointer(&block[off])))
}

// loadWord64 is loadWord32 for 8 bytes.
func loadWord64(block []byte, off uint64) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&block[off])))
}

func storeWord64(block []byte, off, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&block[off])), v)
}

// bytesAt is the caller's memory at an address that a Call carries.
func bytesAt(addr uintptr, n uint64) []byte {
	if n == 0 {
		return nil
	}
	return unsafe.Slice((*byte)(*(*unsafe.Pointer)(unsafe.Pointer(&addr))), n)
}
