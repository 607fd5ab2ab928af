package world

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"time"

	"goshmem/gocore/heap"
	"goshmem/gocore/status"
)

// noFit is the bid of a member whose heap has no room.
const noFit = math.MaxUint64

// Layout of what is said in an allocation or a collect.
const (
	sayBytesAsked = 0  // u64
	sayAlign      = 8  // u64
	sayBid        = 16 // u64
	sayStatus     = 24 // i32: why the bid's pages cannot be had
	sayFlags      = 28 // u32
	sayDropped    = 32 // bitmap over a window of the team's live blocks
	windowBlocks  = (sayBytes - sayDropped) * 8
)

const (
	flagZero    = 1
	flagCollect = 2
	flagDevice  = 4
)

// allocation is one member's part in agreeing on a block.
//
// Each round every member takes its bid (the lowest fit at or above the highest bid so far), makes the pages real and
// says so. When all bids are equal the block is there, in one round where the histories are equal. Reclaiming what all have
// dropped rides on the same words. Failures are common knowledge, so all roll back.
type allocation struct {
	t           *Team
	in          *arena // nil for a collect
	op          string
	bytes       uint64
	align       uint64
	flags       uint32
	bid         uint64
	taken       bool
	swept       bool // blocks of destroyed teams were looked for
	status      status.Code
	trouble     error
	known       int    // live blocks of the team when this began
	looked      int    // of these, how many were looked at so far; collecting is over when it is all
	reclaimed   uint64 // bytes, over all rounds
	block       *Block
	usedAtFirst heap.Stats
}

// Want says which memory a block is to be of.
type Want struct {
	Zero     bool // also where it was used before
	OnDevice bool
}

// arenaFor is the memory that is wanted.
func (w *World) arenaFor(op string, want Want) (*arena, error) {
	if !want.OnDevice {
		return w.host, nil
	}
	x, err := w.needDevice(op)
	if err != nil {
		return nil, err
	}
	return x.arena, nil
}

// Alloc agrees with the team on a block of this size and alignment (0: 64). Collective over the team. The block func is valid
// after a successful end.
func (t *Team) Alloc(bytes, align uint64, want Want, timeout int64, slice time.Duration) (*Request, func() *Block, error) {
	if align != 0 && align&(align-1) != 0 {
		return nil, nil, status.New(status.InvalidArgument, "alloc", "alignment %d is not a power of two", align)
	}
	in, err := t.w.arenaFor("alloc", want)
	if err != nil {
		return nil, nil, err
	}
	a := &allocation{t: t, in: in, op: "alloc", bytes: bytes, align: align}
	if want.Zero {
		a.flags |= flagZero
	}
	if want.OnDevice {
		a.flags |= flagDevice
	}
	r, err := t.talk(kindAlloc, timeout, slice, &talk{first: a.first, next: a.next, undo: a.release})
	return r, func() *Block { return a.block }, err
}

// Collect reclaims what all members of the team have dropped. Collective over the team. Result word 0: bytes reclaimed.
func (t *Team) Collect(timeout int64, slice time.Duration) (*Request, error) {
	a := &allocation{t: t, op: "collect", flags: flagCollect}
	return t.talk(kindCollect, timeout, slice, &talk{first: a.first, next: a.next, undo: a.release,
		result: func() [4]uint64 { return [4]uint64{a.reclaimed} }})
}

func (a *allocation) first() []byte {
	a.t.w.device().notice()
	a.t.w.sweep()
	return a.sayWith(0)
}

// sayWith takes a bid at or above atLeast and words the round.
func (a *allocation) sayWith(atLeast uint64) []byte {
	if a.flags&flagCollect == 0 {
		a.take(atLeast)
	}
	say := make([]byte, sayBytes)
	binary.LittleEndian.PutUint64(say[sayBytesAsked:], a.bytes)
	binary.LittleEndian.PutUint64(say[sayAlign:], a.align)
	binary.LittleEndian.PutUint64(say[sayBid:], a.bid)
	binary.LittleEndian.PutUint32(say[sayStatus:], uint32(int32(a.status)))
	binary.LittleEndian.PutUint32(say[sayFlags:], a.flags)
	a.t.markDropped(say[sayDropped:])
	return say
}

// take reserves the bid here and makes its pages real and, if asked, zero.
func (a *allocation) take(atLeast uint64) {
	a.status, a.trouble = status.OK, nil
	off, dirty, s, ok := a.in.bid(a.bytes, a.align, atLeast)
	a.usedAtFirst = s
	if !ok {
		a.bid, a.taken = noFit, false
		return
	}
	a.bid, a.taken = off, true
	if err := a.in.commit(off, a.bytes, dirty, a.flags&flagZero != 0); err != nil {
		a.status, a.trouble = status.Of(err), err
	}
}

// release gives the bid back.
func (a *allocation) release() {
	if a.taken {
		a.taken = false
		a.in.giveBack(a.bid, a.bytes)
	}
}

// next looks at what all members said. It is the same data everywhere, so all decide alike.
func (a *allocation) next(replies [][]byte) ([]byte, error) {
	if err := a.compare(replies); err != nil {
		a.release()
		return nil, err
	}
	if a.looked == 0 {
		a.known = a.t.liveBlocks()
	}
	got, looked := a.t.reclaim(replies)
	a.reclaimed += got
	a.looked += looked
	if a.flags&flagCollect != 0 {
		if a.looked < a.known {
			return a.sayWith(0), nil
		}
		a.t.w.sweep() // the members are all here, and each has told by now of destroyed teams whose blocks it has dropped
		return nil, nil
	}
	if err := a.pagesOf(replies); err != nil {
		a.release()
		return nil, err
	}
	highest, equal := bids(replies)
	switch {
	case highest == noFit && (got > 0 || a.looked < a.known):
		a.release()
		return a.sayWith(0), nil // something came free, or more dropped blocks may
	case highest == noFit && !a.swept:
		a.swept = true // as at the end of a collect
		a.release()
		a.t.w.sweep()
		return a.sayWith(0), nil
	case highest == noFit:
		a.release()
		return nil, a.full(replies)
	case !equal:
		a.release()
		return a.sayWith(highest), nil
	}
	a.block, a.taken = a.t.adopt(a.in, a.bid, a.bytes), false
	return nil, nil
}

// bids gives the highest bid and whether all are equal.
func bids(replies [][]byte) (highest uint64, equal bool) {
	first := binary.LittleEndian.Uint64(replies[0][sayBid:])
	highest, equal = first, true
	for _, r := range replies[1:] {
		b := binary.LittleEndian.Uint64(r[sayBid:])
		highest, equal = max(highest, b), equal && b == first
	}
	return highest, equal
}

// compare refuses unequal requests on every member, with everybody's wish in the words.
func (a *allocation) compare(replies [][]byte) error {
	same := true
	for _, r := range replies {
		same = same && string(r[:sayBid]) == string(replies[0][:sayBid]) && string(r[sayFlags:sayFlags+4]) == string(replies[0][sayFlags:sayFlags+4])
	}
	if same {
		return nil
	}
	var wishes []string
	for rank, r := range replies {
		w := fmt.Sprintf("PE %d: %d bytes", a.t.pes[rank], binary.LittleEndian.Uint64(r[sayBytesAsked:]))
		if al := binary.LittleEndian.Uint64(r[sayAlign:]); al != 0 {
			w += fmt.Sprintf(" aligned to %d", al)
		}
		switch flags := binary.LittleEndian.Uint32(r[sayFlags:]); {
		case flags&flagDevice != 0:
			w += " on the device"
		case flags&flagCollect != 0:
			w = fmt.Sprintf("PE %d: collect", a.t.pes[rank])
		}
		wishes = append(wishes, w)
	}
	return status.New(status.Asymmetric, a.op, "the members of %s ask for different blocks (%s); every member must ask for the same size and alignment. Nothing was allocated, the heap stays usable",
		a.t.name(), strings.Join(wishes, ", "))
}

// pagesOf fails everywhere when some member has no pages for its bid.
func (a *allocation) pagesOf(replies [][]byte) error {
	for rank, r := range replies {
		code := status.Code(int32(binary.LittleEndian.Uint32(r[sayStatus:])))
		if code == status.OK {
			continue
		}
		if rank == a.t.me {
			return a.trouble
		}
		return status.At(code, a.op, a.t.pes[rank], "it could not get %d bytes of memory for its part of the block; its own error has the limit that was hit. Nothing was allocated", a.bytes)
	}
	return nil
}

// full words exhaustion, the same on all members but for the numbers of their own heap.
func (a *allocation) full(replies [][]byte) error {
	var where []int
	for rank, r := range replies {
		if binary.LittleEndian.Uint64(r[sayBid:]) == noFit {
			where = append(where, a.t.pes[rank])
		}
	}
	s := a.usedAtFirst
	if a.taken {
		s = a.in.stats()
	}
	return status.New(status.HeapFull, a.op, "%d bytes do not fit on PE %v: heap size %d, used %d, largest hole %d in %d blocks (here); raise %s, or drop tensors and call collect",
		a.bytes, where, s.Size, s.Used, s.LargestHole, s.Blocks, a.in.knob)
}

// AllocLocal gives a block of this PE alone. Peers reach it by its offset. It never waits for a peer.
func (w *World) AllocLocal(bytes, align uint64, want Want) (*Block, error) {
	const op = "alloc_local"
	if err := w.enter(op); err != nil {
		return nil, err
	}
	defer w.exit()
	if align != 0 && align&(align-1) != 0 {
		return nil, status.New(status.InvalidArgument, op, "alignment %d is not a power of two", align)
	}
	in, err := w.arenaFor(op, want)
	if err != nil {
		return nil, err
	}
	off, dirty, s, ok := in.place(bytes, align)
	if !ok {
		w.sweep() // blocks of destroyed teams may come back
		off, dirty, s, ok = in.place(bytes, align)
	}
	if !ok {
		return nil, in.full(op, bytes, s)
	}
	if err := in.commit(off, bytes, dirty, want.Zero); err != nil {
		in.giveBack(off, bytes)
		return nil, err
	}
	return w.book(&Block{w: w, in: in, off: off, size: bytes}), nil
}

// Free gives a block back on every member now. Collective over the block's team; a local block is just dropped.
func (b *Block) Free(timeout int64, slice time.Duration) (*Request, error) {
	if b.team == nil {
		b.Drop()
		return Background(nil, func() error { return nil }), nil
	}
	say := make([]byte, sayBytes)
	binary.LittleEndian.PutUint64(say, b.off)
	binary.LittleEndian.PutUint64(say[8:], b.size)
	if b.OnDevice() {
		say[16] = 1
	}
	t := b.team
	return t.talk(kindFree, timeout, slice, &talk{first: func() []byte { return say }, undo: func() {}, next: func(replies [][]byte) ([]byte, error) {
		for rank, r := range replies {
			if off := binary.LittleEndian.Uint64(r); off != b.off || r[16] != say[16] {
				return nil, status.At(status.Asymmetric, "free", t.pes[rank], "it frees the block at heap offset %d, this PE the one at %d; free blocks in the same order everywhere. Nothing was freed", off, b.off)
			}
		}
		t.retire(b)
		return nil, nil
	}})
}
