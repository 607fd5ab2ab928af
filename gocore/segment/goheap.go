package segment

import (
	"crypto/rand"

	"goshmem/gocore/status"
)

// NewGoHeap makes a segment of ordinary Go memory, so that PEs which are goroutines of one process can be run under the
// race detector. It cannot be shared; pages may be given (tests inject 65536). Commit does nothing, Decommit clears.
func NewGoHeap(o Options, page uint64) (*Segment, error) {
	g, err := Plan(page, o.Scratch, o.Heap)
	if err != nil {
		return nil, err
	}
	s := newSegment(g, o.Me, o.N)
	s.own, s.goHeap, s.how = true, true, "Go heap"
	if _, err := rand.Read(s.Nonce[:]); err != nil {
		return nil, status.Wrap(status.System, "create segment", err, "no random numbers")
	}
	raw := make([]byte, g.Size+goHeapAlign)
	skip := -address(raw) & (goHeapAlign - 1)
	s.mem = raw[skip : uint64(skip)+g.Size : uint64(skip)+g.Size]
	writeHeader(s.mem, g, o.Me, o.N, s.Nonce)
	return s, nil
}

// goHeapAlign is the alignment of Go-heap segments; blocks that ask for more get it relative to the segment's start only.
const goHeapAlign = 4096
