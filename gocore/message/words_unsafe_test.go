package message

import (
	"sync/atomic"
	"unsafe"
)

func storeWord(b []byte, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(&b[0])), v)
}
