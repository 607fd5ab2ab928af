package segment

import (
	"os"
	"sync/atomic"
	"unsafe"
)

// loadWord reads the 8-byte word at off with acquire.
func loadWord(b []byte, off int) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&b[off : off+8][0])))
}

// storeWord writes the 8-byte word at off with release.
func storeWord(b []byte, off int, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[off : off+8][0])), v)
}

// address is where the bytes lie in this process.
func address(b []byte) uintptr { return uintptr(unsafe.Pointer(unsafe.SliceData(b))) }

// touch maps every page of b by reading a word of it, atomically: peers may be writing. b starts at a page.
func touch(b []byte) {
	step := os.Getpagesize()
	for at := 0; at+8 <= len(b); at += step {
		loadWord(b, at)
	}
}
