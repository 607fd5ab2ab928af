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

// storeWord writes an aligned shared word. Release; the partner is the acquire of loadWord.
func storeWord(b []byte, v uint64) {
	atomic.StoreUint64((*uint64)(unsafe.Pointer(unsafe.SliceData(b[:8]))), v)
}

// word is a word as it lies in memory.
func word(v uint64) []byte {
	b := make([]byte, 8)
	*(*uint64)(unsafe.Pointer(unsafe.SliceData(b))) = v
	return b
}

// addressOf turns an address of mapped memory, outside of Go's heap, into a pointer.
func addressOf(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// memoryAt is n bytes of the caller's memory at an address outside of Go's heap.
func memoryAt(at uintptr, n uint64) []byte {
	if n == 0 {
		return nil
	}
	const most = 1 << 47 // no address space holds more: the range check that follows refuses it, and Slice must not panic
	return unsafe.Slice((*byte)(addressOf(at)), int(min(n, most)))
}

// loadNarrow reads a word of 1, 2, 4 or 8 bytes that is aligned to its width. Acquire for 4 and 8.
func loadNarrow(at uintptr, width int) uint64 {
	p := addressOf(at)
	switch width {
	case 1:
		return uint64(*(*uint8)(p))
	case 2:
		return uint64(*(*uint16)(p))
	case 4:
		return uint64(atomic.LoadUint32((*uint32)(p)))
	}
	return atomic.LoadUint64((*uint64)(p))
}
