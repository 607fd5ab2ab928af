package coll

import (
	"fmt"
	"sync"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/fabric"
	"goshmem/gocore/fabric/shm"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
)

// rig is n PEs in one process: each has a segment [header][scratch][heap], a team, and runs in a goroutine. The C executor gets
// anonymous mappings and a hot.World per PE; the Go executor gets Go memory (so that the race detector sees it) and no world.
type rig struct {
	t    testing.TB
	n    int
	cExe bool
	pes  []*pe
}

type pe struct {
	rig     *rig
	me      int
	seg     []byte
	world   *hot.World
	scratch *bump
	stages  *Stages
	cfg     Config
	team    *Team
}

const (
	rigScratch = 12 << 20
	rigControl = 4096
)

// bump is a scratch allocator that never takes back.
type bump struct {
	mu   sync.Mutex
	seg  []byte
	next uint64
}

func (b *bump) Alloc(n uint64) (uint64, []byte, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	off := b.next
	b.next = (b.next + n + 127) &^ 127
	if b.next > rigScratch {
		return 0, nil, fmt.Errorf("the rig's scratch is full")
	}
	return off, b.seg[off : off+n : off+n], nil
}

func (b *bump) Free(uint64) {}

type rigOption func(*rig, *Config)

func newRig(t testing.TB, n int, cExe bool, heap int, opts ...rigOption) *rig {
	t.Helper()
	r := &rig{t: t, n: n, cExe: cExe}
	for me := range n {
		r.pes = append(r.pes, &pe{rig: r, me: me, seg: r.memory(rigScratch + heap)})
	}
	for _, p := range r.pes {
		p.setUp(heap, opts)
	}
	for _, p := range r.pes {
		p.team.Publish()
	}
	return r
}

func (r *rig) memory(n int) []byte {
	if !r.cExe {
		words := make([]uint64, n/8+17) // 8-byte words: their atomics need alignment
		return unsafe.Slice((*byte)(unsafe.Pointer(&words[0])), n)
	}
	m, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	require.NoError(r.t, err)
	r.t.Cleanup(func() { _ = syscall.Munmap(m) })
	return m
}

func (p *pe) setUp(heap int, opts []rigOption) {
	r := p.rig
	p.scratch = &bump{seg: p.seg, next: rigControl + (layout.ControlSize(r.n)+4095)&^4095}
	p.stages = NewStages(p.scratch)
	cfg := Config{Name: "the test team", Me: p.me, Segment: p.seg, Crowded: r.n > 2, Timeout: -1, Scratch: p.scratch, Stages: p.stages,
		Locate: func(addr uintptr, n uint64) (fabric.Ref, bool) {
			off := uint64(addr) - uint64(uintptr(unsafe.Pointer(&p.seg[0])))
			return fabric.MakeRef(0, off), off <= uint64(len(p.seg)) && n <= uint64(len(p.seg))-off
		},
		Transport: shm.New(shm.Config{N: r.n, Segment: func(pe int, seg uint8) []byte { return r.pes[pe].seg }})}
	for q := range r.n {
		cfg.PEs = append(cfg.PEs, q)
		cfg.Control = append(cfg.Control, rigControl)
	}
	if r.cExe {
		p.setUpWorld(heap)
		cfg.World = p.world
		cfg.Mapped = func(pe int) []byte { return r.pes[pe].seg }
	}
	for _, o := range opts {
		o(r, &cfg)
	}
	p.cfg = cfg
	var err error
	p.team, err = New(cfg)
	require.NoError(r.t, err)
}

func (p *pe) setUpWorld(heap int) {
	r := p.rig
	hot.InitHeader(p.seg, hot.HeaderInfo{Me: p.me, N: r.n, Size: uint64(len(p.seg)), Page: 4096, ScratchOff: 4096, ScratchLen: rigScratch - 4096, HeapOff: rigScratch, HeapLen: uint64(heap)})
	w, err := hot.New(p.me, r.n, 1)
	require.NoError(r.t, err)
	i, err := w.AddSegment(p.seg[rigScratch:], rigScratch, 0, hot.Host)
	require.NoError(r.t, err)
	for q := range r.n {
		w.SetBase(i, q, r.pes[q].seg[rigScratch:])
		w.SetWhole(q, r.pes[q].seg)
	}
	w.SetCrowded(r.n > 2)
	if p.me%2 == 1 {
		w.SetCache(0) // half of the members store past the caches
	}
	w.SetDirect(true)
	w.Publish()
	p.world = w
	r.t.Cleanup(func() {
		require.True(r.t, w.Close(time.Minute))
		w.Free()
	})
}

// each runs f on every PE at once and waits, at most two minutes.
func (r *rig) each(f func(p *pe)) {
	r.t.Helper()
	var wg sync.WaitGroup
	for _, p := range r.pes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(p)
		}()
	}
	over := make(chan struct{})
	go func() { wg.Wait(); close(over) }()
	select {
	case <-over:
	case <-time.After(2 * time.Minute):
		panic("the PEs of the rig hang")
	}
}

// do runs one call to its end, within a minute.
func (p *pe) do(call Call) error {
	return p.doWithin(call, time.Minute)
}

func (p *pe) doWithin(call Call, timeout time.Duration) error {
	q, err := p.team.Start(call, hot.Now()+int64(timeout))
	if err != nil {
		return err
	}
	for {
		if done, err := q.Run(hot.Now() + int64(20*time.Millisecond)); done {
			return err
		}
	}
}

func addressOf(b []byte) uintptr {
	if len(b) == 0 {
		return 0
	}
	return uintptr(unsafe.Pointer(&b[0]))
}

// bothExecutors runs a test on each.
func bothExecutors(t *testing.T, f func(t *testing.T, cExe bool)) {
	if !raceEnabled {
		t.Run("c", func(t *testing.T) { f(t, true) })
	}
	t.Run("go", func(t *testing.T) { f(t, false) })
}
