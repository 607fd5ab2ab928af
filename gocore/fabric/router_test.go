package fabric_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/fabric"
	"goshmem/gocore/fabric/faulty"
	"goshmem/gocore/fabric/shm"
	"goshmem/gocore/status"
)

func at(pe int, off uint64) fabric.Addr { return fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, off)} }

// pair is two faulty transports over one memory, so that a test sees which of them was used.
func pair(mem [][]byte) (a, b *faulty.Transport) {
	plain := shm.New(shm.Config{N: len(mem), Segment: func(pe int, _ uint8) []byte { return mem[pe] }})
	return faulty.New(plain), faulty.New(plain)
}

func TestRouterSendsEachPEOnItsRoute(t *testing.T) {
	mem := [][]byte{make([]byte, 64), make([]byte, 64), make([]byte, 64)}
	a, b := pair(mem)
	r := fabric.NewRouter([]fabric.Route{{a, "mapped"}, {b, "another host"}, {nil, "no network"}})
	ctx := context.Background()
	require.NoError(t, r.Put(ctx, at(0, 1), []byte("to 0")))
	require.NoError(t, r.Put(ctx, at(1, 1), []byte("to 1")))
	require.NoError(t, r.PutSignal(ctx, at(1, 8), nil, at(1, 16), fabric.SignalAdd, 3))
	got := make([]byte, 4)
	require.NoError(t, r.Get(ctx, got, at(1, 1)))
	require.Equal(t, "to 1", string(got))
	old, err := r.Atomic(ctx, at(1, 16), fabric.Atomic{Op: fabric.Fetch, Width: 8})
	require.NoError(t, err)
	require.EqualValues(t, 3, old)
	require.NoError(t, r.Fence(ctx, 0))
	require.Equal(t, []int{1, 1, 1}, []int{a.Calls(faulty.Put), b.Calls(faulty.Put), a.Calls(faulty.Fence)})
	require.Equal(t, []int{2, 4}, []int{a.Calls(faulty.Any), b.Calls(faulty.Any)})
	err = r.Put(ctx, at(2, 0), nil)
	require.ErrorIs(t, err, status.PeerUnreachable)
	require.ErrorContains(t, err, "no network")
	for _, pe := range []int{-1, 3} {
		require.ErrorIs(t, r.Put(ctx, at(pe, 0), nil), status.InvalidPE)
	}
	require.Equal(t, "shm+shm", r.Name())
	require.Contains(t, r.String(), "PE 1: shm (another host)\nPE 2: none (no network)")
	require.True(t, r.Abilities().LoadStore)
	require.False(t, r.Abilities().Encrypted)
}

func TestRouterQuietsAllTransportsDespiteAnError(t *testing.T) {
	a, b := pair([][]byte{make([]byte, 64), make([]byte, 64)})
	lost := errors.New("lost")
	a.Inject(faulty.Fault{Op: faulty.Quiet, PE: faulty.AnyPE, Err: lost})
	r := fabric.NewRouter([]fabric.Route{{a, ""}, {b, ""}}, a)
	require.Equal(t, lost, r.Quiet(context.Background()))
	require.NoError(t, r.Quiet(context.Background()))
	require.Equal(t, []int{2, 2}, []int{a.Calls(faulty.Quiet), b.Calls(faulty.Quiet)})
	require.NoError(t, r.Close())
}
