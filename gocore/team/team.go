// Package team is sets of PEs: which world PEs belong, in which order. It is pure: no communication, no state.
//
// A [Set] maps ranks 0..n-1 to world PEs. Splitting computes the sets that every member of a parent computes alike; making the
// shared resources of a team is package world's business.
package team

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"

	"goshmem/gocore/status"
)

// Set is an ordered list of distinct world PEs. It does not change once made; the zero value is the empty set.
type Set struct {
	pes  []int
	rank map[int]int // world PE -> rank; nil for the identity
}

// World is the set of all n PEs in order.
func World(n int) Set {
	pes := make([]int, n)
	for i := range pes {
		pes[i] = i
	}
	return Set{pes: pes}
}

// Of is a set of the listed world PEs in the given order. They must be distinct and below n, and at least one.
func Of(pes []int, n int) (Set, error) {
	if len(pes) == 0 {
		return Set{}, status.New(status.InvalidArgument, "team create", "the list of PEs is empty")
	}
	rank := make(map[int]int, len(pes))
	for r, pe := range pes {
		if pe < 0 || pe >= n {
			return Set{}, status.At(status.InvalidPE, "team create", pe, "entry %d of the list is not a PE of this world of %d", r, n)
		}
		if first, twice := rank[pe]; twice {
			return Set{}, status.At(status.InvalidArgument, "team create", pe, "it stands twice in the list, at %d and %d", first, r)
		}
		rank[pe] = r
	}
	return Set{pes: append([]int(nil), pes...), rank: rank}, nil
}

// Size is the number of members.
func (s Set) Size() int { return len(s.pes) }

// PE is the world PE of a rank. The rank must be one of the set's.
func (s Set) PE(rank int) int { return s.pes[rank] }

// PEs is a copy of the members by rank.
func (s Set) PEs() []int { return append([]int(nil), s.pes...) }

// Rank is the rank of a world PE, -1 when it is no member.
func (s Set) Rank(pe int) int {
	if s.rank == nil {
		if pe >= 0 && pe < len(s.pes) {
			return pe
		}
		return -1
	}
	if r, ok := s.rank[pe]; ok {
		return r
	}
	return -1
}

// Contains says whether a world PE is a member.
func (s Set) Contains(pe int) bool { return s.Rank(pe) >= 0 }

// Strided is the set of parent ranks start, start+stride, ... (size of them), in that order. A negative stride counts down; stride 0
// is allowed for a single member.
func Strided(parent Set, start, stride, size int) (Set, error) {
	const op = "team split_strided"
	n := parent.Size()
	switch {
	case size < 1:
		return Set{}, status.New(status.InvalidArgument, op, "size is %d; a team has at least one member", size)
	case start < 0 || start >= n:
		return Set{}, status.New(status.InvalidPE, op, "start is %d; the parent has ranks 0 to %d", start, n-1)
	case size > 1 && stride == 0:
		return Set{}, status.New(status.InvalidArgument, op, "stride is 0, which repeats rank %d for %d members", start, size)
	case size > n:
		return Set{}, status.New(status.InvalidArgument, op, "size is %d; the parent has only %d members", size, n)
	}
	if last := int64(start) + int64(stride)*int64(size-1); last < 0 || last >= int64(n) {
		return Set{}, status.New(status.InvalidPE, op, "start %d, stride %d, size %d ends at rank %d; the parent has ranks 0 to %d", start, stride, size, last, n-1)
	}
	pes := make([]int, size)
	for i := range pes {
		pes[i] = parent.PE(start + i*stride)
	}
	return fromDistinct(pes), nil
}

// Grid splits the parent into rows of xrange ranks (the last may be shorter) and columns, and gives those of parent rank me.
func Grid(parent Set, xrange, me int) (row, column Set, err error) {
	const op = "team split_2d"
	n := parent.Size()
	if xrange < 1 {
		return Set{}, Set{}, status.New(status.InvalidArgument, op, "xrange is %d; it must be at least 1", xrange)
	}
	if me < 0 || me >= n {
		return Set{}, Set{}, status.New(status.InvalidPE, op, "rank %d is not in the parent of %d", me, n)
	}
	xrange = min(xrange, n)
	var xs, ys []int
	for first := me - me%xrange; first < n && len(xs) < xrange; first++ {
		xs = append(xs, parent.PE(first))
	}
	for r := me % xrange; r < n; r += xrange {
		ys = append(ys, parent.PE(r))
	}
	return fromDistinct(xs), fromDistinct(ys), nil
}

// fromDistinct is Of for members known to be distinct world PEs.
func fromDistinct(pes []int) Set {
	s := Set{pes: pes, rank: make(map[int]int, len(pes))}
	for r, pe := range pes {
		s.rank[pe] = r
	}
	return s
}

// Translate is the rank in `to` of rank in `from`, -1 when that PE is no member of `to`.
func Translate(from Set, rank int, to Set) (int, error) {
	if rank < 0 || rank >= from.Size() {
		return -1, status.New(status.InvalidPE, "team translate", "rank %d is not in a team of %d", rank, from.Size())
	}
	return to.Rank(from.PE(rank)), nil
}

// Equal says whether both have the same members in the same order.
func (s Set) Equal(t Set) bool {
	if len(s.pes) != len(t.pes) {
		return false
	}
	for i, pe := range s.pes {
		if t.pes[i] != pe {
			return false
		}
	}
	return true
}

// Fingerprint is a hash of members and order, by which PEs notice that they mean different sets.
func (s Set) Fingerprint() uint64 {
	h := fnv.New64a()
	for _, pe := range s.pes {
		_, _ = h.Write(binary.LittleEndian.AppendUint64(nil, uint64(pe))) // a hash never fails
	}
	return h.Sum64()
}

// String writes the members as PEs, ranges where they run: "PEs 0-3,7,5".
func (s Set) String() string {
	text := "PEs "
	for i := 0; i < len(s.pes); {
		j := i
		for j+1 < len(s.pes) && s.pes[j+1] == s.pes[j]+1 {
			j++
		}
		if i > 0 {
			text += ","
		}
		if j > i+1 {
			text += fmt.Sprintf("%d-%d", s.pes[i], s.pes[j])
		} else {
			j = i
			text += fmt.Sprint(s.pes[i])
		}
		i = j + 1
	}
	return text
}
