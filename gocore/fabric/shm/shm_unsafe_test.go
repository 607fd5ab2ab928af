package shm

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"unsafe"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

func at(pe int, off uint64) fabric.Addr { return fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, off)} }

type memory struct {
	mem   [][]byte
	rings []atomic.Int32
	dead  atomic.Int32 // PE + 1
}

var errDead = errors.New("it died")

func job(n, size int) (*memory, *Transport) {
	m := &memory{rings: make([]atomic.Int32, n)}
	for range n {
		words := make([]uint64, (size+7)/8)
		m.mem = append(m.mem, unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), size))
	}
	return m, New(Config{N: n, Segment: func(pe int, seg uint8) []byte {
		if seg != 0 {
			return nil
		}
		return m.mem[pe]
	}, Ring: func(pe int) { m.rings[pe].Add(1) }, Dead: func(pe int) error {
		if int(m.dead.Load()) == pe+1 {
			return errDead
		}
		return nil
	}})
}

func TestPutAndGetOddSizes(t *testing.T) {
	m, tr := job(2, 1<<16)
	ctx := context.Background()
	for _, size := range []int{0, 1, 2, 3, 4, 7, 8, 9, 63, 64, 65, 4095, 4096, 4097, 50000} {
		for off := uint64(100); off < 109; off++ {
			src := make([]byte, size)
			_, _ = rand.Read(src)
			_, _ = rand.Read(m.mem[1])
			want := append([]byte(nil), m.mem[1]...)
			copy(want[off:], src)
			require.NoError(t, tr.Put(ctx, at(1, off), src))
			require.Equal(t, want, m.mem[1])
			got := make([]byte, size)
			require.NoError(t, tr.Get(ctx, got, at(1, off)))
			require.Equal(t, src, got)
		}
	}
	require.Zero(t, m.rings[0].Load())
	require.Positive(t, m.rings[1].Load())
}

func TestRefusals(t *testing.T) {
	m, tr := job(2, 64)
	ctx := context.Background()
	for name, c := range map[string]struct {
		err  error
		code status.Code
	}{
		"past the end":    {tr.Put(ctx, at(1, 60), make([]byte, 5)), status.NotSymmetric},
		"wraps around":    {tr.Get(ctx, make([]byte, 5), at(1, 1<<56-1)), status.NotSymmetric},
		"no such PE":      {tr.Put(ctx, at(2, 0), nil), status.InvalidPE},
		"negative PE":     {tr.Fence(ctx, -1), status.InvalidPE},
		"no such segment": {tr.Put(ctx, fabric.Addr{PE: 1, Ref: fabric.MakeRef(3, 0)}, nil), status.PeerUnreachable},
		"misaligned sig":  {tr.PutSignal(ctx, at(1, 0), []byte{1}, at(1, 4), fabric.SignalSet, 1), status.Misaligned},
		"two PEs":         {tr.PutSignal(ctx, at(1, 0), []byte{1}, at(0, 8), fabric.SignalSet, 1), status.InvalidArgument},
		"bad signal op":   {tr.PutSignal(ctx, at(1, 0), []byte{1}, at(1, 8), 9, 1), status.InvalidArgument},
	} {
		require.ErrorIs(t, c.err, c.code, name)
	}
	_, err := tr.Atomic(ctx, at(1, 4), fabric.Atomic{Op: fabric.Add, Width: 8})
	require.ErrorIs(t, err, status.Misaligned)
	require.ErrorContains(t, err, "PE 1")
	require.Equal(t, make([]byte, 64), m.mem[1], "a refused call changes nothing")
	m.dead.Store(2)
	require.Equal(t, errDead, tr.Put(ctx, at(1, 0), []byte{1}))
	require.NoError(t, tr.Put(ctx, at(0, 0), []byte{1}))
}

func TestAtomicsAreExact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		m, tr := job(n, 64)
		var wg sync.WaitGroup
		for range n {
			wg.Add(1)
			go func() {
				defer wg.Done()
				for range 2000 {
					_, _ = tr.Atomic(context.Background(), at(n-1, 8), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: 3})
					_, _ = tr.Atomic(context.Background(), at(n-1, 20), fabric.Atomic{Op: fabric.Inc, Width: 4})
				}
			}()
		}
		wg.Wait()
		require.EqualValues(t, 6000*n, *(*uint64)(unsafe.Pointer(&m.mem[n-1][8])))
		require.EqualValues(t, 2000*n, *(*uint32)(unsafe.Pointer(&m.mem[n-1][20])))
	}
}

func TestSignalReleasesTheData(t *testing.T) {
	m, tr := job(2, 8192)
	ctx := context.Background()
	done := make(chan error, 1)
	go func() {
		for round := uint64(1); round <= 200; round++ {
			for v := uint64(0); v < round; runtime.Gosched() {
				v, _ = tr.Atomic(ctx, at(1, 0), fabric.Atomic{Op: fabric.Fetch, Width: 8})
			}
			for i, b := range m.mem[1][64:5064] {
				if b != byte(round) {
					done <- fmt.Errorf("round %d: byte %d is %d", round, i, b)
					return
				}
			}
			_, _ = tr.Atomic(ctx, at(0, 0), fabric.Atomic{Op: fabric.Set, Width: 8, Operand: round})
		}
		done <- nil
	}()
	src := make([]byte, 5000)
	for round := uint64(1); round <= 200; round++ {
		for i := range src {
			src[i] = byte(round)
		}
		require.NoError(t, tr.PutSignal(ctx, at(1, 64), src, at(1, 0), fabric.SignalAdd, 1))
		for v := uint64(0); v < round; runtime.Gosched() {
			v, _ = tr.Atomic(ctx, at(0, 0), fabric.Atomic{Op: fabric.Fetch, Width: 8})
		}
	}
	require.NoError(t, <-done)
}
