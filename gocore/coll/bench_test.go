package coll

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/reduce"
)

// BenchmarkCollectives times the C executor between threads of one process: the same code and memory traffic as between processes.
func BenchmarkCollectives(b *testing.B) {
	for _, n := range []int{2, 4} {
		for _, symmetric := range []bool{true, false} {
			for _, op := range []int{AllReduce, AllGather, ReduceScatter, AllToAll, Broadcast} {
				for _, size := range []uint64{64 << 10, 4 << 20, 64 << 20} {
					b.Run(fmt.Sprintf("n%d/sym=%v/%s/%d", n, symmetric, OpName(op), size), func(b *testing.B) { bench(b, n, symmetric, op, size) })
				}
			}
		}
	}
}

// bench runs one operation whose larger buffer has `size` bytes.
func bench(b *testing.B, n int, symmetric bool, op int, size uint64) {
	r := newRig(b, n, true, 2*int(size)+1<<20)
	r.each(func(p *pe) {
		runtime.LockOSThread()
		defer runtime.UnlockOSThread()
		c := Call{Op: op, Root: 0, Count: size}
		if isReduction(op) {
			c.DType, c.RedOp, c.Count, c.Root = int(reduce.F32), int(reduce.Sum), size/4, -1
		}
		if op == AllGather || op == ReduceScatter || op == AllToAll {
			c.Count /= uint64(n)
		}
		mem := p.seg[rigScratch:]
		if !symmetric {
			mem = r.memory(2*int(size) + 1<<20)
		}
		clear(mem)
		c.In, c.Out = addressOf(mem), addressOf(mem[size+1<<19:])
		for i := range b.N + 2 {
			if i == 2 {
				require.NoError(b, p.do(Call{Op: Barrier, Root: -1}))
				if p.me == 0 {
					b.ResetTimer()
				}
			}
			q, err := p.team.Start(c, hot.Forever)
			require.NoError(b, err)
			_, err = q.Run(hot.Forever)
			require.NoError(b, err)
		}
	})
	b.SetBytes(int64(size))
}
