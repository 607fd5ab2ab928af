package hot

// #include "exec.h"
// #include <stdlib.h>
import "C"

import (
	"runtime"
	"time"
	"unsafe"

	"goshmem/gocore/status"
)

// Team is the table of one team in C memory. NewTeam, SetMember and the rest up to Publish are for one goroutine; afterwards slab
// and stage change only between Acquire and Leave.
type Team struct {
	c *C.hot_team
	n int

	published, closed bool
}

// NewTeam takes a table slot for rank me of a team of n members of w.
func NewTeam(w *World, me, n int) (*Team, error) {
	c := C.hot_team_new(w.c, C.int32_t(me), C.int32_t(n))
	if c == nil {
		return nil, status.New(status.NoMemory, "team", "no table for a team of %d members: out of memory, or more than %d teams in this process (destroy some)", n, C.HOT_MAX_TEAMS-1)
	}
	return &Team{c: c, n: n}, nil
}

// SetMember says which PE a rank is and where its control block lies: in its segment, and here (nil when not mapped).
func (t *Team) SetMember(rank, pe int, off uint64, control []byte) {
	unsafe.Slice(t.c.pe, t.n)[rank] = C.int32_t(pe)
	unsafe.Slice(t.c.ctl_off, t.n)[rank] = C.uint64_t(off)
	unsafe.Slice(t.c.ctl, t.n)[rank] = (*C.uint8_t)(pointer(control))
}

// SetMapped says that every member's memory is mapped here, so that the C executor may run.
func (t *Team) SetMapped(mapped bool) { t.c.mapped = flag(mapped) }

// SetTimeout sets the default of the team's operations in ns; negative: none.
func (t *Team) SetTimeout(ns int64) { t.c.timeout_ns = C.int64_t(ns) }

// Timeout is the default of the team's operations.
func (t *Team) Timeout() int64 { return int64(t.c.timeout_ns) }

// SetSlabHalf sets the size of one half of the slab, the same on all members. Before Publish.
func (t *Team) SetSlabHalf(half uint64) { t.c.slab_half = C.uint64_t(half) }

// SetSlab gives the team its slab of two halves, at off in this PE's segment.
func (t *Team) SetSlab(mem []byte, off uint64) {
	t.c.slab, t.c.slab_off = (*C.uint8_t)(pointer(mem)), C.uint64_t(off)
}

// SetStage leases staging to the team, or takes it away (nil).
func (t *Team) SetStage(mem []byte, off uint64) {
	t.c.stage, t.c.stage_off, t.c.stage_cap = (*C.uint8_t)(pointer(mem)), C.uint64_t(off), C.uint64_t(len(mem))
}

// SetQueued publishes how many asynchronous operations stand before a synchronous one.
func (t *Team) SetQueued(n int) { C.hot_team_set_queued(t.c, C.uint32_t(n)) }

// SetSeq makes the next operation the one after seq. For tests of the wrap; all members do it while nothing runs.
func (t *Team) SetSeq(seq uint32) { t.c.seq = C.uint32_t(seq) }

// SetCasts is SetSeq for one-way operations: so many were begun.
func (t *Team) SetCasts(casts uint64) { C.hot_team_set_casts(t.c, C.uint64_t(casts)) }

// Seq is the last operation begun; for the holder, or when the team is dead.
func (t *Team) Seq() uint32 { return uint32(t.c.seq) }

// Number is the place of the last operation begun among all of the team, one-way ones included; for whom Seq is.
func (t *Team) Number() uint32 { return uint32(t.c.seq) + uint32(t.c.casts) }

// Casts is how many one-way operations were begun; for whom Seq is.
func (t *Team) Casts() uint64 { return uint64(t.c.casts) }

// Publish gives the team its handle; operations may start.
func (t *Team) Publish() uint64 {
	t.published = true
	return uint64(C.hot_team_publish(t.c))
}

// Acquire takes the team as an operation does; false while one runs. Leave gives it back.
func (t *Team) Acquire() bool { return C.hot_team_acquire(t.c) != 0 }

// Leave ends what Acquire began.
func (t *Team) Leave() { C.hot_team_leave(t.c) }

// Poison is the status the team died of, OK while it is healthy.
func (t *Team) Poison() status.Code { return status.Code(C.hot_team_poisoned(t.c)) }

// PoisonAll marks the team dead for every member that is mapped here; the first reason wins.
func (t *Team) PoisonAll(code status.Code, by int, seq uint32) {
	C.hot_team_poison(t.c, C.int32_t(code), C.int32_t(by), C.uint32_t(seq))
}

// Close makes the handle stale and frees the table once no operation is inside; false when one still is at the end of the
// patience (the slot then stays taken, which is safe). Closing twice is fine.
func (t *Team) Close(patience time.Duration) bool {
	if t.closed { // the slot may be another team's by now
		return true
	}
	C.hot_team_close(t.c)
	end := time.Now().Add(patience)
	for t.published && !t.Acquire() {
		if time.Now().After(end) {
			return false
		}
		runtime.Gosched()
	}
	C.hot_team_drop_plans(t.c)
	t.c.stage = nil
	C.hot_team_free(t.c)
	t.closed = true
	return true
}

// Buffer is C memory, for what a begun collective points to.
type Buffer struct{ p unsafe.Pointer }

// NewBuffer gives n zeroed bytes; Free ends them.
func NewBuffer(n int) Buffer { return Buffer{C.calloc(1, C.size_t(max(n, 1)))} }

// Bytes is the memory.
func (b Buffer) Bytes(n int) []byte { return unsafe.Slice((*byte)(b.p), n) }

// Address is where it lies.
func (b Buffer) Address() uintptr { return uintptr(b.p) }

// Free ends it; a zero Buffer is fine.
func (b Buffer) Free() { C.free(b.p) }
