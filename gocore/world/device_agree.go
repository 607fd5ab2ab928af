package world

import (
	"context"
	"fmt"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/fabric"
	"goshmem/gocore/reduce"
	"goshmem/gocore/status"
)

// Members that queue different collectives on their devices would wait for each other until the timeout, or write where nobody expects it.
// So each tells what it queues to its neighbours in the team, the ranks before and behind it, when it queues it, and compares what these
// told with what it queued itself: then, and as long as kernels wait. Where no two neighbours differ nobody does. Nothing here waits.
//
// In host memory of each member, per team (box, below): a ring of what the rank before has told, and one of the rank behind. A
// member stores to its neighbours and then reads its own rings, all sequentially consistent, so of two mapped neighbours the later one sees
// the other's; elsewhere the watch looks again. Who finds a difference ends the waits of its kernels and tells all PEs of the world,
// through the world team's box, in the words that it found: every PE fails with the same error.

const (
	askedKept = 256 // what a member remembers of its own
	toldKept  = 32  // what a ring holds of a neighbour
	toldBytes = 32

	boxVerdict = 2 * toldKept * toldBytes // u64: 0 none, 1 being written, else length of the text and PE
	boxText    = boxVerdict + 8
	textBytes  = 504
	boxBytes   = boxText + textBytes
)

const (
	before = iota // the rings of a box
	behind
)

// asked is what a member queues. Offsets are of the buffers that peers reach, in the heap on the device.
type asked struct {
	seq         uint32
	op          uint8
	dtype, kind uint8 // kind is the operator
	way         uint8
	root        int32
	count, at   uint64
}

// The ways of one operation: members that take different ones do not meet.
const (
	WayKernel = iota // the team's kernel, in place where it can be
	WayApart         // the kernel with its result elsewhere
	WaySteps         // announced: by several kernels
	WayHost          // announced: through host memory, where the collective itself compares
)

// words is the record as it is told. The first word has the number and a check, because the others may be of another record when they are read.
func (a asked) words() [4]uint64 {
	w := [4]uint64{0, uint64(a.op) | uint64(a.dtype)<<8 | uint64(a.kind)<<16 | uint64(a.way)<<24 | uint64(uint32(a.root))<<32, a.count, a.at}
	w[0] = headWord(a.seq, w[1:])
	return w
}

// headWord is a number and a check of it and of the words behind it.
func headWord(seq uint32, rest []uint64) uint64 {
	const odd = 0x9e3779b97f4a7c15
	h := (uint64(seq) + 1) * odd
	for _, v := range rest {
		h = (h ^ h>>29 ^ v) * odd // a word that differs differs in the upper half afterwards
	}
	return uint64(seq)<<32 | (h^h>>29)>>32
}

// askedFrom is the record in words, false when they are not of one record.
func askedFrom(w [4]uint64) (asked, bool) {
	a := asked{seq: uint32(w[0] >> 32), op: uint8(w[1]), dtype: uint8(w[1] >> 8), kind: uint8(w[1] >> 16), way: uint8(w[1] >> 24),
		root: int32(uint32(w[1] >> 32)), count: w[2], at: w[3]}
	return a, a.words()[0] == w[0]
}

// record makes what is told of a call: only what the operation has.
func (x *accelerator) record(c coll.Call, way uint8) asked {
	a := asked{op: uint8(c.Op), dtype: uint8(c.DType), way: way, root: -1, count: c.Count}
	shared := c.Out
	switch c.Op {
	case coll.Barrier, coll.Sync:
		return asked{op: uint8(c.Op), root: -1}
	case coll.AllReduce, coll.ReduceScatter, coll.Reduce:
		a.kind, shared = uint8(c.RedOp), c.In
	}
	switch c.Op {
	case coll.Broadcast, coll.Reduce, coll.Gather, coll.Scatter:
		a.root = int32(c.Root)
	}
	if c.Op == coll.AllReduce && c.In != c.Out && way == WayKernel {
		a.way = WayApart
	}
	if way == WayKernel && x.symmetric(shared, 0) {
		a.at = uint64(shared - x.arena.low)
	}
	return a
}

// differs names the first field in which two records differ; "" when they are equal.
func (a asked) differs(b asked) string {
	switch {
	case a.way == WayHost && b.way == WayHost:
		return ""
	case a.op != b.op:
		return "the operations"
	case a.dtype != b.dtype:
		return "the dtypes"
	case a.count != b.count:
		return "the sizes"
	case a.kind != b.kind:
		return "the operators"
	case a.root != b.root:
		return "the roots"
	case a.way != b.way:
		return "the ways (in place, out of place, through host memory)"
	case a.at != b.at:
		return "the places of the shared buffer in the heap"
	}
	return ""
}

func (a asked) String() string {
	s := coll.OpName(int(a.op))
	if a.op == coll.Barrier || a.op == coll.Sync {
		return s
	}
	switch int(a.op) {
	case coll.AllReduce, coll.ReduceScatter, coll.Reduce:
		s += fmt.Sprintf(" of %d %s by %s", a.count, reduce.DType(a.dtype), reduce.Op(a.kind))
	default:
		s += fmt.Sprintf(" of %d bytes", a.count)
		if a.dtype != 0 {
			s += fmt.Sprintf(" (%s)", reduce.DType(a.dtype))
		}
	}
	if a.root >= 0 {
		s += fmt.Sprintf(" with root %d", a.root)
	}
	switch a.way {
	case WayApart:
		s += ", out of place"
	case WaySteps:
		return s + ", in steps"
	case WayHost:
		return s + ", through the host"
	}
	return s + fmt.Sprintf(", shared buffer at offset %#x", a.at)
}

// agreement is what a member knows of what the team's members queue; guarded by the team's streamMu.
type agreement struct {
	last  uint32 // number of what was queued last
	mine  [askedKept]asked
	seen  [2]uint32 // up to which number each neighbour's were compared
	ended bool      // a difference was found: the team is not looked at any more

	pairs pairing
}

// neighbour is the rank on a side, -1 where there is none or it is the other side's as well.
func (t *Team) neighbour(side int) int {
	n := len(t.pes)
	switch {
	case n < 2 || side == behind && n == 2:
		return -1
	case side == before:
		return (t.me + n - 1) % n
	}
	return (t.me + 1) % n
}

// askLocked tells the neighbours what this PE is about to queue, and looks at what they told. t.streamMu is held.
func (t *Team) askLocked(x *accelerator, a asked) error {
	g := &t.agree
	g.last++
	a.seq = g.last
	g.mine[a.seq%askedKept] = a
	words := a.words()
	for side := range 2 {
		ring := 1 - side // my rank before has me behind
		if len(t.pes) == 2 {
			ring = before
		}
		if r := t.neighbour(side); r >= 0 {
			t.tell(r, ring, words)
		}
	}
	return t.compareLocked(x)
}

// tell stores a record in a ring of a neighbour: here by plain words, elsewhere by puts, which do not wait. A peer that is lost is found by others.
func (t *Team) tell(rank, ring int, words [4]uint64) {
	seq := words[0] >> 32
	off := t.places[rank].box + uint64(ring)*toldKept*toldBytes + seq%toldKept*toldBytes
	t.w.leaveWords(t.pes[rank], off, words[:])
}

// leaveWords stores words in a PE's segment, the first one last.
func (w *World) leaveWords(pe int, off uint64, words []uint64) {
	for i := len(words) - 1; i >= 0; i-- {
		if s := w.segs[pe]; s != nil {
			storeWord(s.Bytes()[off+8*uint64(i):], words[i]) // partner: loadWord of who looks for it
			continue
		}
		if err := w.net.Put(w.ctx, fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, off+8*uint64(i))}, word(words[i])); err != nil {
			return
		}
	}
}

// read is what a ring of this PE has at a number; false when it has another.
func (t *Team) read(ring int, seq uint32) (a asked, whole bool) {
	off := t.own.box + uint64(ring)*toldKept*toldBytes + uint64(seq)%toldKept*toldBytes
	var words [4]uint64
	for i := range words {
		words[i] = loadWord(t.w.seg.Bytes()[off+8*uint64(i):])
	}
	return askedFrom(words)
}

// compareLocked compares what neighbours have told by now with what was queued here. t.streamMu is held.
func (t *Team) compareLocked(x *accelerator) error {
	g := &t.agree
	for side := range 2 {
		r := t.neighbour(side)
		for r >= 0 && !g.ended && int32(g.last-g.seen[side]) > 0 {
			next := g.seen[side] + 1
			theirs, whole := t.read(side, next)
			if !whole || int32(theirs.seq-next) < 0 {
				break // not told yet
			}
			g.seen[side] = next
			mine := g.mine[next%askedKept]
			if mine.seq != next || theirs.seq != next {
				continue // one is far ahead of the other: too old to be compared
			}
			if what := mine.differs(theirs); what != "" {
				return t.disagree(x, mine, theirs, r, what)
			}
		}
	}
	return t.comparePairsLocked(x)
}

// disagree words a difference.
func (t *Team) disagree(x *accelerator, mine, theirs asked, rank int, what string) error {
	return t.denounce(x, status.At(status.Mismatch, "collective_on_stream", t.pes[rank],
		"the members of %s differ in %s of collective %d on their devices: PE %d queued %s; PE %d queued %s. Every member queues the same in the same order",
		t.name(), what, mine.seq, t.w.me, mine, t.pes[rank], theirs))
}

// denounce tells all PEs why, then ends the waits of all kernels here. In this order: a PE that knows of it, and makes new teams, has told the others
// before, so that none of them takes the old verdict for a new one. t.streamMu is held, and the caller holds the team.
func (t *Team) denounce(x *accelerator, err *status.Error) error {
	t.agree.ended = true
	x.watch.judging.Lock()
	defer x.watch.judging.Unlock()
	if x.health() == nil && t.placed.Load() { // else the device was broken, and may work again for other teams
		t.w.tellVerdict(err.PE, err.Detail)
		x.fail(err)
		t.coll.Condemn(status.Mismatch, err) // who takes another way than kernels waits there, and looks here for the words
	}
	return err
}

// tellVerdict writes it to the world team's box on every PE; the first to come there is heard. It takes at most a second.
func (w *World) tellVerdict(pe int, text string) {
	ctx, stop := context.WithTimeout(w.ctx, time.Second)
	defer stop()
	data := []byte(text)[:min(len(text), textBytes)]
	for rank, to := range w.world.pes {
		if to == w.me {
			continue
		}
		at := func(off uint64) fabric.Addr {
			return fabric.Addr{PE: to, Ref: fabric.MakeRef(0, w.world.places[rank].box+off)}
		}
		old, err := w.net.Atomic(ctx, at(boxVerdict), fabric.Atomic{Op: fabric.CompareSwap, Width: 8, Operand: 1})
		if err == nil && old == 0 {
			_ = w.net.PutSignal(ctx, at(boxText), data, at(boxVerdict), fabric.SignalSet, uint64(len(data))<<32|uint64(pe+1)<<1) // a lost peer needs none
		}
	}
}

// hearVerdict fails the device when a PE has found that members disagree. It looks at one word.
func (x *accelerator) hearVerdict() {
	t := x.w.world
	box := x.w.seg.Bytes()[t.own.box:]
	v := loadWord(box[boxVerdict:])
	if v < 2 {
		return
	}
	text := string(box[boxText : boxText+min(v>>32, textBytes)])
	storeWord(box[boxVerdict:], 0) // for the next one
	x.fail(status.At(status.Mismatch, "collective_on_stream", int(v>>1&0x7fffffff)-1, "%s", text))
}

// condemned is what members were found to disagree about on their devices, nil when this PE has not heard of it.
func (w *World) condemned() error {
	x := w.device()
	if x == nil {
		return nil
	}
	x.hearVerdict()
	if err := x.health(); status.Of(err) == status.Mismatch {
		return err
	}
	return nil
}

// judged returns when what was found here has been told. Members that make a team call it before they say a word: so none of them, having got over
// a disagreement, hears of it again.
func (x *accelerator) judged() {
	if x != nil {
		x.watch.judging.Lock()
		defer x.watch.judging.Unlock()
	}
}

// dropVerdict forgets what others have found, when the members of a new team have met: they know.
func (x *accelerator) dropVerdict() { storeWord(x.w.seg.Bytes()[x.w.world.own.box+boxVerdict:], 0) }

// compareTeams looks at what the members of all teams with kernels under way have told. A team that is being used right now does it itself.
func (x *accelerator) compareTeams() {
	x.hearVerdict()
	if x.health() != nil {
		return
	}
	x.w.teamMu.Lock()
	var busy []*Team
	for t := range x.w.teams {
		if t.kernels != t.ended && t.placed.Load() {
			busy = append(busy, t)
		}
	}
	x.w.teamMu.Unlock()
	for _, t := range busy {
		if t.hold("") != nil {
			continue
		}
		if t.streamMu.TryLock() {
			_ = t.compareLocked(x) // it has failed the device
			t.streamMu.Unlock()
		}
		t.exit()
	}
}

// AnnounceOnStream tells the members of a collective that this PE is about to do otherwise than by one kernel, so that members which do
// something else are found. It queues nothing.
func (t *Team) AnnounceOnStream(c coll.Call, byHost bool) error {
	if byHost {
		return t.announce(c, WayHost, func() {})
	}
	return t.announce(c, WaySteps, func() {})
}

// announce does so, and calls more before it looks what the others told.
func (t *Team) announce(c coll.Call, way uint8, more func()) error {
	x, done, err := t.w.onStream("collective_announce")
	if err != nil {
		return err
	}
	defer done()
	if err := t.hold("collective_announce"); err != nil {
		return err
	}
	defer t.exit()
	if x.hearVerdict(); x.health() != nil {
		return nil // nothing goes by the device any more; the operation itself says how it goes
	}
	t.streamMu.Lock()
	defer t.streamMu.Unlock()
	more()
	return t.askLocked(x, x.record(c, way))
}
