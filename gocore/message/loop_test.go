package message

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
)

// loop is a transport between PEs of one process: segments are Go memory.
type loop struct {
	mapped bool
	segs   [][]byte
	down   []atomic.Bool // operations on that PE fail
	gets   atomic.Int64
}

func (l *loop) Name() string                { return "loop" }
func (l *loop) Abilities() fabric.Abilities { return fabric.Abilities{LoadStore: l.mapped} }

var errDown = errors.New("connection reset")

func (l *loop) span(a fabric.Addr, n int) ([]byte, error) {
	if l.down[a.PE].Load() {
		return nil, status.At(status.PeerUnreachable, "loop", a.PE, "%v", errDown)
	}
	return l.segs[a.PE][a.Ref.Off() : a.Ref.Off()+uint64(n)], nil
}

func (l *loop) Put(_ context.Context, dst fabric.Addr, src []byte) error {
	b, err := l.span(dst, len(src))
	copy(b, src)
	return err
}

func (l *loop) Get(ctx context.Context, dst []byte, src fabric.Addr) error {
	l.gets.Add(1)
	if !l.mapped {
		time.Sleep(20 * time.Microsecond)
		if ctx.Err() != nil {
			return ctx.Err()
		}
	}
	b, err := l.span(src, len(dst))
	copy(dst, b)
	return err
}

func (l *loop) Atomic(context.Context, fabric.Addr, fabric.Atomic) (uint64, error) {
	panic("not used")
}

func (l *loop) PutSignal(ctx context.Context, dst fabric.Addr, src []byte, sig fabric.Addr, op fabric.SignalOp, value uint64) error {
	if err := l.Put(ctx, dst, src); err != nil {
		return err
	}
	if op != fabric.SignalSet {
		panic("not used")
	}
	b, err := l.span(sig, 8)
	if err == nil {
		storeWord(b, value)
	}
	return err
}

func (l *loop) Fence(context.Context, int) error { return nil }
func (l *loop) Quiet(context.Context) error      { return nil }
func (l *loop) Close() error                     { return nil }

// pool is the scratch of one test PE: bump allocation, and a count of what is out.
type pool struct {
	mu   sync.Mutex
	seg  []byte
	next uint64
	free map[uint64][]fabric.Ref
	out  int
	full bool
}

func (p *pool) Lease(n uint64) (fabric.Ref, []byte, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.full {
		return 0, nil, status.New(status.HeapFull, "scratch", "full; raise SHMEM_SCRATCH_SIZE")
	}
	p.out++
	if l := p.free[n]; len(l) > 0 {
		ref := l[len(l)-1]
		p.free[n] = l[:len(l)-1]
		return ref, p.seg[ref : uint64(ref)+n], nil
	}
	ref := fabric.Ref(p.next)
	p.next += (n + 127) &^ 127
	return ref, p.seg[ref : uint64(ref)+n], nil
}

func (p *pool) Return(ref fabric.Ref, n uint64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.out--
	p.free[n] = append(p.free[n], ref)
}

// rig is a team of test PEs. World PE numbers are rank+10, to catch a mix-up.
type rig struct {
	t     *testing.T
	loop  *loop
	ms    []*Messenger
	pools []*pool
	lost  []atomic.Pointer[status.Error]
}

const (
	rigEager = 300
	rigHeap  = 8 << 20 // first byte of the test heap in each segment
	rigSize  = 20 << 20
	firstPE  = 10
)

func newRig(t *testing.T, n int, mapped bool) *rig {
	g := &rig{t: t, loop: &loop{mapped: mapped, segs: make([][]byte, n+firstPE), down: make([]atomic.Bool, n+firstPE)}, lost: make([]atomic.Pointer[status.Error], n)}
	pes, areas := make([]int, n), make([]fabric.Ref, n)
	for r := range n {
		pes[r] = firstPE + r
		areas[r] = fabric.Ref(4096 + 128*r) // offsets differ by PE
		g.loop.segs[pes[r]] = make([]byte, rigSize)
	}
	for r := range n {
		seg := g.loop.segs[pes[r]]
		p := &pool{seg: seg, next: 1 << 20, free: map[uint64][]fabric.Ref{}}
		g.pools = append(g.pools, p)
		m, err := New(Config{
			Me: r, PEs: pes, Transport: g.loop, Area: seg[areas[r] : uint64(areas[r])+AreaSize(n)], Areas: areas, Scratch: p, Eager: rigEager,
			Lost: func(rank int) error {
				if e := g.lost[rank].Load(); e != nil {
					return e
				}
				return nil
			},
			Name: "team t",
		})
		require.NoError(t, err)
		g.ms = append(g.ms, m)
	}
	t.Cleanup(func() {
		for r, m := range g.ms {
			m.Close()
			m.Close()
			m.Reclaim()
			require.Zero(t, g.pools[r].out, "leases of rank %d", r)
		}
	})
	return g
}

type stepper interface{ Step() (bool, error) }

// finish steps requests round-robin until all are done.
func finish(t *testing.T, rs ...stepper) {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for i := 0; ; i++ {
		all := true
		for _, r := range rs {
			done, err := r.Step()
			require.NoError(t, err)
			all = all && done
		}
		if all {
			return
		}
		require.True(t, time.Now().Before(limit), "hangs")
	}
}

// pattern is distinct per element, sender, receiver, tag and turn.
func pattern(n, src, dst int, tag int64, turn int) []byte {
	b := make([]byte, n)
	x := uint32(src*7919+dst*104729+turn*1299709) + uint32(tag)*15485863 + 1
	for i := range b {
		x = x*1664525 + 1013904223
		b[i] = byte(x >> 24)
	}
	return b
}

// place copies data to the test heap of a PE and gives both views.
func (g *rig) place(rank int, data []byte) ([]byte, fabric.Ref) {
	seg := g.loop.segs[firstPE+rank]
	copy(seg[rigHeap:], data)
	return seg[rigHeap : rigHeap+len(data)], rigHeap
}

func (g *rig) send(src, dst int, tag int64, data []byte, ref fabric.Ref) *Send {
	s, err := g.ms[src].Send(dst, tag, data, ref, time.Time{})
	require.NoError(g.t, err)
	return s
}

func (g *rig) recv(me, src int, tag int64, buf []byte) *Recv {
	r, err := g.ms[me].Recv(buf, src, tag, time.Time{})
	require.NoError(g.t, err)
	return r
}

func bothWays(t *testing.T, f func(t *testing.T, mapped bool)) {
	for _, mapped := range []bool{true, false} {
		t.Run(fmt.Sprintf("mapped=%v", mapped), func(t *testing.T) { f(t, mapped) })
	}
}
