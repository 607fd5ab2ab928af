package coll

import (
	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
)

// Scratch hands out memory of this PE's own segment; it is zero. Alloc gives its offset in the segment.
type Scratch interface {
	Alloc(n uint64) (off uint64, mem []byte, err error)
	Free(off uint64)
}

// Config is what a team is made of.
type Config struct {
	Name    string   // for messages: "the world team"
	Me      int      // my rank
	PEs     []int    // world PE of each rank; same
	Control []uint64 // offset of each rank's control block in its segment; same
	Segment []byte   // this PE's whole segment 0

	Crowded  bool   // more members than cores on some host; same
	SlabHalf uint64 // bytes of one half of the slab, 0: DefaultSlabHalf; same
	ForceGo  bool   // some member cannot map some other: the Go executor runs on all of them; same
	Timeout  int64  // default of the operations, ns; negative: none

	Scratch Scratch
	Stages  *Stages // shared by the teams of a world

	// World is this world's table; nil in tests of the Go executor alone, which then waits without package hot.
	World *hot.World
	// Mapped is pe's whole segment 0 as mapped here, nil when it is not. May be nil: nobody's is.
	Mapped func(pe int) []byte
	// Transport reaches every member. Needed when some member is not mapped.
	Transport fabric.Transport
	// Locate is the reference of [addr, addr+n) when all of it is symmetric memory of this PE. Needed with Transport.
	Locate func(addr uintptr, n uint64) (fabric.Ref, bool)
	// Lost says why pe will do nothing any more (it died, it left), nil while it may. Aborted is the job's end. Both may be nil.
	Lost    func(pe int) error
	Aborted func() error
	// Condemned says what a member found outside of the team's collectives when it condemned the team, nil while that is not known. May be nil.
	Condemned func() error

	// Topic names what an exchange is about, for messages. May be nil.
	Topic func(kind uint64) string
}

// DefaultSlabHalf is the size of half a slab: what is at most this much goes to everybody in one step.
const DefaultSlabHalf = 32 << 10

// Call is one collective; see gshmem.h, whose numbers it uses. In and Out are addresses of this process.
type Call = hot.Call

// The collectives; the numbers are those of gshmem.h (Exchange is the core's own).
const (
	Barrier = iota + 1
	Sync
	Broadcast
	AllReduce
	Reduce
	AllGather
	ReduceScatter
	AllToAll
	Gather
	Scatter
	AllGatherV
	AllToAllV
	exchangeOp
	// Cast is a Broadcast of at most hot.InlineBytes whose root does not wait; that members disagree may show in the next operation only.
	Cast
)

var opNames = [...]string{Barrier: "barrier", Sync: "sync", Broadcast: "broadcast", AllReduce: "all_reduce", Reduce: "reduce", AllGather: "all_gather",
	ReduceScatter: "reduce_scatter", AllToAll: "all_to_all", Gather: "gather", Scatter: "scatter", AllGatherV: "all_gather_v", AllToAllV: "all_to_all_v",
	exchangeOp: "exchange", Cast: "broadcast"}

// OpName is the name of a collective in messages.
func OpName(op int) string {
	if op < Barrier || op >= len(opNames) {
		return "collective"
	}
	return opNames[op]
}
