package hot

// #include "hot_inline.h"
import "C"

import (
	"math"
	"unsafe"

	"goshmem/gocore/status"
)

// Result is what a step of the hot path ended with: one of these, or a negative status.Code.
type Result int32

// The results that are not errors.
const (
	OK       Result = C.HOT_OK
	Pending  Result = C.HOT_PENDING
	Slow     Result = C.HOT_SLOW
	NeedPlan Result = C.HOT_NEED_PLAN
)

// Code is the status of a failed step; OK for the results that are not errors.
func (r Result) Code() status.Code {
	if r < 0 {
		return status.Code(r)
	}
	return status.OK
}

// Forever is no deadline.
const Forever int64 = math.MaxInt64

// Now is CLOCK_MONOTONIC in ns, the clock of every deadline of this package.
func Now() int64 { return int64(C.hot_now()) }

// Wait is the state of one wait, which may be cut into slices. Reset before use; not for concurrent use.
type Wait struct{ c C.hot_wait }

// Reset begins a new wait that ends at deadline (Forever: never).
func (s *Wait) Reset(deadline int64) { s.c = C.hot_wait{deadline_ns: C.int64_t(deadline)} }

// Progress says that something waited for has happened: the wait goes on, attentive again.
func (s *Wait) Progress() {
	s.c.rounds, s.c.armed, s.c.started_ns, s.c.attentive_ns = 0, 0, 0, 0
}

// Deadline is what Reset was given.
func (s *Wait) Deadline() int64 { return int64(s.c.deadline_ns) }

// Seen is the last value WaitUntil looked at.
func (s *Wait) Seen() uint64 { return uint64(s.c.seen) }

// Turn is one turn of waiting: look at your word, call Turn, look again. OK: look again; Pending: until or the deadline has
// passed; Slow: an alarm this wait has not seen was raised, find out what happened. until 0 polls.
func (w *World) Turn(s *Wait, until int64) Result {
	return Result(C.hot_wait_turn(w.c, &s.c, C.int64_t(until)))
}

// Cmp is a comparison; the numbers are those of gshmem.h. Signed is or-ed in.
type Cmp int32

// The comparisons.
const (
	EQ     Cmp = C.HOT_CMP_EQ
	NE     Cmp = C.HOT_CMP_NE
	GT     Cmp = C.HOT_CMP_GT
	GE     Cmp = C.HOT_CMP_GE
	LT     Cmp = C.HOT_CMP_LT
	LE     Cmp = C.HOT_CMP_LE
	Signed Cmp = C.HOT_CMP_SIGNED
)

// WaitUntil waits until the word at the start of mem (1, 2, 4 or 8 bytes) compares to value; results as Turn, or an error code.
func (w *World) WaitUntil(mem []byte, cmp Cmp, value uint64, s *Wait, until int64) Result {
	return Result(C.hot_wait_until(w.c, pointer(mem), C.int(len(mem)), C.int(cmp), C.uint64_t(value), &s.c, C.int64_t(until)))
}

// WaitUntilAt is WaitUntil on an address that C handed in.
func (w *World) WaitUntilAt(word unsafe.Pointer, width int, cmp Cmp, value uint64, s *Wait, until int64) Result {
	return Result(C.hot_wait_until(w.c, word, C.int(width), C.int(cmp), C.uint64_t(value), &s.c, C.int64_t(until)))
}
