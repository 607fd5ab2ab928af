package hot

// #include "hot_inline.h"
import "C"

import (
	"sync/atomic"
	"unsafe"

	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// HeaderInfo is what the owner of a segment writes into its header, once.
type HeaderInfo struct {
	Me, N      int
	Nonce      [16]byte
	Size, Page uint64
	ScratchOff uint64
	ScratchLen uint64
	HeapOff    uint64
	HeapLen    uint64
}

// InitHeader fills the header at the start of an all-zero segment. Its magic is stored last: a mapper sees all of it or none.
func InitHeader(segment []byte, info HeaderInfo) {
	C.hot_header_init(header(segment), C.int32_t(info.Me), C.int32_t(info.N), (*C.uint8_t)(unsafe.Pointer(&info.Nonce[0])),
		C.uint64_t(info.Size), C.uint64_t(info.Page), C.uint64_t(info.ScratchOff), C.uint64_t(info.ScratchLen),
		C.uint64_t(info.HeapOff), C.uint64_t(info.HeapLen))
}

// ReadHeader checks a mapped header against the nonce its owner told us, and reads it.
func ReadHeader(segment []byte, nonce [16]byte) (HeaderInfo, error) {
	if len(segment) < layout.HeaderSize {
		return HeaderInfo{}, status.New(status.Internal, "map", "a segment of %d bytes has no room for a header of %d", len(segment), layout.HeaderSize)
	}
	h := header(segment)
	switch C.hot_header_check(h, (*C.uint8_t)(unsafe.Pointer(&nonce[0]))) {
	case 0:
	case 2:
		return HeaderInfo{}, status.New(status.VersionSkew, "map", "the peer's segment has layout version %d and line %d, ours is %d and %d: use one version of the library in a job",
			h.version, h.line, layout.Version, layout.Line)
	case 3:
		return HeaderInfo{}, status.New(status.PeerUnreachable, "map", "the segment found is not the peer's (its nonce differs)")
	default:
		return HeaderInfo{}, status.New(status.PeerUnreachable, "map", "the segment found is no segment of ours, or not initialised yet (magic %#x)", uint64(h.magic))
	}
	return HeaderInfo{Me: int(h.me), N: int(h.n), Nonce: nonce, Size: uint64(h.size), Page: uint64(h.page), ScratchOff: uint64(h.scratch_off),
		ScratchLen: uint64(h.scratch_len), HeapOff: uint64(h.heap_off), HeapLen: uint64(h.heap_len)}, nil
}

// Header is the shared part of a mapped segment's header. The zero Header is no header.
type Header struct{ h *C.hot_header }

// HeaderAt is the header at the start of a mapped segment.
func HeaderAt(segment []byte) Header { return Header{header(segment)} }

// Ring wakes the owner's sleeping waiters, if there may be any.
func (h Header) Ring() {
	if atomic.LoadUint32(word(h.h, layout.HdrWaiters)) != 0 {
		C.hot_ring(h.h)
	}
}

// Raise makes the owner's waiters look what happened.
func (h Header) Raise() { C.hot_raise(h.h) }

// Alarm counts how often the alarm was raised.
func (h Header) Alarm() uint32 { return atomic.LoadUint32(word(h.h, layout.HdrAlarm)) }

// Abort stores that the job was aborted with this code by that PE, then raises the alarm. The first abort stays.
func (h Header) Abort(code, by int32) {
	atomic.CompareAndSwapUint32(word(h.h, layout.HdrAbortBy), 0, uint32(by)+1)
	atomic.CompareAndSwapUint32(word(h.h, layout.HdrAbortCode), 0, uint32(code))
	h.Raise()
}

// Aborted is the code the job was aborted with (0: it was not) and by whom.
func (h Header) Aborted() (code, by int32) {
	code = int32(atomic.LoadUint32(word(h.h, layout.HdrAbortCode)))
	return code, int32(atomic.LoadUint32(word(h.h, layout.HdrAbortBy))) - 1
}

// SetClosing tells mappers that the owner has left the world.
func (h Header) SetClosing() { atomic.StoreUint32(word(h.h, layout.HdrClosing), 1) }

// Closing reports whether the owner has left the world.
func (h Header) Closing() bool { return atomic.LoadUint32(word(h.h, layout.HdrClosing)) != 0 }

func header(segment []byte) *C.hot_header {
	if len(segment) < layout.HeaderSize {
		panic("hot: segment shorter than its header")
	}
	return (*C.hot_header)(pointer(segment))
}

func word(h *C.hot_header, off uintptr) *uint32 { return (*uint32)(unsafe.Add(unsafe.Pointer(h), off)) }
