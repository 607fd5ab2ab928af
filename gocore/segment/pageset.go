package segment

import "math/bits"

// pageSet is a set of page numbers, sparse: a chunk of bits exists only where some page is in it.
type pageSet struct {
	chunks map[uint64]*[chunkWords]uint64
}

const (
	chunkWords = 512
	chunkPages = chunkWords * 64
)

func newPageSet() pageSet { return pageSet{chunks: map[uint64]*[chunkWords]uint64{}} }

// walk calls f for each word that holds bits of pages [lo, hi), with the mask of those bits. A missing chunk is made when
// create is set and otherwise passed as nil.
func (p *pageSet) walk(lo, hi uint64, create bool, f func(w *uint64, first uint64, mask uint64)) {
	for at := lo; at < hi; {
		first := at &^ 63
		end := min(first+64, hi)
		mask := ^uint64(0) << (at - first)
		if end < first+64 {
			mask &= 1<<(end-first) - 1
		}
		c := p.chunks[at/chunkPages]
		if c == nil && create {
			c = new([chunkWords]uint64)
			p.chunks[at/chunkPages] = c
		}
		if c == nil {
			f(nil, first, mask)
		} else {
			f(&c[at%chunkPages/64], first, mask)
		}
		at = end
	}
}

// missing counts the pages of [lo, hi) that are not in the set.
func (p *pageSet) missing(lo, hi uint64) uint64 {
	var n int
	p.walk(lo, hi, false, func(w *uint64, _, mask uint64) {
		if w == nil {
			n += bits.OnesCount64(mask)
		} else {
			n += bits.OnesCount64(mask &^ *w)
		}
	})
	return uint64(n)
}

// gaps calls f for each maximal run of pages of [lo, hi) that are not in the set, in order, until f returns an error.
func (p *pageSet) gaps(lo, hi uint64, f func(lo, hi uint64) error) error {
	for at := lo; at < hi; {
		end := p.run(at, hi, false)
		if end > at {
			if err := f(at, end); err != nil {
				return err
			}
		}
		at = p.run(end, hi, true)
	}
	return nil
}

// run is the end of the run of pages from at on that all are (in) or all are not (!in) in the set, at most hi.
func (p *pageSet) run(at, hi uint64, in bool) uint64 {
	for at < hi {
		var w uint64
		if c := p.chunks[at/chunkPages]; c != nil {
			w = c[at%chunkPages/64]
		}
		if in {
			w = ^w
		}
		if w >>= at % 64; w != 0 {
			return min(at+uint64(bits.TrailingZeros64(w)), hi)
		}
		at = at&^63 + 64
	}
	return hi
}

func (p *pageSet) add(lo, hi uint64) {
	p.walk(lo, hi, true, func(w *uint64, _, mask uint64) { *w |= mask })
}

func (p *pageSet) remove(lo, hi uint64) {
	p.walk(lo, hi, false, func(w *uint64, _, mask uint64) {
		if w != nil {
			*w &^= mask
		}
	})
}
