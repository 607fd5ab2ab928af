package device

import (
	"errors"
	"fmt"
	"testing"

	"goshmem/gocore/memory"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestPartsOfAHeap(t *testing.T) {
	var ended []string
	trouble := map[int]error{}
	end := func(pe int, at uintptr, v string) error {
		ended = append(ended, fmt.Sprintf("%d %#x %s", pe, at, v))
		return trouble[pe]
	}
	for _, bad := range [][3]int{{0, 0, 1}, {1, -1, 1}, {1, 1, 1}, {1, 0, 0}} {
		_, err := NewParts(uint64(bad[0]), 4096, bad[1], bad[2], end)
		assert.ErrorIs(t, err, status.InvalidArgument, "%v", bad)
	}
	p, err := NewParts(5000, 4096, 1, 4, end)
	require.NoError(t, err)
	p.Own(0x1000, "own")
	assert.Equal(t, []any{uint64(8192), uint64(4096), memory.Device, 1, uintptr(0x1000)}, []any{p.Size(), p.Page(), p.Kind(), p.Me(), p.Base(1)})
	assert.NoError(t, p.Commit(8000, 192))
	assert.ErrorIs(t, p.Commit(8000, 193), status.NotSymmetric)
	assert.ErrorIs(t, p.Decommit(1, ^uint64(0)), status.NotSymmetric)

	take := func(pe int, at uintptr, err error) error {
		return p.Take(pe, func() (uintptr, string, error) { return at, fmt.Sprint("of ", pe), err })
	}
	require.NoError(t, take(0, 0x9000, nil))
	refused := errors.New("refused")
	assert.ErrorIs(t, take(3, 0x5000, refused), refused)
	assert.Zero(t, p.Base(3), "what failed is not there")
	require.NoError(t, take(3, 0x5000, nil))
	for _, pe := range []int{0, 1, -1, 4} {
		assert.ErrorIs(t, take(pe, 1, nil), status.InvalidArgument, "PE %d", pe)
	}
	assert.Equal(t, []uintptr{0, 0x9000, 0x1000, 0, 0x5000, 0}, []uintptr{p.Base(-1), p.Base(0), p.Base(1), p.Base(2), p.Base(3), p.Base(4)})
	for _, pe := range []int{1, -1, 4} {
		assert.ErrorIs(t, p.Unmap(pe), status.InvalidPE, "PE %d", pe)
	}
	require.NoError(t, p.Unmap(2), "nothing is mapped")
	require.NoError(t, p.Unmap(3))
	require.NoError(t, p.Unmap(3))
	require.NoError(t, take(3, 0x7000, nil), "and again")

	trouble[3], trouble[1] = errors.New("first"), errors.New("second")
	assert.ErrorIs(t, p.End(), trouble[3])
	assert.Equal(t, []string{"3 0x5000 of 3", "3 0x7000 of 3", "0 0x9000 of 0", "1 0x1000 own"}, ended, "the own part last")
	assert.NoError(t, p.End())
	assert.ErrorIs(t, take(2, 1, nil), status.InvalidArgument, "closed stays closed")
	assert.Len(t, ended, 4)
}
