package faulty

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/fabric"
	"goshmem/gocore/fabric/shm"
)

func TestFaults(t *testing.T) {
	mem := make([]byte, 64)
	inner := shm.New(shm.Config{N: 2, Segment: func(int, uint8) []byte { return mem }})
	broken, late := errors.New("broken"), errors.New("answer lost")
	hold := make(chan struct{})
	f := New(inner,
		Fault{Op: Put, PE: 1, Nth: 2, Times: 2, Err: broken},
		Fault{Op: Atomic, PE: AnyPE, Err: late, After: true},
		Fault{Op: Get, PE: 0, Hold: hold})
	ctx := context.Background()
	put := func(pe int) error { return f.Put(ctx, fabric.Addr{PE: pe}, []byte{9}) }
	require.NoError(t, put(1))
	require.NoError(t, put(0))
	require.Equal(t, broken, put(1))
	require.NoError(t, put(0))
	require.Equal(t, broken, put(1))
	require.NoError(t, put(1))
	add := fabric.Atomic{Op: fabric.Add, Width: 8, Operand: 1}
	_, err := f.Atomic(ctx, fabric.Addr{PE: 0, Ref: 8}, add)
	require.Equal(t, late, err)
	old, err := f.Atomic(ctx, fabric.Addr{PE: 0, Ref: 8}, add)
	require.NoError(t, err)
	require.EqualValues(t, 1, old, "the first update had its effect")
	short, cancel := context.WithTimeout(ctx, 20*time.Millisecond)
	defer cancel()
	require.ErrorIs(t, f.Get(short, make([]byte, 1), fabric.Addr{}), context.DeadlineExceeded)
	require.NoError(t, f.Get(ctx, make([]byte, 1), fabric.Addr{}))
	close(hold)
	require.Equal(t, 6, f.Calls(Put))
	require.Equal(t, 10, f.Calls(Any))
}
