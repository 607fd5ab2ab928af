package world

import (
	"sync"

	"goshmem/gocore/status"
)

// Block is a piece of this PE's heap. A symmetric block belongs to a team and has a twin at the same offset on each
// member; a local one is this PE's alone. The holder drops it; the pages stay until it does, also past the end of the world.
type Block struct {
	w    *World
	in   *arena
	team *Team // nil for a local block
	off  uint64
	size uint64 // as asked for; the heap rounds it up, and gives an empty block an offset of its own

	// Guarded by w.blocks.mu.
	dropped bool // this PE holds it no more; reclaimed when all members say so
	freed   bool // its addresses may belong to somebody else
}

// Address is where the block begins in this process. An empty block has an address too, of its alignment. That of a block on a
// device is the device's, which the CPU never follows.
func (b *Block) Address() uintptr { return b.in.low + uintptr(b.off) }

// OnDevice says whether the block is memory of a device.
func (b *Block) OnDevice() bool { return b.in != b.w.host }

// Size is the bytes asked for.
func (b *Block) Size() uint64 { return b.size }

// World is the world the block belongs to.
func (b *Block) World() *World { return b.w }

// spot is where a block begins.
type spot struct {
	in  *arena
	off uint64
}

func (b *Block) spot() spot { return spot{b.in, b.off} }

// ledger is what a world knows of its blocks.
type ledger struct {
	mu     sync.Mutex
	byOff  map[spot]*Block // live blocks with memory; guarded by mu
	held   int             // blocks not dropped: they keep the mapping; guarded by mu
	closed bool            // the world is closed: the last drop unmaps; guarded by mu
}

// Drop ends this PE's interest in the block: recorded here, never waits, never talks to a peer.
func (b *Block) Drop() {
	l := &b.w.blocks
	l.mu.Lock()
	if b.dropped {
		l.mu.Unlock()
		return
	}
	b.dropped = true
	l.held--
	if b.team == nil && !b.freed {
		b.w.reclaimLocked(b)
	}
	last := l.closed && l.held == 0
	l.mu.Unlock()
	if last {
		b.w.unmap()
	}
}

// reclaimLocked gives a block's memory back to the heap. blocks.mu is held.
func (w *World) reclaimLocked(b *Block) {
	if b.freed {
		return
	}
	b.freed = true
	delete(w.blocks.byOff, b.spot())
	if !w.blocks.closed {
		b.in.giveBack(b.off, b.size)
	}
}

// BlockOf finds the live block that holds an address, of whichever kind of memory.
func (w *World) BlockOf(addr uintptr) (*Block, error) {
	for _, in := range w.arenas() {
		off, ok := in.locate(addr)
		if !ok {
			continue
		}
		start, ok := in.holding(off)
		w.blocks.mu.Lock()
		b := w.blocks.byOff[spot{in, start}]
		w.blocks.mu.Unlock()
		if ok && b != nil {
			return b, nil
		}
		return nil, status.New(status.NotSymmetric, "block_of", "address %#x (offset %d of the heap in %s memory) is in no allocated block", addr, off, in.region.Kind())
	}
	low := w.heapLow()
	return nil, status.New(status.NotSymmetric, "block_of", "address %#x is not in the symmetric heap [%#x, %#x)", addr, low, uint64(low)+w.heapBytes())
}

// book notes a new block.
func (w *World) book(b *Block) *Block {
	l := &w.blocks
	l.mu.Lock()
	defer l.mu.Unlock()
	l.byOff[b.spot()] = b
	l.held++
	return b
}

// adopt books a block that the team agreed on.
func (t *Team) adopt(in *arena, off, bytes uint64) *Block {
	b := t.w.book(&Block{w: t.w, in: in, team: t, off: off, size: bytes})
	t.w.blocks.mu.Lock()
	defer t.w.blocks.mu.Unlock()
	t.live = append(t.live, b)
	return b
}

// liveBlocks is how many blocks of the team are not reclaimed; the same number on every member.
func (t *Team) liveBlocks() int {
	t.w.blocks.mu.Lock()
	defer t.w.blocks.mu.Unlock()
	return len(t.live)
}

// markDropped says which live blocks of the current window this PE has dropped.
func (t *Team) markDropped(bits []byte) {
	t.w.blocks.mu.Lock()
	defer t.w.blocks.mu.Unlock()
	if t.cursor >= len(t.live) {
		t.cursor = 0
	}
	for i, b := range t.live[t.cursor:min(len(t.live), t.cursor+windowBlocks)] {
		if b.dropped {
			bits[i/8] |= 1 << (i % 8)
		}
	}
}

// reclaim frees the blocks of the window that every member has dropped, gives their bytes and how many blocks the window had, and
// moves the window on. All members see the same bits, so they free the same blocks.
func (t *Team) reclaim(replies [][]byte) (bytes uint64, looked int) {
	l := &t.w.blocks
	l.mu.Lock()
	defer l.mu.Unlock()
	kept := t.live[:t.cursor:t.cursor]
	end := min(len(t.live), t.cursor+windowBlocks)
	looked = end - t.cursor
	for i, b := range t.live[t.cursor:end] {
		all := true
		for _, r := range replies {
			all = all && r[sayDropped+i/8]&(1<<(i%8)) != 0
		}
		if all {
			bytes += b.size
			t.w.reclaimLocked(b)
		} else {
			kept = append(kept, b)
		}
	}
	next := len(kept)
	kept = append(kept, t.live[end:]...)
	t.live = kept
	if t.cursor = next; t.cursor >= len(t.live) {
		t.cursor = 0
	}
	return bytes, looked
}

// holds says whether this PE still holds a block of the team.
func (t *Team) holds() bool {
	t.w.blocks.mu.Lock()
	defer t.w.blocks.mu.Unlock()
	for _, b := range t.live {
		if !b.dropped {
			return true
		}
	}
	return false
}

// reclaimAll frees what is left of a team's blocks, which all members have dropped.
func (t *Team) reclaimAll() {
	t.w.blocks.mu.Lock()
	defer t.w.blocks.mu.Unlock()
	for _, b := range t.live {
		t.w.reclaimLocked(b)
	}
	t.live = nil
}

// retire ends a block that all members freed together.
func (t *Team) retire(b *Block) {
	l := &t.w.blocks
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, x := range t.live {
		if x == b {
			t.live = append(t.live[:i:i], t.live[i+1:]...)
			if t.cursor > i {
				t.cursor--
			}
			break
		}
	}
	if !b.dropped {
		b.dropped = true
		l.held--
	}
	t.w.reclaimLocked(b)
}

// HeapStat is the present use of this PE's heap.
type HeapStat struct {
	Low                                       uintptr
	Bytes, Used, LargestHole, Blocks, Dropped uint64
}

// HeapStats looks at the host heap now.
func (w *World) HeapStats() HeapStat { return w.statsOf(w.host) }

func (w *World) statsOf(in *arena) HeapStat {
	s := in.stats()
	out := HeapStat{Low: in.low, Bytes: s.Size, Used: s.Used, LargestHole: s.LargestHole, Blocks: s.Blocks}
	w.blocks.mu.Lock()
	defer w.blocks.mu.Unlock()
	for _, b := range w.blocks.byOff {
		if b.dropped && b.in == in {
			out.Dropped++
		}
	}
	return out
}
