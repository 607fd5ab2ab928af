// Package plan computes the schedules of collectives: pure functions from what is asked to a table of steps.
//
// A plan says what one member does after every member has arrived: copies and reductions between the members' buffers,
// and the progress words that order them. Two executors run the same table, one in C over mapped memory (package hot)
// and one over any transport (package coll); a simulator in the tests runs all members' tables in random order and checks every
// access against the order that the progress words give.
//
// The obligations a plan keeps, which its tests check: at its end the member's result is there, nobody will touch the member's
// buffers or staging any more, and every progress it announced to a member is waited for by that member.
package plan

// Op is a collective; the numbers are those of gshmem.h.
type Op uint32

// The collectives that have plans (the others end with the arrival).
const (
	Broadcast     Op = 3
	AllReduce     Op = 4
	Reduce        Op = 5
	AllGather     Op = 6
	ReduceScatter Op = 7
	AllToAll      Op = 8
	Gather        Op = 9
	Scatter       Op = 10
	AllGatherV    Op = 11
	AllToAllV     Op = 12
)

// Mode says where peers find the data.
type Mode uint32

// Direct plans read and write the peers' own buffers, Staged ones go through staging in chunks, Slab ones put small data of
// members that have not done so yet into their slab and then read all slabs.
const (
	Direct Mode = 1
	Staged Mode = 2
	Slab   Mode = 3
)

// Kind is what a step does; the numbers are those of exec.h.
type Kind uint32

// The steps. Copy moves Len bytes from Src to Dst. Fold reduces Len bytes: the sources in rank order are Src at every other rank
// and Own at this one; the result goes to Dst (Rank All: every member's) and to Dst2. Notify announces Phase to Peer
// or All; Await waits until Peer or All have announced at least Phase.
const (
	Copy Kind = iota + 1
	Fold
	Notify
	Await
)

// Buf is a buffer of a member; the numbers are those of exec.h.
type Buf int32

// The buffers. None is no place.
const (
	None Buf = iota
	In
	Out
	Stage
)

// All stands for every other member (for destinations: every member).
const All = -1

// Place is an offset in a buffer of a rank.
type Place struct {
	Buf  Buf
	Rank int
	Off  uint64
}

// Step is one row of the table.
type Step struct {
	Kind      Kind
	Phase     uint32
	Peer      int
	Len       uint64
	Src, Own  Place
	Dst, Dst2 Place
}

// Params is everything a plan depends on. All members give the same, apart from Me (and, for AllToAllV, Counts).
type Params struct {
	Op      Op
	Mode    Mode
	N, Me   int
	Root    int
	Elem    uint64   // bytes of an element, 1 where bytes are moved
	Len     uint64   // bytes of each piece that this plan covers
	Pitch   uint64   // bytes from one piece to the next in In or Out
	Stage   uint64   // bytes of staging each member has
	Crowded bool     // more members than cores: fewer, larger chunks
	Counts  []uint64 // AllGatherV: N; AllToAllV: 4N, as in gshmem.h
}

// Plan is a schedule: its steps and the number of phases it uses.
type Plan struct {
	Steps  []Step
	Phases uint32
}
