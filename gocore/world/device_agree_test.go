package world

import (
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/coll"
	"goshmem/gocore/reduce"
)

// What a member tells comes back as it was told, and words of two records are not taken for one.
func TestAskedIsToldWhole(t *testing.T) {
	a := asked{seq: 7, op: coll.AllReduce, dtype: uint8(reduce.F32), kind: uint8(reduce.Max), way: WayApart, root: -1, count: 1 << 40, at: 0x2000000}
	got, whole := askedFrom(a.words())
	require.True(t, whole)
	require.Equal(t, a, got)
	later := a
	later.seq, later.count = 7+toldKept, 3
	for mixed := 1; mixed < 15; mixed++ { // any mixture of the words of two
		w := a.words()
		for i, v := range later.words() {
			if mixed>>i&1 != 0 {
				w[i] = v
			}
		}
		_, whole := askedFrom(w)
		equal := w == a.words() || w == later.words()
		require.Equal(t, equal, whole, "mixture %04b", mixed)
	}
	_, whole = askedFrom([4]uint64{})
	require.False(t, whole, "memory that nobody has written is no record")
}

// Each field is found, and words name it.
func TestAskedDiffers(t *testing.T) {
	a := asked{op: coll.Broadcast, root: 0, count: 64, at: 128}
	for field, change := range map[string]func(*asked){
		"operations": func(b *asked) { b.op = coll.AllGather },
		"dtypes":     func(b *asked) { b.dtype = uint8(reduce.I32) },
		"sizes":      func(b *asked) { b.count++ },
		"operators":  func(b *asked) { b.kind = uint8(reduce.Sum) },
		"roots":      func(b *asked) { b.root = 1 },
		"ways":       func(b *asked) { b.way = WaySteps },
		"places":     func(b *asked) { b.at = 0 },
	} {
		b := a
		change(&b)
		require.Contains(t, a.differs(b), field)
		require.NotEqual(t, a.String(), asked{}.String())
	}
	require.Empty(t, a.differs(a))
}

// Arguments that an operation has no use for are not compared: callers may leave anything in them.
func TestRecordHasOnlyWhatCounts(t *testing.T) {
	x := (*accelerator)(nil)
	barrier := x.record(coll.Call{Op: coll.Barrier, Root: 3, Count: 9, DType: 2}, WayKernel)
	require.Equal(t, asked{op: coll.Barrier, root: -1}, barrier)
	require.EqualValues(t, -1, x.record(coll.Call{Op: coll.AllReduce, Root: 5, In: 1, Out: 1}, WayHost).root)
	require.EqualValues(t, 5, x.record(coll.Call{Op: coll.Broadcast, Root: 5}, WayHost).root)
	require.Zero(t, x.record(coll.Call{Op: coll.AllGather, RedOp: 4}, WayHost).kind)
}

// Neighbours: everybody is compared with somebody, and two members have one ring between them.
func TestNeighbours(t *testing.T) {
	for n := 1; n <= 8; n++ {
		for me := range n {
			tm := &Team{pes: make([]int, n), me: me}
			switch n {
			case 1:
				require.Equal(t, [2]int{-1, -1}, [2]int{tm.neighbour(before), tm.neighbour(behind)})
			case 2:
				require.Equal(t, [2]int{1 - me, -1}, [2]int{tm.neighbour(before), tm.neighbour(behind)})
			default:
				require.Equal(t, [2]int{(me + n - 1) % n, (me + 1) % n}, [2]int{tm.neighbour(before), tm.neighbour(behind)})
			}
		}
	}
}
