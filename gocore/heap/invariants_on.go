//go:build invariants

package heap

import "fmt"

// checked says whether every change is followed by a check of the whole heap.
const checked = true

// check panics unless holes and blocks tile the heap, neighbouring holes are merged, the counters are right and dirty ranges are
// coalesced. Costs O(n), so it is compiled in only with -tags invariants.
func (h *Heap) check() {
	tiles := newSpans()
	var used uint64
	lastHole := Range{Off: 1, Len: 0}
	h.holes.each(func(r Range) bool {
		if r.Len == 0 || (lastHole.Len > 0 && lastHole.End() >= r.Off) {
			panic(fmt.Sprintf("heap: holes %v and %v touch", lastHole, r))
		}
		lastHole = r
		tiles.insert(r.Off, r.Len)
		return true
	})
	h.blocks.each(func(r Range) bool { used += r.Len; tiles.insert(r.Off, r.Len); return true })
	var at uint64
	tiles.each(func(r Range) bool {
		if r.Off != at {
			panic(fmt.Sprintf("heap: %v does not follow offset %d", r, at))
		}
		at = r.End()
		return true
	})
	if at != h.size || used != h.used || h.holes.count+h.blocks.count != tiles.count {
		panic(fmt.Sprintf("heap: ends at %d of %d, %d used but %d counted", at, h.size, used, h.used))
	}
	end := uint64(0)
	h.dirty.each(func(r Range) bool {
		if r.Len == 0 || (end > 0 && r.Off <= end) || r.End() > h.size {
			panic(fmt.Sprintf("heap: dirty range %v after %d", r, end))
		}
		end = r.End()
		return true
	})
}
