package team

import (
	"fmt"
	"math"
	"testing"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
)

func TestStridedEqualsTheDefinitionForEveryArgument(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		parent, err := Strided(World(2*n), 2*n-1, -2, n) // odd PEs, backwards
		require.NoError(t, err)
		for start := -2; start <= n+1; start++ {
			for stride := -n - 1; stride <= n+1; stride++ {
				for size := -1; size <= n+1; size++ {
					checkStrided(t, parent, start, stride, size)
				}
			}
		}
	}
}

func checkStrided(t *testing.T, parent Set, start, stride, size int) {
	var want []int
	seen := map[int]bool{}
	valid := size >= 1
	for i := range max(size, 0) {
		r := start + i*stride
		if r < 0 || r >= parent.Size() || seen[r] {
			valid = false
			break
		}
		seen[r] = true
		want = append(want, parent.PE(r))
	}
	s, err := Strided(parent, start, stride, size)
	what := fmt.Sprintf("start %d stride %d size %d of %v", start, stride, size, parent)
	if !valid {
		require.Error(t, err, what)
		return
	}
	require.NoError(t, err, what)
	require.Equal(t, want, s.PEs(), what)
	for r, pe := range want {
		require.Equal(t, r, s.Rank(pe))
	}
	require.Equal(t, -1, s.Rank(1000))
	require.Equal(t, -1, s.Rank(-1))
}

func TestStridedDoesNotOverflow(t *testing.T) {
	_, err := Strided(World(8), 1, math.MaxInt32, 8)
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = Strided(World(8), 1, math.MinInt32, 2)
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = Strided(World(8), 1, 1, math.MaxInt32)
	require.ErrorIs(t, err, status.InvalidArgument)
}

func TestGridCoversTheParentOnce(t *testing.T) {
	for n := 1; n <= 9; n++ {
		parent, err := Strided(World(n), n-1, -1, n)
		require.NoError(t, err)
		for xrange := 1; xrange <= n+2; xrange++ {
			for me := range n {
				row, column, err := Grid(parent, xrange, me)
				require.NoError(t, err)
				x := min(xrange, n)
				var xs, ys []int
				for r := range n {
					if r/x == me/x {
						xs = append(xs, parent.PE(r))
					}
					if r%x == me%x {
						ys = append(ys, parent.PE(r))
					}
				}
				require.Equal(t, xs, row.PEs())
				require.Equal(t, ys, column.PEs())
				require.True(t, row.Contains(parent.PE(me)) && column.Contains(parent.PE(me)))
			}
		}
	}
	_, _, err := Grid(World(3), 0, 0)
	require.ErrorIs(t, err, status.InvalidArgument)
	_, _, err = Grid(World(3), 1, 3)
	require.ErrorIs(t, err, status.InvalidPE)
}

func TestListsTranslationAndFingerprints(t *testing.T) {
	a, err := Of([]int{5, 0, 3}, 6)
	require.NoError(t, err)
	b, err := Of([]int{3, 5, 1}, 6)
	require.NoError(t, err)
	for r, want := range []int{1, -1, 0} {
		got, err := Translate(a, r, b)
		require.NoError(t, err)
		require.Equal(t, want, got)
	}
	_, err = Translate(a, 3, b)
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = Of(nil, 6)
	require.ErrorIs(t, err, status.InvalidArgument)
	_, err = Of([]int{1, 2, 1}, 6)
	require.ErrorContains(t, err, "twice in the list, at 0 and 2")
	_, err = Of([]int{6}, 6)
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = Of([]int{-1}, 6)
	require.ErrorIs(t, err, status.InvalidPE)
	same, err := Of([]int{0, 1, 2}, 3)
	require.NoError(t, err)
	require.True(t, same.Equal(World(3)))
	require.Equal(t, same.Fingerprint(), World(3).Fingerprint())
	turned, err := Of([]int{0, 2, 1}, 3)
	require.NoError(t, err)
	require.False(t, turned.Equal(same))
	require.NotEqual(t, same.Fingerprint(), turned.Fingerprint())
	require.Equal(t, "PEs 5,0,3", a.String())
	require.Equal(t, "PEs 0-2", same.String())
	list := a.PEs()
	list[0] = 99
	require.Equal(t, 5, a.PE(0), "the set is its own")
}
