package world

import (
	"sync"

	"goshmem/gocore/heap"
	"goshmem/gocore/segment"
	"goshmem/gocore/status"
)

// scratch hands out this PE's control blocks and staging from its own segment. Peers learn offsets from arrivals and
// exchanges, so nothing here is agreed.
type scratch struct {
	seg *segment.Segment
	off uint64 // where scratch begins in the segment

	mu   sync.Mutex
	free *heap.Heap // offsets from off; guarded by mu
}

func newScratch(s *segment.Segment) *scratch {
	return &scratch{seg: s, off: s.Geo.ScratchOff, free: heap.New(s.Geo.ScratchLen)}
}

// Alloc gives n zeroed bytes whose pages are there, aligned to two cache lines, and their offset in the segment.
func (s *scratch) Alloc(n uint64) (off uint64, mem []byte, err error) {
	const align = 128
	s.mu.Lock()
	at, dirty, ok := s.free.FirstFit(n, align)
	st := s.free.Stats()
	s.mu.Unlock()
	if !ok {
		return 0, nil, status.New(status.NoMemory, "scratch", "%d bytes for control and staging do not fit: %d of %d bytes are used, the largest hole is %d; raise SHMEM_SCRATCH_SIZE or destroy teams",
			n, st.Used, st.Size, st.LargestHole)
	}
	if err := s.seg.Commit(s.off+at, n); err != nil {
		s.Free(s.off + at)
		return 0, nil, err
	}
	all := s.seg.Bytes()
	for _, d := range dirty {
		clear(all[s.off+d.Off : s.off+d.End()])
	}
	return s.off + at, all[s.off+at : s.off+at+n : s.off+at+n], nil
}

// Free takes back what Alloc gave.
func (s *scratch) Free(off uint64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	n, err := s.free.Free(off - s.off)
	if err != nil {
		panic(err) // only this package frees, and only what it was given
	}
	const keep = 1 << 20 // larger leases give their pages back, so that a burst does not stay resident
	if n >= keep && s.seg.Decommit(off, n) == nil {
		s.free.Clean(off-s.off, n)
	}
}

// Used is the bytes handed out, for info().
func (s *scratch) Used() uint64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.free.Stats().Used
}
