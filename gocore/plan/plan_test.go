package plan

import (
	"fmt"
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// scenario is one collective of n members with random inputs.
type scenario struct {
	Params
	inPlace bool
	counts  [][]uint64 // by member
	ins     [][]byte
	outLens []uint64
}

func bytesOf(r *rand.Rand, n uint64) []byte {
	b := make([]byte, n)
	_, _ = r.Read(b) // never fails
	return b
}

func newScenario(r *rand.Rand, p Params) *scenario {
	s := &scenario{Params: p}
	s.Pitch = s.Len
	n := uint64(p.N)
	if p.Op == AllToAllV || p.Op == AllGatherV {
		s.drawCounts(r)
	}
	for m := range p.N {
		in, out := s.Len, s.Len
		root := m == p.Root
		switch p.Op {
		case AllGather:
			out = n * s.Len
		case Gather:
			out = n * s.Len
			if !root {
				out = 0
			}
		case Reduce:
			if !root {
				out = 0
			}
		case Broadcast:
			if !root {
				in = 0
			}
		case Scatter:
			in = n * s.Len
			if !root {
				in = 0
			}
		case ReduceScatter:
			in = n * s.Len
		case AllToAll:
			in, out = n*s.Len, n*s.Len
		case AllGatherV:
			in, out = s.counts[m][m], 0
			for _, c := range s.counts[m] {
				out += c
			}
		case AllToAllV:
			in, out = extent(s.counts[m], 0, p.N), extent(s.counts[m], 2, p.N)
		}
		s.ins = append(s.ins, bytesOf(r, in))
		s.outLens = append(s.outLens, out)
	}
	return s
}

func extent(c []uint64, col, n int) (m uint64) {
	for i := range n {
		if b := c[col*n+i]; b > 0 {
			m = max(m, b+c[(col+1)*n+i])
		}
	}
	return m
}

func (s *scenario) drawCounts(r *rand.Rand) {
	n := s.N
	size := func() uint64 { return uint64(r.Intn(int(s.Len)*2 + 1)) }
	if s.Op == AllGatherV {
		c := make([]uint64, n)
		for i := range c {
			c[i] = size()
		}
		for range n {
			s.counts = append(s.counts, c)
		}
		return
	}
	table := make([][]uint64, n)
	for i := range table {
		table[i] = make([]uint64, n)
		for j := range table[i] {
			if r.Intn(4) > 0 {
				table[i][j] = size()
			}
		}
	}
	for m := range n {
		c := make([]uint64, 4*n)
		in, out := uint64(r.Intn(5)), uint64(r.Intn(5))
		for j := range n {
			c[j], c[n+j] = table[m][j], in
			c[2*n+j], c[3*n+j] = table[j][m], out
			in += table[m][j] + uint64(r.Intn(3))
			out += table[j][m] + uint64(r.Intn(3))
		}
		s.counts = append(s.counts, c)
	}
}

// buffers lays the inputs out; in place, In and Out of a member are the same memory.
func (s *scenario) buffers() [][4]memory {
	var all [][4]memory
	for m := range s.N {
		var b [4]memory
		in := newMemory(len(s.ins[m]), s.N)
		b[Out] = newMemory(int(s.outLens[m]), s.N)
		if s.inPlace && len(in) > 0 && len(b[Out]) > 0 {
			whole := newMemory(max(len(in), len(b[Out])), s.N)
			in, b[Out] = whole[:len(in)], whole[:len(b[Out])]
		}
		for i, v := range s.ins[m] {
			in[i].value = v
		}
		b[In], b[Stage] = in, newMemory(int(s.Stage), s.N)
		all = append(all, b)
	}
	return all
}

// want is the expected result of a member, computed the plain way; nil when it has none.
func (s *scenario) want(m int) []byte {
	l := s.Len
	var parts [][]byte
	for r := range s.N {
		switch s.Op {
		case ReduceScatter, AllToAll:
			parts = append(parts, s.ins[r][uint64(m)*l:uint64(m+1)*l])
		case AllToAllV:
			c := s.counts[r]
			var part []byte
			if c[m] > 0 {
				part = s.ins[r][c[s.N+m]:][:c[m]]
			}
			parts = append(parts, part)
		default:
			parts = append(parts, s.ins[r])
		}
	}
	switch s.Op {
	case AllReduce, ReduceScatter:
		return fold(parts)
	case Reduce:
		if m == s.Root {
			return fold(parts)
		}
		return nil
	case Broadcast:
		return s.ins[s.Root]
	case Scatter:
		return s.ins[s.Root][uint64(m)*l : uint64(m+1)*l]
	case Gather:
		if m != s.Root {
			return nil
		}
	}
	var all []byte
	for _, p := range parts {
		all = append(all, p...)
	}
	return all
}

func (s *scenario) check(t *testing.T, r *rand.Rand) {
	name := fmt.Sprintf("op %d mode %d n %d root %d len %d stage %d crowded %v in place %v", s.Op, s.Mode, s.N, s.Root, s.Len, s.Stage, s.Crowded, s.inPlace)
	var plans []Plan
	for m := range s.N {
		p := s.Params
		p.Me = m
		if s.counts != nil {
			p.Counts = s.counts[m]
		}
		made, err := Make(p)
		require.NoError(t, err, name)
		plans = append(plans, made)
	}
	bufs := s.buffers()
	sim := newSimulation(s.N, plans, bufs)
	sim.slabbed = s.Mode == Slab
	require.NoError(t, sim.run(r), name)
	for m := range s.N {
		s.checkOut(t, name, m, bufs[m][Out])
	}
}

func (s *scenario) checkOut(t *testing.T, name string, m int, out memory) {
	if s.Op == AllToAllV {
		at := uint64(0)
		all := s.want(m)
		for r := range s.N {
			n, off := s.counts[m][2*s.N+r], s.counts[m][3*s.N+r]
			for i := range n {
				require.Equal(t, all[at+i], out[off+i].value, "%s: rank %d, byte %d from %d", name, m, i, r)
			}
			at += n
		}
		return
	}
	for i, v := range s.want(m) {
		if out[i].value != v {
			require.Failf(t, "wrong result", "%s: rank %d, byte %d is %d, want %d", name, m, i, out[i].value, v)
		}
	}
}

func hasMode(op Op, mode Mode) bool {
	switch op {
	case AllGatherV:
		return mode != Direct
	case AllToAllV:
		return mode == Staged
	}
	return true
}

// inPlaceModes says where in and out of a member may be the same memory (Direct is refused by the executors, but for these).
func inPlaceAllowed(op Op, mode Mode) bool {
	if op == AllToAllV || op == AllGatherV {
		return false
	}
	return mode != Direct || op == AllReduce || op == Reduce || op == Broadcast
}

func TestEveryPlanInRandomOrder(t *testing.T) {
	r := rand.New(rand.NewSource(7))
	for op := Broadcast; op <= AllToAllV; op++ {
		for _, mode := range []Mode{Direct, Staged, Slab} {
			if !hasMode(op, mode) {
				continue
			}
			for _, n := range []int{1, 2, 3, 5, 8} {
				for _, length := range []uint64{0, 1, 64, 100, 900, 2500} {
					if n*int(length) > 8000 {
						continue
					}
					for _, inPlace := range []bool{false, true} {
						if inPlace && !inPlaceAllowed(op, mode) {
							continue
						}
						p := Params{Op: op, Mode: mode, N: n, Root: r.Intn(n), Elem: 1, Len: length, Stage: uint64(64*(4*n+2) + r.Intn(4096)), Crowded: r.Intn(2) == 0}
						if mode == Slab {
							p.Stage = 8*2500*2 + 64
						}
						s := newScenario(r, p)
						s.inPlace = inPlace
						s.check(t, r)
					}
				}
			}
		}
	}
}

// TestPlansAreShort keeps the cost of planning bounded: a section of the largest kind on 8 members.
func TestPlansAreShort(t *testing.T) {
	for _, op := range []Op{AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast} {
		p, err := Make(Params{Op: op, Mode: Staged, N: 8, Elem: 4, Len: 2 << 20, Pitch: 2 << 20, Stage: 1 << 20})
		require.NoError(t, err)
		require.Less(t, len(p.Steps), 3000, "op %d", op)
	}
}

func TestTooLittleStagingIsAnError(t *testing.T) {
	_, err := Make(Params{Op: AllReduce, Mode: Staged, N: 64, Elem: 1, Len: 1 << 20, Pitch: 1 << 20, Stage: 4096})
	require.ErrorContains(t, err, "4096 bytes of staging are too few for 64 members")
}
