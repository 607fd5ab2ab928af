package tcp

import (
	"bytes"
	"context"
	"crypto/rand"
	"fmt"
	"math"
	"runtime"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

var testSecret = []byte("the secret of a world in a test.")

// job is n PEs in this process, all connected.
type job struct {
	pes  []*Transport
	mem  []*heap
	mu   sync.Mutex
	lost map[[2]int]error // by (who noticed, who was lost)
}

func newJob(t testing.TB, n, size int) *job {
	t.Helper()
	j := &job{lost: map[[2]int]error{}}
	peers := map[int][]string{}
	for pe := range n {
		j.mem = append(j.mem, newHeap(pe, size))
		tr, err := New(Config{Me: pe, N: n, Secret: testSecret, Memory: j.mem[pe], Interface: "127.0.0.1", Lost: func(who int, err error) {
			j.mu.Lock()
			j.lost[[2]int{pe, who}] = err
			j.mu.Unlock()
		}})
		require.NoError(t, err)
		j.pes = append(j.pes, tr)
		peers[pe] = tr.Addresses()
		t.Cleanup(func() { _ = tr.Close() })
	}
	for _, tr := range j.pes {
		require.NoError(t, tr.Connect(within(t, time.Minute), peers))
	}
	return j
}

func within(t testing.TB, d time.Duration) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), d)
	t.Cleanup(cancel)
	return ctx
}

func at(pe int, off uint64) fabric.Addr { return fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, off)} }

func random(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}

func noLeaks(t *testing.T) {
	before := runtime.NumGoroutine()
	t.Cleanup(func() {
		for until := time.Now().Add(30 * time.Second); runtime.NumGoroutine() > before; time.Sleep(time.Millisecond) {
			if time.Now().After(until) {
				buf := make([]byte, 1<<16)
				t.Fatalf("%d goroutines left, %d before\n%s", runtime.NumGoroutine(), before, buf[:runtime.Stack(buf, true)])
			}
		}
	})
}

var _ fabric.Transport = (*Transport)(nil)

func TestOddSizesAndOffsets(t *testing.T) {
	noLeaks(t)
	j := newJob(t, 2, 1<<12)
	ctx := within(t, 2*time.Minute)
	for size := range 66 {
		for off := range 9 {
			where := uint64(100*8 + off)
			before := random(200)
			copy(j.mem[1].bytes[where-50:], before) // no request is under way here
			src := random(size)
			require.NoError(t, j.pes[0].Put(ctx, at(1, where), src))
			require.NoError(t, j.pes[0].Quiet(ctx))
			got := make([]byte, 200)
			require.NoError(t, j.pes[0].Get(ctx, got, at(1, where-50)))
			copy(before[50:], src)
			require.Equal(t, before, got, "size %d offset %d: neighbours must stay", size, off)
		}
	}
}

func TestSelf(t *testing.T) {
	j := newJob(t, 1, 4096)
	ctx := within(t, time.Minute)
	src := random(33)
	require.NoError(t, j.pes[0].PutSignal(ctx, at(0, 64), src, at(0, 8), fabric.SignalAdd, 5))
	got := make([]byte, 33)
	require.NoError(t, j.pes[0].Get(ctx, got, at(0, 64)))
	require.Equal(t, src, got)
	old, err := j.pes[0].Atomic(ctx, at(0, 8), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: 2})
	require.NoError(t, err)
	require.EqualValues(t, 5, old)
	require.Error(t, j.pes[0].Put(ctx, at(0, 4090), src))
	require.Error(t, j.pes[0].Put(ctx, at(1, 0), src))
	require.NoError(t, j.pes[0].Quiet(ctx))
	require.NoError(t, j.pes[0].Fence(ctx, 0))
}

func TestLargeTransfers(t *testing.T) {
	size := 64<<20 + 12345
	j := newJob(t, 2, size+16)
	ctx := within(t, 60*time.Second)
	src := random(size)
	require.NoError(t, j.pes[0].Put(ctx, at(1, 7), src))
	require.NoError(t, j.pes[0].Quiet(ctx))
	got := make([]byte, size)
	require.NoError(t, j.pes[0].Get(ctx, got, at(1, 7)))
	require.True(t, bytes.Equal(src, got))
	require.NoError(t, j.pes[0].Get(ctx, got[:9], at(1, 0)))
	require.Equal(t, make([]byte, 7), got[:7])
}

func TestGetIsNotBlockedByALargePut(t *testing.T) {
	size := 64 << 20
	j := newJob(t, 2, size)
	ctx := within(t, 60*time.Second)
	src := random(size)
	done := make(chan error, 1)
	go func() { done <- j.pes[0].Put(ctx, at(1, 0), src) }()
	during, got := 0, make([]byte, 8)
	for {
		require.NoError(t, j.pes[0].Get(ctx, got, at(1, 16)))
		select {
		case err := <-done:
			require.NoError(t, err)
			require.GreaterOrEqual(t, during, 3, "gets answered while the put was under way")
			return
		default:
			during++
		}
	}
}

func TestManyGoroutines(t *testing.T) {
	noLeaks(t)
	const goroutines, puts = 8, 1000
	j := newJob(t, 3, goroutines*puts*24)
	ctx := within(t, 60*time.Second)
	var wg sync.WaitGroup
	for g := range goroutines {
		wg.Add(1)
		go func() {
			defer wg.Done()
			from := j.pes[g%2] // PEs 0 and 1 write to PE 2
			for i := range puts {
				text := []byte(fmt.Sprintf("g%02d put%06d........", g, i))[:19]
				if err := from.Put(ctx, at(2, uint64(g*puts+i)*24), text); err != nil {
					t.Error(err)
					return
				}
			}
			if err := from.Quiet(ctx); err != nil {
				t.Error(err)
			}
		}()
	}
	wg.Wait()
	all := make([]byte, goroutines*puts*24)
	require.NoError(t, j.pes[0].Get(ctx, all, at(2, 0)))
	for i := range goroutines * puts {
		want := fmt.Sprintf("g%02d put%06d........", i/puts, i%puts)[:19] + "\x00\x00\x00\x00\x00"
		require.Equal(t, want, string(all[i*24:i*24+24]))
	}
}

func TestAtomicsOfAllPEsAreExact(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			j := newJob(t, n, 4096)
			ctx := within(t, 60*time.Second)
			const rounds = 200
			var mu sync.Mutex
			seen := map[uint64]bool{}
			var wg sync.WaitGroup
			for _, tr := range j.pes {
				wg.Add(1)
				go func() {
					defer wg.Done()
					for range rounds {
						old, err := tr.Atomic(ctx, at(n-1, 64), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: 3})
						if err != nil {
							t.Error(err)
							return
						}
						_, err = tr.Atomic(ctx, at(0, 128), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: math.MaxUint64, NoReply: true})
						if err != nil {
							t.Error(err)
						}
						mu.Lock()
						seen[old] = true
						mu.Unlock()
					}
					if err := tr.Quiet(ctx); err != nil {
						t.Error(err)
					}
				}()
			}
			wg.Wait()
			require.Len(t, seen, n*rounds, "every add saw another value")
			require.EqualValues(t, 3*n*rounds, j.mem[n-1].load(64))
			require.EqualValues(t, -int64(n*rounds), int64(j.mem[0].load(128)))
		})
	}
}

func TestCompareSwapAndMisaligned(t *testing.T) {
	j := newJob(t, 2, 4096)
	ctx := within(t, 5*time.Second)
	old, err := j.pes[0].Atomic(ctx, at(1, 8), fabric.Atomic{Op: fabric.CompareSwap, Width: 8, Compare: 0, Operand: 77})
	require.NoError(t, err)
	require.Zero(t, old)
	old, err = j.pes[0].Atomic(ctx, at(1, 8), fabric.Atomic{Op: fabric.CompareSwap, Width: 8, Compare: 0, Operand: 78})
	require.NoError(t, err)
	require.EqualValues(t, 77, old)
	_, err = j.pes[0].Atomic(ctx, at(1, 9), fabric.Atomic{Op: fabric.Add, Width: 8})
	require.ErrorIs(t, err, status.Misaligned)
	require.ErrorContains(t, err, "PE 1")
}

func TestPutSignalOrder(t *testing.T) {
	const size, rounds = 300<<10 + 11, 200
	j := newJob(t, 2, 2*size+64)
	ctx := within(t, 60*time.Second)
	check := make(chan error, 1)
	go func() {
		for round := uint64(1); round <= rounds; round++ {
			for j.mem[1].load(0) < 2*round {
				if ctx.Err() != nil {
					check <- ctx.Err()
					return
				}
				runtime.Gosched()
			}
			for part := range uint64(2) { // the plain put before it is visible as well
				b := j.mem[1].bytes[64+part*size : 64+(part+1)*size]
				if want := bytes.Repeat([]byte{byte(round + part)}, size); !bytes.Equal(want, b) {
					check <- fmt.Errorf("round %d: part %d is not complete when its signal is there", round, part)
					return
				}
			}
			if _, err := j.pes[1].Atomic(ctx, at(0, 0), fabric.Atomic{Op: fabric.Set, Width: 8, Operand: round}); err != nil {
				check <- err
				return
			}
		}
		check <- nil
	}()
	for round := uint64(1); round <= rounds; round++ {
		require.NoError(t, j.pes[0].Put(ctx, at(1, 64), bytes.Repeat([]byte{byte(round)}, size)))
		require.NoError(t, j.pes[0].PutSignal(ctx, at(1, 64+size), bytes.Repeat([]byte{byte(round + 1)}, size), at(1, 0), fabric.SignalAdd, 1))
		require.NoError(t, j.pes[0].PutSignal(ctx, at(1, 0), nil, at(1, 0), fabric.SignalSet, 2*round))
		for j.mem[0].load(0) < round {
			require.NoError(t, ctx.Err())
			runtime.Gosched()
		}
	}
	require.NoError(t, <-check)
	require.Positive(t, j.mem[1].rings.Load())
}

func BenchmarkPut64M(b *testing.B) { benchPut(b, 64<<20) }
func BenchmarkPut1M(b *testing.B)  { benchPut(b, 1<<20) }
func BenchmarkPut4K(b *testing.B)  { benchPut(b, 4<<10) }
func BenchmarkPut8(b *testing.B)   { benchPut(b, 8) }
func BenchmarkGet64M(b *testing.B) { benchGet(b, 64<<20) }
func BenchmarkGet8(b *testing.B)   { benchGet(b, 8) }

func benchPut(b *testing.B, size int) {
	j := newJob(b, 2, size+8)
	src := random(size)
	b.SetBytes(int64(size))
	b.ResetTimer()
	for range b.N {
		require.NoError(b, j.pes[0].Put(context.Background(), at(1, 0), src))
	}
	require.NoError(b, j.pes[0].Quiet(context.Background()))
}

func benchGet(b *testing.B, size int) {
	j := newJob(b, 2, size+8)
	dst := make([]byte, size)
	b.SetBytes(int64(size))
	b.ResetTimer()
	for range b.N {
		require.NoError(b, j.pes[0].Get(context.Background(), dst, at(1, 0)))
	}
}

func BenchmarkFetchAdd(b *testing.B) {
	j := newJob(b, 2, 64)
	b.ResetTimer()
	for range b.N {
		_, err := j.pes[0].Atomic(context.Background(), at(1, 0), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: 1})
		require.NoError(b, err)
	}
}

func BenchmarkPutQuiet8(b *testing.B) {
	j := newJob(b, 2, 64)
	for range b.N {
		_ = j.pes[0].Put(context.Background(), at(1, 0), []byte("8 bytes."))
		require.NoError(b, j.pes[0].Quiet(context.Background()))
	}
}
