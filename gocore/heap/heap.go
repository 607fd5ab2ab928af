package heap

import (
	"goshmem/gocore/status"
)

// Quantum is the granularity of blocks: sizes are rounded up to it and offsets are multiples of it. An empty block takes one,
// so every block has an offset of its own.
const Quantum = 64

// Range is a piece of the heap.
type Range struct{ Off, Len uint64 }

// End is the first offset behind the range.
func (r Range) End() uint64 { return r.Off + r.Len }

// Heap is the set of blocks and holes of one PE. The zero value is not usable; see New.
type Heap struct {
	size   uint64
	used   uint64
	holes  spans
	blocks spans
	dirty  spans // coalesced ranges that may hold old data; parts of live blocks are in it as well
}

// Stats is what a person asks of a heap.
type Stats struct {
	Size, Used, LargestHole, Blocks uint64
}

// New is an empty heap of size bytes, all of it fresh. A tail shorter than Quantum is never handed out.
func New(size uint64) *Heap {
	h := &Heap{size: size &^ (Quantum - 1), holes: newSpans(), blocks: newSpans(), dirty: newSpans()}
	if h.size > 0 {
		h.holes.insert(0, h.size)
	}
	return h
}

// round is the bytes a block of size takes; ok is false when that is more than the heap.
func (h *Heap) round(size uint64) (n uint64, ok bool) {
	if size > h.size {
		return 0, false
	}
	return max(Quantum, (size+Quantum-1)&^(Quantum-1)), true
}

func checkAlign(align uint64) uint64 {
	if align&(align-1) != 0 {
		panic("heap: alignment is not a power of two") // the C ABI refuses it before
	}
	return max(align, Quantum)
}

// Propose is the lowest offset, not below atLeast, where a block of size bytes fits at a multiple of align (0, or a power
// of two). ok is false when there is none. Nothing changes.
func (h *Heap) Propose(size, align, atLeast uint64) (off uint64, ok bool) {
	n, ok := h.round(size)
	if !ok || atLeast > h.size {
		return 0, false
	}
	return h.holes.lowestFit(h.holes.root, n, checkAlign(align), atLeast)
}

// ProposeTop is the highest offset where such a block fits: for blocks of this PE alone.
func (h *Heap) ProposeTop(size, align uint64) (off uint64, ok bool) {
	n, ok := h.round(size)
	if !ok {
		return 0, false
	}
	return h.holes.highestFit(h.holes.root, n, checkAlign(align))
}

// Take makes [off, off+size) a block and lists, in order, the parts of it that may hold old data. It fails, and changes nothing,
// when off is no multiple of Quantum or the range is not free.
func (h *Heap) Take(off, size uint64) (dirty []Range, err error) {
	n, ok := h.round(size)
	if !ok || off%Quantum != 0 || !h.free(off, n) {
		return nil, status.New(status.Internal, "heap take", "[%d, +%d) is not free in a heap of %d bytes", off, size, h.size)
	}
	hole, _ := h.holes.floor(off)
	h.holes.remove(hole.Off)
	if off > hole.Off {
		h.holes.insert(hole.Off, off-hole.Off)
	}
	if off+n < hole.End() {
		h.holes.insert(off+n, hole.End()-off-n)
	}
	h.blocks.insert(off, n)
	h.used += n
	h.check()
	return h.overlap(off, n), nil
}

// Place is ProposeTop and Take in one, for a block of this PE alone.
func (h *Heap) Place(size, align uint64) (off uint64, dirty []Range, ok bool) {
	if off, ok = h.ProposeTop(size, align); !ok {
		return 0, nil, false
	}
	dirty, err := h.Take(off, size)
	return off, dirty, err == nil
}

// FirstFit is Propose from the bottom and Take in one, for heaps that nobody agrees on (scratch).
func (h *Heap) FirstFit(size, align uint64) (off uint64, dirty []Range, ok bool) {
	if off, ok = h.Propose(size, align, 0); !ok {
		return 0, nil, false
	}
	dirty, err := h.Take(off, size)
	return off, dirty, err == nil
}

// Free ends the block that begins at off and gives the bytes it took. Its bytes count as used before from now on.
func (h *Heap) Free(off uint64) (size uint64, err error) {
	n, ok := h.blocks.remove(off)
	if !ok {
		return 0, status.New(status.Internal, "heap free", "no block begins at offset %d", off)
	}
	h.used -= n
	merge(&h.holes, off, n)
	merge(&h.dirty, off, n)
	h.check()
	return n, nil
}

// Clean says that [off, off+n) reads as zero again, because its pages were given back.
func (h *Heap) Clean(off, n uint64) {
	for _, r := range h.overlapping(&h.dirty, off, n) {
		h.dirty.remove(r.Off)
		if r.Off < off {
			h.dirty.insert(r.Off, off-r.Off)
		}
		if r.End() > off+n {
			h.dirty.insert(off+n, r.End()-off-n)
		}
	}
	h.check()
}

// Fits says whether [off, off+size) is free.
func (h *Heap) Fits(off, size uint64) bool {
	n, ok := h.round(size)
	return ok && h.free(off, n)
}

// Holding is the first offset of the block that holds off.
func (h *Heap) Holding(off uint64) (start uint64, ok bool) {
	b, ok := h.blocks.floor(off)
	return b.Off, ok && off < b.End()
}

// Each calls f for every block by rising offset until it returns false. f must not change the heap.
func (h *Heap) Each(f func(Range) bool) { h.blocks.each(f) }

// Stats is the present use. Used counts rounded sizes.
func (h *Heap) Stats() Stats {
	return Stats{Size: h.size, Used: h.used, LargestHole: h.holes.nodes[h.holes.root].max, Blocks: uint64(h.blocks.count)}
}

func (h *Heap) free(off, n uint64) bool {
	hole, ok := h.holes.floor(off)
	return ok && off < hole.End() && n <= hole.End()-off
}

// overlap is the dirty parts of [off, off+n), clipped to it.
func (h *Heap) overlap(off, n uint64) []Range {
	out := h.overlapping(&h.dirty, off, n)
	for i, r := range out {
		low, end := max(r.Off, off), min(r.End(), off+n)
		out[i] = Range{low, end - low}
	}
	return out
}

// overlapping is the ranges of s that share a byte with [off, off+n), whole, in order.
func (h *Heap) overlapping(s *spans, off, n uint64) []Range {
	if n == 0 {
		return nil
	}
	var out []Range
	if r, ok := s.floor(off); ok && r.End() > off {
		out = append(out, r)
	}
	for at := off + 1; ; {
		r, ok := s.ceil(at)
		if !ok || r.Off >= off+n {
			return out
		}
		out = append(out, r)
		at = r.Off + 1
	}
}

// merge adds [off, off+n) to a set of coalesced ranges, whatever of it is there already.
func merge(s *spans, off, n uint64) {
	low, end := off, off+n
	if r, ok := s.floor(off); ok && r.End() >= off {
		low, end = r.Off, max(end, r.End())
		s.remove(r.Off)
	}
	for {
		r, ok := s.ceil(low)
		if !ok || r.Off > end {
			break
		}
		end = max(end, r.End())
		s.remove(r.Off)
	}
	s.insert(low, end-low)
}
