package segment

import (
	"math"
	"math/rand/v2"
	"os"
	"path/filepath"
	"testing"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// fixed is a budget of given limits, which shrinks by what was seen to be taken elsewhere.
type fixed struct{ limits []Limit }

func (f *fixed) Limits() []Limit { return f.limits }

func newOwn(t *testing.T, o Options) *Segment {
	s, err := Create(o)
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, s.Close()) })
	return s
}

// resident is the bytes the file behind the segment holds.
func resident(t *testing.T, s *Segment) uint64 {
	var st unix.Stat_t
	require.NoError(t, unix.Fstat(s.fd, &st))
	return uint64(st.Blocks) * 512
}

func TestAHeapCostsNothingUntilCommitted(t *testing.T) {
	s := newOwn(t, Options{N: 1, Scratch: 1 << 30, Heap: 1 << 40})
	require.LessOrEqual(t, resident(t, s), s.Geo.Page)
	off := s.Geo.HeapOff + 5*s.Geo.Page - 1
	require.NoError(t, s.Commit(off, 2)) // two bytes on two pages
	require.LessOrEqual(t, resident(t, s), 3*s.Geo.Page)
	require.Zero(t, address(s.Bytes())%heapAlign)
	b := s.Bytes()[off : off+2]
	b[0], b[1] = 7, 8
	require.NoError(t, s.Commit(off-100, 5*s.Geo.Page), "again, and more")
	require.Equal(t, []byte{7, 8}, b, "committed pages keep their bytes")
	require.NoError(t, s.Decommit(off-10, 100), "no whole page")
	require.Equal(t, []byte{7, 8}, b)
	require.NoError(t, s.Decommit(s.Geo.HeapOff, 20*s.Geo.Page))
	require.LessOrEqual(t, resident(t, s), s.Geo.Page)
	require.NoError(t, s.Commit(off, 2))
	require.Equal(t, []byte{0, 0}, b, "zero again")
	require.ErrorIs(t, s.Commit(s.Size()-1, 2), status.Internal)
	require.ErrorIs(t, s.Commit(1, math.MaxUint64), status.Internal)
	require.NoError(t, s.Commit(s.Size(), 0))
}

func TestExhaustionIsAnErrorThatNamesEveryLimitAndChangesNothing(t *testing.T) {
	b := &fixed{[]Limit{
		{Name: "free memory of the machine", Knob: "buy more", Size: 100 << 30, Free: 90 << 30},
		{Name: "memory cgroup /a/b", Knob: "raise memory.max", Size: 1 << 30, Free: 200 << 20},
	}}
	s := newOwn(t, Options{Me: 4, N: 5, Heap: 8 << 30, Budget: b})
	require.NoError(t, s.Commit(s.Geo.HeapOff, 1<<20))
	before := resident(t, s)
	err := s.Commit(s.Geo.HeapOff, 300<<20)
	require.ErrorIs(t, err, status.NoMemory)
	for _, part := range []string{"PE 4", "memory cgroup /a/b", "200.0 MiB", "299.0 MiB", "free memory of the machine", "90.0 GiB", "raise memory.max"} {
		require.ErrorContains(t, err, part)
	}
	require.Equal(t, before, resident(t, s))
	require.NoError(t, s.Commit(s.Geo.HeapOff, 100<<20), "what fits still fits")
}

// shrinking is a budget that runs out after some looks, as when neighbours take memory meanwhile.
type shrinking struct{ looks int }

func (b *shrinking) Limits() []Limit {
	b.looks--
	if b.looks < 0 {
		return []Limit{{Name: "all", Size: 1 << 40, Free: 0}}
	}
	return nil
}

func TestACommitThatFailsHalfwayIsUndone(t *testing.T) {
	b := &shrinking{looks: 100}
	s := newOwn(t, Options{N: 1, Heap: 1 << 30, Budget: b})
	require.NoError(t, s.Commit(s.Geo.HeapOff+70<<20, 1<<20))
	s.Bytes()[s.Geo.HeapOff+70<<20] = 9
	before := resident(t, s)
	b.looks = 2
	require.ErrorIs(t, s.Commit(s.Geo.HeapOff, 200<<20), status.NoMemory)
	require.Equal(t, before, resident(t, s))
	require.EqualValues(t, 9, s.Bytes()[s.Geo.HeapOff+70<<20], "what was there before is untouched")
	b.looks = 100
	require.NoError(t, s.Commit(s.Geo.HeapOff, 100<<20))
	require.EqualValues(t, 9, s.Bytes()[s.Geo.HeapOff+70<<20])
}

func TestAFullFileSystemIsAnErrorNotASignal(t *testing.T) {
	dir := t.TempDir()
	if err := unix.Mount("tmpfs", dir, "tmpfs", 0, "size=3m"); err != nil {
		t.Skipf("needs the right to mount a small tmpfs: %v", err)
	}
	defer unix.Unmount(dir, unix.MNT_DETACH)
	s := newOwn(t, Options{N: 1, Heap: 64 << 20, Dir: dir})
	require.NoError(t, s.Commit(s.Geo.HeapOff, 1<<20))
	err := s.Commit(s.Geo.HeapOff, 8<<20)
	require.ErrorIs(t, err, status.NoMemory)
	require.ErrorIs(t, err, unix.ENOSPC)
	require.ErrorContains(t, err, dir)
	require.NoError(t, s.Commit(s.Geo.HeapOff, 2<<20), "all of the failed one was given back")
}

func TestOnlyTheOwnerCommits(t *testing.T) {
	own := newOwn(t, Options{N: 2, Heap: 1 << 20})
	require.True(t, own.Retain())
	require.NoError(t, own.Close())
	require.ErrorIs(t, own.Commit(0, 1), status.Finalized)
	require.ErrorIs(t, own.Decommit(0, own.Size()), status.Finalized)
	require.NotNil(t, own.Bytes(), "still held")
	own.Release()
	require.Nil(t, own.Bytes())
	require.False(t, own.Retain())
	require.Panics(t, own.Release)
}

func TestPageSetEqualsAMap(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 1))
	p, twin := newPageSet(), map[uint64]bool{}
	const top = 3 * chunkPages
	for range 3000 {
		lo := rng.Uint64N(top)
		hi := min(top, lo+rng.Uint64N(200))
		if rng.IntN(20) == 0 {
			hi = min(top, lo+rng.Uint64N(top))
		}
		var want uint64
		for i := lo; i < hi; i++ {
			if !twin[i] {
				want++
			}
		}
		require.Equal(t, want, p.missing(lo, hi))
		var gaps uint64
		last := lo
		require.NoError(t, p.gaps(lo, hi, func(a, b uint64) error {
			require.True(t, a < b && b <= hi && (a == lo || a > last))
			for i := a; i < b; i++ {
				require.False(t, twin[i])
			}
			gaps, last = gaps+b-a, b
			return nil
		}))
		require.Equal(t, want, gaps)
		in := rng.IntN(2) == 0
		if in {
			p.add(lo, hi)
		} else {
			p.remove(lo, hi)
		}
		for i := lo; i < hi; i++ {
			twin[i] = in
		}
	}
}

func TestGeometryForOtherPageSizes(t *testing.T) {
	for _, page := range []uint64{4096, 16384, 65536, 2 << 20} {
		g, err := Plan(page, 100_000, 70_001)
		require.NoError(t, err)
		for _, v := range []uint64{g.ScratchOff, g.ScratchLen, g.HeapOff, g.HeapLen, g.Size} {
			require.Zero(t, v%page)
		}
		require.GreaterOrEqual(t, g.ScratchOff, uint64(512))
		require.GreaterOrEqual(t, g.ScratchLen, uint64(100_000))
		require.GreaterOrEqual(t, g.HeapOff, g.ScratchOff+g.ScratchLen)
		require.GreaterOrEqual(t, g.HeapLen, uint64(70_001))
		require.Equal(t, g.Size, g.HeapOff+g.HeapLen)
		require.Zero(t, g.HeapOff%heapAlign)
		s, err := NewGoHeap(Options{Me: 1, N: 2, Heap: 5 * page}, page)
		require.NoError(t, err)
		heap := s.Bytes()[s.Geo.HeapOff:]
		require.Len(t, heap, int(5*page))
		heap[page], heap[2*page-1], heap[2*page] = 3, 4, 5
		require.NoError(t, s.Commit(s.Geo.HeapOff, 10))
		require.NoError(t, s.Decommit(s.Geo.HeapOff+1, 2*page))
		require.Equal(t, []byte{0, 0, 5}, []byte{heap[page], heap[2*page-1], heap[2*page]}, "whole pages only")
		require.NoError(t, s.Close())
		require.Nil(t, s.Bytes())
	}
	for _, page := range []uint64{0, 3, 4097} {
		_, err := Plan(page, 1, 1)
		require.ErrorIs(t, err, status.Internal)
	}
	_, err := Plan(4096, 1<<60, 1)
	require.ErrorIs(t, err, status.BadConfig)
	_, err = Plan(4096, 1, math.MaxUint64)
	require.ErrorIs(t, err, status.BadConfig)
	g, err := Plan(65536, 0, 0)
	require.NoError(t, err)
	require.Zero(t, g.HeapLen)
}

func TestLimitsOfTheMachineAndItsCgroups(t *testing.T) {
	root := t.TempDir()
	write := func(name, text string) {
		require.NoError(t, os.MkdirAll(filepath.Dir(root+name), 0o755))
		require.NoError(t, os.WriteFile(root+name, []byte(text), 0o644))
	}
	write("/proc/meminfo", "MemTotal:       1000 kB\nMemFree:  3 kB\nMemAvailable:    600 kB\n")
	write("/proc/self/cgroup", "4:cpu,memory:/job/1\n0::/v2/leaf\n")
	write("/proc/self/mountinfo", "30 1 0:26 / /cg/mem rw,nosuid shared:1 - cgroup cgroup rw,memory,cpu\n"+
		"31 1 0:27 /v2 /cg/two rw - cgroup2 cgroup2 rw\n32 1 0:28 / /cg/cpuset rw - cgroup cgroup rw,cpuset\nnonsense\n")
	write("/cg/mem/job/1/memory.limit_in_bytes", "9223372036854771712\n")
	write("/cg/mem/job/memory.limit_in_bytes", "5000\n")
	write("/cg/mem/job/memory.usage_in_bytes", "4000\n")
	write("/cg/mem/job/memory.stat", "total_inactive_file 700\ntotal_active_file 100\ninactive_file 1\n")
	write("/cg/two/leaf/memory.max", "max\n")
	write("/cg/two/memory.max", "1000\n")
	write("/cg/two/memory.current", "1200\n")
	got := NewMachine(root).Limits()
	require.Len(t, got, 3)
	require.Equal(t, []uint64{600 * 1024, 1000 * 1024}, []uint64{got[0].Free, got[0].Size})
	byName := map[string]Limit{}
	for _, l := range got {
		byName[l.Name] = l
	}
	require.EqualValues(t, 1800, byName["memory cgroup /cg/mem/job"].Free)
	require.EqualValues(t, 0, byName["memory cgroup /cg/two"].Free, "over its limit")
	require.Empty(t, NewMachine(root+"/nowhere").Limits(), "unknown is not refused")
	_, err := checkBudget(NewMachine(root+"/nowhere"), 0, 1<<50)
	require.NoError(t, err)
	require.NotEmpty(t, NewMachine("").Limits())
	require.Equal(t, "/", below("/../other", "/"))
	require.Equal(t, "/", below("/ab", "/a"))
	require.Equal(t, "/b", below("/a/b", "/a"))
}
