package hot

/*
#cgo CFLAGS: -O3 -Wall -Wextra -I${SRCDIR}/../../capi/include
#cgo LDFLAGS: -lpthread
#include "hot_inline.h"
*/
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/status"
)

// Kind says what may be done with a segment's addresses.
type Kind uint32

// The kinds of segments. Device memory is never dereferenced by this package.
const (
	Host   Kind = C.HOT_KIND_HOST
	Device Kind = C.HOT_KIND_DEVICE
	Data   Kind = C.HOT_KIND_DATA
)

// World is the table of one world in C memory. Between New and Publish one goroutine fills it; SetBase, SetWhole, MarkDead and
// RaiseAlarm may be called at any time until Free. The slices given to it must be memory outside the Go heap (or pinned) and
// stay mapped until Close has returned true.
type World struct {
	c  *C.hot_world
	me int
	n  int
}

// New takes a table slot for PE me of n. It fails when 255 worlds live in this process.
func New(me, n int, id uint64) (*World, error) {
	c := C.hot_world_new(C.int32_t(me), C.int32_t(n), C.uint64_t(id))
	if c == nil {
		return nil, status.New(status.NoMemory, "init", "no table for a world of %d PEs as PE %d: out of memory, or more than %d worlds in this process (finalize some)",
			n, me, C.HOT_MAX_WORLDS-1)
	}
	return &World{c: c, me: me, n: n}, nil
}

// Me is the PE this table belongs to.
func (w *World) Me() int { return w.me }

// N is the number of PEs.
func (w *World) N() int { return w.n }

// Pointer is the hot_world, for package capi and the C executor.
func (w *World) Pointer() unsafe.Pointer { return unsafe.Pointer(w.c) }

// AddSegment names a range of this PE's memory whose twins exist at every PE; off is the offset of its first byte in segment
// id. The first host segment is the heap. Before Publish only. It returns the index for SetBase.
func (w *World) AddSegment(mem []byte, off uint64, id uint32, kind Kind) (int, error) {
	return w.addSegment(pointer(mem), uint64(len(mem)), off, id, kind)
}

// AddDeviceSegment is AddSegment for addresses that this process cannot read.
func (w *World) AddDeviceSegment(low uintptr, length, off uint64, id uint32) (int, error) {
	return w.addSegment(*(*unsafe.Pointer)(unsafe.Pointer(&low)), length, off, id, Device)
}

// OpenDevice adds the heap of a device, at any time once, and says where memory of devices may lie in this process: local buffers
// there are never followed by the hot path.
func (w *World) OpenDevice(low uintptr, length uint64, windowLow uintptr, windowSpan uint64) error {
	if C.hot_world_device(w.c, C.uintptr_t(low), C.uint64_t(length), C.uintptr_t(windowLow), C.uint64_t(windowSpan)) < 0 {
		return status.New(status.Unsupported, "device_open", "a world has at most %d segments", C.HOT_MAX_SEG)
	}
	return nil
}

func (w *World) addSegment(low unsafe.Pointer, length, off uint64, id uint32, kind Kind) (int, error) {
	i := C.hot_world_segment(w.c, low, C.uint64_t(length), C.uint64_t(off), C.uint32_t(id), C.uint32_t(kind))
	if i < 0 {
		return -1, status.New(status.Unsupported, "init", "a world has at most %d segments", C.HOT_MAX_SEG)
	}
	return int(i), nil
}

// SetBase says where pe's twin of a segment is mapped here; nil when it is not.
func (w *World) SetBase(segment, pe int, mem []byte) {
	C.hot_world_base(w.c, C.uint32_t(segment), C.int32_t(pe), pointer(mem))
}

// SetWhole says where the whole of pe's segment 0 (header, scratch, heap) is mapped here; nil when it is not.
func (w *World) SetWhole(pe int, mem []byte) { C.hot_world_whole(w.c, C.int32_t(pe), pointer(mem)) }

// SetCrowded tells waits that there are more PEs than cores: they yield at once. Before Publish only.
func (w *World) SetCrowded(crowded bool) { w.c.crowded = flag(crowded) }

// SetCache says how many bytes the last-level cache holds, instead of what the system says: collectives that touch more store past it.
// For tests; before Publish only.
func (w *World) SetCache(bytes uint64) { w.c.cache = C.uint64_t(bytes) }

// SetDirect tells fence, quiet and barriers that nothing is outstanding outside mapped memory. At any time.
func (w *World) SetDirect(direct bool) { C.hot_world_direct(w.c, flag(direct)) }

// Publish makes the table findable and returns its handle. Everything stored in the table before is visible to who uses it.
func (w *World) Publish() uint64 { return uint64(C.hot_world_publish(w.c)) }

// Refuse sends every operation from now on to Go, which says why: the job was aborted. Waiters look what happened. Close comes later.
func (w *World) Refuse() { C.hot_world_refuse(w.c) }

// Close makes the handle stale, wakes waiters with an alarm and waits until no thread is inside of the world, up to timeout (negative: no
// limit). It reports whether that was reached; it may be repeated.
func (w *World) Close(timeout time.Duration) bool {
	C.hot_world_close(w.c)
	return C.hot_world_drain(w.c, C.int64_t(timeout)) == C.HOT_OK
}

// Free gives the slot back. Only after Close returned true, or when never published; the World must not be used any more.
func (w *World) Free() {
	if w.c != nil {
		C.hot_world_free(w.c)
		w.c = nil
	}
}

// MarkDead makes every operation on pe leave the hot path, and every waiter look at its peers.
func (w *World) MarkDead(pe int) { C.hot_world_mark_dead(w.c, C.int32_t(pe)) }

// Dead reports whether pe was marked dead.
func (w *World) Dead(pe int) bool {
	return pe >= 0 && pe < w.n && C.hot_world_is_dead(w.c, C.int32_t(pe)) != 0
}

// RaiseAlarm makes every waiter of this process look what happened.
func (w *World) RaiseAlarm() { C.hot_world_raise(w.c) }

// RaisePE raises the alarm of a mapped peer; it does nothing for an unmapped one.
func (w *World) RaisePE(pe int) { C.hot_world_raise_pe(w.c, C.int32_t(pe)) }

// RingSelf wakes the sleeping waiters of this PE.
func (w *World) RingSelf() { C.hot_world_ring_pe(w.c, C.int32_t(w.me)) }

// RingPE wakes the sleeping waiters of a mapped peer; it does nothing for an unmapped one.
func (w *World) RingPE(pe int) { C.hot_world_ring_pe(w.c, C.int32_t(pe)) }

// SetForked marks this process as a forked child: every call is refused from now on. For tests; package capi sets it in C.
func SetForked(forked bool) { C.hot_set_forked(C.int(flag(forked))) }

func flag(b bool) C.int32_t {
	if b {
		return 1
	}
	return 0
}

func pointer(mem []byte) unsafe.Pointer { return unsafe.Pointer(unsafe.SliceData(mem)) }
