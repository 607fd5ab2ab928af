package coll

import (
	"flag"
	"fmt"
	"runtime"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/reduce"
)

var ratios = flag.Bool("ratios", false, "print times beside the least work possible")

// TestRatios prints, per size, the time of all_reduce on symmetric and on ordinary memory beside the floor: meet, every PE reduces
// its slice out of all inputs into all outputs, meet. Interleaved, least and median of many.
func TestRatios(t *testing.T) {
	if !*ratios {
		t.Skip("a measurement, not a test: -ratios")
	}
	for _, n := range []int{2, 4} {
		for _, size := range []uint64{64 << 10, 4 << 20, 64 << 20} {
			ratio(t, n, size)
		}
	}
}

func ratio(t *testing.T, n int, size uint64) {
	r := newRig(t, n, true, 2*int(size)+1<<20)
	rounds := int(min(60, max(6, 400<<20/size)))
	names := []string{"floor", "symmetric", "ordinary", "broadcast", "all_gather", "reduce_scatter", "all_to_all"}
	times := make([][]float64, len(names))
	r.each(func(p *pe) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		sym, priv := p.seg[rigScratch:], r.memory(2*int(size)+1<<20)
		clear(sym)
		clear(priv)
		call := func(op int, mem []byte) Call {
			c := Call{Op: op, Root: 0, Count: size, In: addressOf(mem), Out: addressOf(mem[size+1<<19:])}
			if isReduction(op) {
				c.DType, c.RedOp, c.Count, c.Root = int(reduce.F32), int(reduce.Sum), size/4, -1
			}
			if op == AllGather || op == ReduceScatter || op == AllToAll {
				c.Count /= uint64(n)
			}
			return c
		}
		run := func(c Call) {
			q, err := p.team.Start(c, hot.Forever)
			require.NoError(t, err)
			_, err = q.Run(hot.Forever)
			require.NoError(t, err)
		}
		sync := Call{Op: Sync, Root: -1}
		floor := func() {
			per := size / uint64(n)
			off := uint64(p.me) * per
			var src, dst [][]byte
			for _, q := range r.pes {
				src = append(src, q.seg[rigScratch+off:][:per])
				dst = append(dst, q.seg[rigScratch+size+1<<19+off:][:per])
			}
			run(sync)
			_ = hot.Reduce(int(reduce.F32), int(reduce.Sum), dst, src, per/4, 1, n)
			run(sync)
		}
		forms := []func(){floor, func() { run(call(AllReduce, sym)) }, func() { run(call(AllReduce, priv)) }, func() { run(call(Broadcast, priv)) },
			func() { run(call(AllGather, priv)) }, func() { run(call(ReduceScatter, priv)) }, func() { run(call(AllToAll, priv)) }}
		for i := range rounds {
			for f, form := range forms {
				run(sync)
				began := time.Now()
				form()
				if p.me == 0 && i > 1 {
					times[f] = append(times[f], float64(time.Since(began).Nanoseconds()))
				}
			}
		}
	})
	base := 0.0
	for f, v := range times {
		slices.Sort(v)
		if f == 0 {
			base = v[0]
		}
		fmt.Printf("n %d %9d %-14s least %10.1f us  median %10.1f us  least/floor %.2f\n", n, size, names[f], v[0]/1e3, v[len(v)/2]/1e3, v[0]/base)
	}
}
