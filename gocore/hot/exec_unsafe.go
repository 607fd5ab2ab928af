package hot

/*
#include "exec.h"
#include <stdlib.h>

// Addresses come as integers: they may be of Go memory that the caller keeps, which cgo would not let a pointer say.
static hot_call call_of(uint32_t op, uint32_t dtype, uint32_t redop, int32_t root, uintptr_t in, uintptr_t out, uint64_t count, double scale,
                        const uint64_t *counts) {
  return (hot_call){op, dtype, redop, root, (const void *)in, (void *)out, count, scale, counts};
}
static int32_t begin_at(hot_coll *c, hot_team *t, uint32_t op, uint32_t dtype, uint32_t redop, int32_t root, uintptr_t in, uintptr_t out,
                        uint64_t count, double scale, const uint64_t *counts, int64_t deadline_ns, int queued) {
  hot_call a = call_of(op, dtype, redop, root, in, out, count, scale, counts);
  return hot_coll_begin(c, t, &a, deadline_ns, queued);
}
static int32_t check_at(hot_coll *c, int32_t n, int32_t me, uint32_t op, uint32_t dtype, uint32_t redop, int32_t root, uintptr_t in,
                        uintptr_t out, uint64_t count, double scale, const uint64_t *counts) {
  hot_call a = call_of(op, dtype, redop, root, in, out, count, scale, counts);
  return hot_call_check(c, n, me, &a);
}
*/
import "C"

import (
	"unsafe"

	"goshmem/gocore/status"
)

// Call is one collective as it is asked for; the numbers are those of gshmem.h.
type Call struct {
	Op, DType, RedOp, Root int
	In, Out                uintptr
	Count                  uint64
	Scale                  float64
	Counts                 []uint64
}

// Desc is what a member says of its collective.
type Desc struct {
	Op, DType, RedOp uint32
	Root             int32
	Count, Extra     uint64
}

// PlanKey is what a plan is for (exec.h: hot_plan_key).
type PlanKey struct {
	Op, Elem   uint32
	Root       int
	Mode       uint32
	Len, Pitch uint64
	Once       bool
}

// Spot is a place in a buffer of a member, Step a row of a plan (exec.h).
type Spot struct {
	Buf, Rank int32
	Off       uint64
}

// Step is a row of a plan (exec.h: hot_step).
type Step struct {
	Kind, Phase         uint32
	Peer                int32
	Len                 uint64
	Src, Own, Dst, Dst2 Spot
}

// Why a begin was refused (exec.h: HOT_WHY_*).
const (
	WhyNone    = C.HOT_WHY_NONE
	WhyOp      = C.HOT_WHY_OP
	WhyRoot    = C.HOT_WHY_ROOT
	WhyDType   = C.HOT_WHY_DTYPE
	WhyRedOp   = C.HOT_WHY_REDOP
	WhySize    = C.HOT_WHY_SIZE
	WhyOverlap = C.HOT_WHY_OVERLAP
	WhyNull    = C.HOT_WHY_NULL
	WhyCounts  = C.HOT_WHY_COUNTS
	WhyDevice  = C.HOT_WHY_DEVICE
	WhyTaken   = C.HOT_WHY_TAKEN
	WhySlab    = C.HOT_WHY_SLAB
	WhyStage   = C.HOT_WHY_STAGE
)

// InlineBytes is what travels with an arrival.
const InlineBytes = C.HOT_INLINE_BYTES

// Coll is a collective in C memory. One goroutine at a time; Free ends it.
type Coll struct {
	c      *C.hot_coll
	counts unsafe.Pointer
}

// NewColl gives a collective that has not begun.
func NewColl() *Coll { return &Coll{c: (*C.hot_coll)(C.calloc(1, C.sizeof_hot_coll))} }

// AdoptColl takes a begun collective over from C, with its table of counts; the original must not be used any more.
func AdoptColl(p unsafe.Pointer) *Coll {
	c := NewColl()
	*c.c = *(*C.hot_coll)(p)
	if v := c.c.call.counts; v != nil {
		n := int(c.c.team.n)
		if c.c.call.op == C.HOT_OP_ALL_TO_ALL_V {
			n *= 4
		}
		c.keepCounts(unsafe.Slice((*uint64)(v), n))
	}
	return c
}

func (c *Coll) keepCounts(v []uint64) {
	C.free(c.counts)
	c.counts = nil
	if v != nil {
		c.counts = C.malloc(C.size_t(8*len(v) + 8))
		copy(unsafe.Slice((*uint64)(c.counts), len(v)), v)
	}
	c.c.call.counts = (*C.uint64_t)(c.counts)
}

// Begin checks and arrives (exec.h: hot_coll_begin). Buffers stay where they are until the end.
func (c *Coll) Begin(t *Team, call Call, deadline int64, queued bool) Result {
	c.keepCounts(call.Counts)
	return Result(C.begin_at(c.c, t.c, C.uint32_t(call.Op), C.uint32_t(call.DType), C.uint32_t(call.RedOp), C.int32_t(call.Root),
		C.uintptr_t(call.In), C.uintptr_t(call.Out), C.uint64_t(call.Count), C.double(call.Scale), (*C.uint64_t)(c.counts), C.int64_t(deadline), C.int(flag(queued))))
}

// Run goes on until `until` (exec.h: hot_coll_run).
func (c *Coll) Run(until int64) Result { return Result(C.hot_coll_run(c.c, C.int64_t(until))) }

// GiveUp ends it unfinished and poisons the team everywhere.
func (c *Coll) GiveUp(code status.Code) { C.hot_coll_give_up(c.c, C.int32_t(code)) }

// Free ends the memory. A begun collective must have ended or been given up.
func (c *Coll) Free() {
	C.free(c.counts)
	C.free(unsafe.Pointer(c.c))
	c.c, c.counts = nil, nil
}

// Arrived says whether it has begun, Finished whether it has ended and Status how.
func (c *Coll) Arrived() bool { return c.c.arrived != 0 }

// Finished says whether it has ended.
func (c *Coll) Finished() bool { return c.c.state == C.HOT_COLL_FINISHED }

// Status is how it ended.
func (c *Coll) Status() status.Code { return status.Code(c.c.status) }

// Why is the reason of a refused begin.
func (c *Coll) Why() int { return int(c.c.why) }

// Seq is its place in the team's order.
func (c *Coll) Seq() uint32 { return uint32(c.c.seq) }

// Number is its place among all operations of the team, one-way ones included.
func (c *Coll) Number() uint32 { return uint32(c.c.number) }

// FP is the fingerprint it compares with the others'.
func (c *Coll) FP() uint32 { return uint32(c.c.fp) }

// Culprit is the rank a failure names (an abort: the PE), -1 when none.
func (c *Coll) Culprit() int { return int(c.c.culprit) }

// Missing has bit r for each rank r < 64 that was waited for when time was up.
func (c *Coll) Missing() uint64 { return uint64(c.c.missing) }

// Times are when it began and its deadline.
func (c *Coll) Times() (began, deadline int64) {
	return int64(c.c.began_ns), int64(c.c.wait.deadline_ns)
}

// Call is what was asked (without the counts).
func (c *Coll) Call() Call {
	a := &c.c.call
	return Call{Op: int(a.op), DType: int(a.dtype), RedOp: int(a.redop), Root: int(a.root), In: uintptr(a.in), Out: uintptr(a.out),
		Count: uint64(a.count), Scale: float64(a.scale)}
}

// Counts is the table of sizes, nil without.
func (c *Coll) Counts() []uint64 {
	n := int(c.c.team.n)
	switch {
	case c.counts == nil:
		return nil
	case c.c.call.op == C.HOT_OP_ALL_TO_ALL_V:
		n *= 4
	}
	return unsafe.Slice((*uint64)(c.counts), n)
}

// Desc is what this member said.
func (c *Coll) Desc() Desc { return *(*Desc)(unsafe.Pointer(&c.c.desc)) }

// PairOf is the first four words of the arrival line of a rank: what an all_to_all_v says to this member.
func (c *Coll) PairOf(rank int) [4]uint64 {
	var v [4]uint64
	C.hot_coll_pair(c.c, C.int32_t(rank), (*C.uint64_t)(unsafe.Pointer(&v)))
	return v
}

// Key is the plan it waits for after NeedPlan.
func (c *Coll) Key() PlanKey {
	k := C.hot_coll_key(c.c)
	return PlanKey{Op: uint32(k.op) &^ C.HOT_PLAN_ONCE, Elem: uint32(k.elem), Root: int(k.root), Mode: uint32(k.mode),
		Len: uint64(k.len), Pitch: uint64(k.pitch), Once: k.op&C.HOT_PLAN_ONCE != 0}
}

// Install gives it the plan of Key and keeps that in the team's cache.
func (c *Coll) Install(steps []Step, phases uint32) {
	p := (*C.hot_plan)(C.malloc(C.size_t(C.sizeof_hot_plan) + C.size_t(len(steps))*C.sizeof_hot_step))
	p.key, p.nsteps, p.phases = C.hot_coll_key(c.c), C.uint32_t(len(steps)), C.uint32_t(phases)
	rows := unsafe.Slice((*C.hot_step)(unsafe.Add(unsafe.Pointer(p), C.sizeof_hot_plan)), len(steps))
	for i, s := range steps {
		rows[i] = C.hot_step{kind: C.uint32_t(s.Kind), phase: C.uint32_t(s.Phase), peer: C.int32_t(s.Peer), len: C.uint64_t(s.Len),
			src: spot(s.Src), own: spot(s.Own), dst: spot(s.Dst), dst2: spot(s.Dst2)}
	}
	C.hot_coll_install(c.c, p)
}

func spot(s Spot) C.hot_spot {
	return C.hot_spot{buf: C.int32_t(s.Buf), rank: C.int32_t(s.Rank), off: C.uint64_t(s.Off)}
}

// Checked is what the checks of a begin find for rank me of n: Code OK, or why it is refused.
type Checked struct {
	Desc                 Desc
	Piece, InLen, OutLen uint64
	Why                  int
	Code                 status.Code
}

// CheckCall is the checks of Begin alone.
func CheckCall(n, me int, call Call) Checked {
	c := NewColl()
	defer c.Free()
	c.keepCounts(call.Counts)
	code := status.Code(C.check_at(c.c, C.int32_t(n), C.int32_t(me), C.uint32_t(call.Op), C.uint32_t(call.DType), C.uint32_t(call.RedOp), C.int32_t(call.Root),
		C.uintptr_t(call.In), C.uintptr_t(call.Out), C.uint64_t(call.Count), C.double(call.Scale), (*C.uint64_t)(c.counts)))
	return Checked{c.Desc(), uint64(c.c.piece), uint64(c.c.in_len), uint64(c.c.out_len), c.Why(), code}
}

// Fingerprint is the half of an arrival's flag that says what it is.
func Fingerprint(d Desc) uint32 { return uint32(C.hot_fingerprint((*C.hot_desc)(unsafe.Pointer(&d)))) }

// Section is the bytes of a piece that one staged plan covers.
func Section(op, n int) uint64 { return uint64(C.hot_section(C.uint32_t(op), C.int32_t(n))) }
