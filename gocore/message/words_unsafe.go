package message

import (
	"sync/atomic"
	"unsafe"
)

// loadWord reads a word of my area that a peer writes by PutSignal, with acquire: what the peer put before is visible after.
func loadWord(area []byte, off uint64) uint64 {
	return atomic.LoadUint64((*uint64)(unsafe.Pointer(&area[off : off+8][0])))
}
