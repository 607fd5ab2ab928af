package segment

import (
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// Geometry is where the parts of a segment lie: [header][scratch][heap], offsets from its first byte.
type Geometry struct {
	Page       uint64
	ScratchOff uint64
	ScratchLen uint64
	HeapOff    uint64
	HeapLen    uint64
	Size       uint64
}

// heapAlign is the alignment of the heap within a segment: huge pages can back it, whatever the page size.
const heapAlign = 2 << 20

// maxOffset is the first offset that a fabric reference cannot hold.
const maxOffset = uint64(1) << 56

// Plan lays out a segment for pages of the given size. Lengths are rounded up to whole pages. It is pure: all PEs that
// give the same lengths and page size get the same geometry.
func Plan(page, scratch, heap uint64) (Geometry, error) {
	if page == 0 || page&(page-1) != 0 {
		return Geometry{}, status.New(status.Internal, "segment layout", "page size %d is not a power of two", page)
	}
	if scratch >= maxOffset/4 || heap >= maxOffset/2 {
		return Geometry{}, status.New(status.BadConfig, "segment layout",
			"heap of %d and scratch of %d bytes do not fit below 2^56; lower SHMEM_SYMMETRIC_SIZE or SHMEM_SCRATCH_SIZE", heap, scratch)
	}
	g := Geometry{Page: page}
	g.ScratchOff = roundUp(layout.HeaderSize, page)
	g.ScratchLen = roundUp(scratch, page)
	g.HeapOff = roundUp(g.ScratchOff+g.ScratchLen, max(heapAlign, page))
	g.HeapLen = roundUp(heap, page)
	g.Size = g.HeapOff + g.HeapLen
	return g, nil
}

func roundUp(n, to uint64) uint64 { return (n + to - 1) &^ (to - 1) }
