package heap

// spans is an ordered set of disjoint ranges: a treap keyed by offset (Seidel, Aragon: Randomized search trees,
// Algorithmica 16, 1996) that also keeps the largest length below each node. Priorities are a hash of the offset, so the shape
// depends on the contents alone. Insert, remove and search take O(log n) expected steps. Node 0 is nil.
type spans struct {
	nodes []span
	spare []int32 // nodes to use again
	root  int32
	count int
}

type span struct {
	off, len    uint64
	max         uint64 // largest len in this subtree
	prio        uint64
	left, right int32
}

func newSpans() spans { return spans{nodes: make([]span, 1)} }

// hash spreads an offset over 64 bits (the finaliser of splitmix64).
func hash(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}

func (s *spans) insert(off, n uint64) {
	var t int32
	if k := len(s.spare); k > 0 {
		t, s.spare = s.spare[k-1], s.spare[:k-1]
	} else {
		s.nodes = append(s.nodes, span{})
		t = int32(len(s.nodes) - 1)
	}
	s.nodes[t] = span{off: off, len: n, max: n, prio: hash(off)}
	l, r := s.split(s.root, off)
	s.root = s.merge(s.merge(l, t), r)
	s.count++
}

// remove takes out the range that begins at off.
func (s *spans) remove(off uint64) (n uint64, ok bool) {
	l, rest := s.split(s.root, off)
	t, r := s.split(rest, off+1)
	s.root = s.merge(l, r)
	if t == 0 {
		return 0, false
	}
	s.spare = append(s.spare, t)
	s.count--
	return s.nodes[t].len, true
}

// split divides tree t into the ranges that begin before off and the others.
func (s *spans) split(t int32, off uint64) (l, r int32) {
	if t == 0 {
		return 0, 0
	}
	n := &s.nodes[t]
	if n.off < off {
		n.right, r = s.split(n.right, off)
		l = t
	} else {
		l, n.left = s.split(n.left, off)
		r = t
	}
	s.renew(t)
	return l, r
}

// merge joins two trees, all of l before all of r.
func (s *spans) merge(l, r int32) int32 {
	switch {
	case l == 0:
		return r
	case r == 0:
		return l
	case s.nodes[l].prio >= s.nodes[r].prio:
		s.nodes[l].right = s.merge(s.nodes[l].right, r)
		s.renew(l)
		return l
	default:
		s.nodes[r].left = s.merge(l, s.nodes[r].left)
		s.renew(r)
		return r
	}
}

func (s *spans) renew(t int32) {
	n := &s.nodes[t]
	n.max = max(n.len, s.nodes[n.left].max, s.nodes[n.right].max)
}

// floor is the last range that begins at or before off.
func (s *spans) floor(off uint64) (r Range, ok bool) {
	for t := s.root; t != 0; {
		n := &s.nodes[t]
		if n.off <= off {
			r, ok = Range{n.off, n.len}, true
			t = n.right
		} else {
			t = n.left
		}
	}
	return r, ok
}

// ceil is the first range that begins at or after off.
func (s *spans) ceil(off uint64) (r Range, ok bool) {
	for t := s.root; t != 0; {
		n := &s.nodes[t]
		if n.off >= off {
			r, ok = Range{n.off, n.len}, true
			t = n.left
		} else {
			t = n.right
		}
	}
	return r, ok
}

// lowestFit is the lowest multiple of align, not below atLeast, with size bytes of one range behind it. Subtrees whose
// largest range is too short are skipped; with alignments above Quantum a long enough range may still not fit, and the next is tried.
func (s *spans) lowestFit(t int32, size, align, atLeast uint64) (uint64, bool) {
	if t == 0 || s.nodes[t].max < size {
		return 0, false
	}
	n := s.nodes[t]
	if n.off > atLeast { // else everything on the left ends before atLeast
		if off, ok := s.lowestFit(n.left, size, align, atLeast); ok {
			return off, true
		}
	}
	start := (max(n.off, atLeast) + align - 1) &^ (align - 1)
	if end := n.off + n.len; start < end && size <= end-start {
		return start, true
	}
	return s.lowestFit(n.right, size, align, atLeast)
}

// highestFit is the highest multiple of align with size bytes of one range behind it.
func (s *spans) highestFit(t int32, size, align uint64) (uint64, bool) {
	if t == 0 || s.nodes[t].max < size {
		return 0, false
	}
	n := s.nodes[t]
	if off, ok := s.highestFit(n.right, size, align); ok {
		return off, true
	}
	if n.len >= size {
		if start := (n.off + n.len - size) &^ (align - 1); start >= n.off {
			return start, true
		}
	}
	return s.highestFit(n.left, size, align)
}

// each visits the ranges by rising offset until f returns false.
func (s *spans) each(f func(Range) bool) { s.walk(s.root, f) }

func (s *spans) walk(t int32, f func(Range) bool) bool {
	if t == 0 {
		return true
	}
	n := s.nodes[t]
	return s.walk(n.left, f) && f(Range{n.off, n.len}) && s.walk(n.right, f)
}
