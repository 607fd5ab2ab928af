package world

import (
	"sync"

	"goshmem/gocore/heap"
	"goshmem/gocore/memory"
	"goshmem/gocore/status"
)

// arena is one kind of this PE's symmetric memory: what it is made of, and which of it is given out.
type arena struct {
	region memory.Region
	off    uint64  // of the first byte in region
	low    uintptr // address of the first byte here; a device's is never followed
	size   uint64  // bytes that can be given out
	knob   string  // the setting that makes it larger
	wipe   func([]heap.Range) error

	mu   sync.Mutex
	heap *heap.Heap // guarded by mu; nothing of ours but the region's own lock is taken while it is held

	pinMu  sync.RWMutex // guards pinned, and keeps what is given back to the system apart from pinning; before mu
	pinned bool         // a device holds the pages: none may go
}

func newArena(region memory.Region, off, bytes uint64, low uintptr, knob string, wipe func([]heap.Range) error) *arena {
	h := heap.New(bytes)
	return &arena{region: region, off: off, low: low, size: h.Stats().Size, knob: knob, wipe: wipe, heap: h}
}

func (a *arena) stats() heap.Stats {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heap.Stats()
}

// locate is the offset of an address that lies inside.
func (a *arena) locate(addr uintptr) (off uint64, ok bool) {
	off = uint64(addr - a.low)
	return off, addr >= a.low && off < a.size
}

// covers says whether all of [addr, addr+n) lies inside, its end included.
func (a *arena) covers(addr uintptr, n uint64) bool {
	return addr >= a.low && uint64(addr-a.low) <= a.size && n <= a.size-uint64(addr-a.low)
}

// bid takes the lowest fit at or above atLeast; ok is false when there is none.
func (a *arena) bid(bytes, align, atLeast uint64) (off uint64, dirty []heap.Range, s heap.Stats, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if off, ok = a.heap.Propose(bytes, align, atLeast); ok {
		dirty, _ = a.heap.Take(off, bytes) // a proposal can be taken
	}
	return off, dirty, a.heap.Stats(), ok
}

// place takes room for a block of this PE alone.
func (a *arena) place(bytes, align uint64) (off uint64, dirty []heap.Range, s heap.Stats, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	off, dirty, ok = a.heap.Place(bytes, align)
	return off, dirty, a.heap.Stats(), ok
}

// commit makes the pages of a block real and, if asked, the parts of it that were used before zero.
func (a *arena) commit(off, bytes uint64, dirty []heap.Range, zero bool) error {
	if err := a.region.Commit(a.off+off, bytes); err != nil || !zero || len(dirty) == 0 {
		return err
	}
	return a.wipe(dirty)
}

// giveBack returns memory to the heap. Large pieces of host memory give their pages back to the system too, and are fresh zeros then.
func (a *arena) giveBack(off, bytes uint64) {
	const keep = 32 << 20
	page, at := a.region.Page(), a.off+off
	first, last := (at+page-1)&^(page-1), (at+bytes)&^(page-1) // the pages wholly inside
	fresh := bytes >= keep && a.region.Kind() == memory.Host && a.decommit(at, bytes)
	a.mu.Lock()
	defer a.mu.Unlock()
	if _, err := a.heap.Free(off); err != nil {
		panic(err) // only taken blocks come here
	}
	if fresh {
		a.heap.Clean(first-a.off, last-first)
	}
}

// decommit gives pages back to the system, when they may go.
func (a *arena) decommit(at, bytes uint64) bool {
	a.pinMu.RLock()
	defer a.pinMu.RUnlock()
	return !a.pinned && a.region.Decommit(at, bytes) == nil
}

// pin makes all pages real, and keeps them. When that fails it changes nothing.
func (a *arena) pin() error {
	a.pinMu.Lock()
	defer a.pinMu.Unlock()
	err := a.region.Commit(a.off, a.size)
	a.pinned = err == nil
	return err
}

// unpin lets pages go again, those in no block at once.
func (a *arena) unpin() {
	a.pinMu.Lock()
	defer a.pinMu.Unlock()
	a.pinned = false
	a.mu.Lock()
	defer a.mu.Unlock()
	at, holes := uint64(0), []heap.Range(nil)
	a.heap.Each(func(b heap.Range) bool {
		holes, at = append(holes, heap.Range{Off: at, Len: b.Off - at}), b.End()
		return true
	})
	for _, hole := range append(holes, heap.Range{Off: at, Len: a.size - at}) {
		if a.region.Decommit(a.off+hole.Off, hole.Len) == nil {
			page := a.region.Page()
			first, last := (a.off+hole.Off+page-1)&^(page-1), (a.off+hole.End())&^(page-1)
			a.heap.Clean(first-a.off, max(last, first)-first)
		}
	}
}

// holding is the first offset of the block that holds off.
func (a *arena) holding(off uint64) (uint64, bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.heap.Holding(off)
}

// full words exhaustion of this PE's memory.
func (a *arena) full(op string, bytes uint64, s heap.Stats) error {
	return status.New(status.HeapFull, op, "%d bytes do not fit: heap size %d, used %d, largest hole %d in %d blocks; raise %s, or drop tensors",
		bytes, s.Size, s.Used, s.LargestHole, s.Blocks, a.knob)
}

// wipeHost clears parts of the host heap.
func (w *World) wipeHost(dirty []heap.Range) error {
	all := w.seg.Bytes()
	for _, d := range dirty {
		clear(all[w.seg.Geo.HeapOff+d.Off : w.seg.Geo.HeapOff+d.End()])
	}
	return nil
}

// arenas lists the kinds of memory there are, the host's first.
func (w *World) arenas() []*arena {
	if x := w.device(); x != nil {
		return []*arena{w.host, x.arena}
	}
	return []*arena{w.host}
}
