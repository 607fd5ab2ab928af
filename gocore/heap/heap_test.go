package heap

import (
	"math/rand/v2"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// twin is the dumb heap: one owner and one dirty flag per quantum.
type twin struct {
	owner []int // 0 free, else block number
	dirty []bool
	start map[int]int
	next  int
}

func newTwin(quanta int) *twin {
	return &twin{owner: make([]int, quanta), dirty: make([]bool, quanta), start: map[int]int{}}
}

func (w *twin) fits(q, n int) bool {
	if q+n > len(w.owner) {
		return false
	}
	for _, o := range w.owner[q : q+n] {
		if o != 0 {
			return false
		}
	}
	return true
}

func (w *twin) lowest(n, align, atLeast int) (int, bool) {
	for q := 0; q < len(w.owner); q++ {
		if q%align == 0 && q*Quantum >= atLeast && w.fits(q, n) {
			return q, true
		}
	}
	return 0, false
}

func (w *twin) highest(n, align int) (int, bool) {
	for q := len(w.owner); q >= 0; q-- {
		if q%align == 0 && w.fits(q, n) {
			return q, true
		}
	}
	return 0, false
}

func (w *twin) largest() uint64 {
	best, run := 0, 0
	for _, o := range w.owner {
		run++
		if o != 0 {
			run = 0
		}
		best = max(best, run)
	}
	return uint64(best) * Quantum
}

func (w *twin) take(q, n int) (dirty []Range) {
	w.next++
	w.start[q] = n
	for i := q; i < q+n; i++ {
		w.owner[i] = w.next
		if w.dirty[i] {
			at := uint64(i) * Quantum
			if k := len(dirty) - 1; k >= 0 && dirty[k].End() == at {
				dirty[k].Len += Quantum
			} else {
				dirty = append(dirty, Range{at, Quantum})
			}
		}
	}
	return dirty
}

func (w *twin) release(q int) {
	for i := q; i < q+w.start[q]; i++ {
		w.owner[i], w.dirty[i] = 0, true
	}
	delete(w.start, q)
}

func TestHeapEqualsANaiveOneOnRandomHistories(t *testing.T) {
	const quanta = 300
	for seed := range uint64(30) {
		rng := rand.New(rand.NewPCG(seed, 7))
		h, w := New(quanta*Quantum+13), newTwin(quanta)
		for range 600 {
			step(t, rng, h, w)
			s := h.Stats()
			require.Equal(t, w.largest(), s.LargestHole)
			require.EqualValues(t, len(w.start), s.Blocks)
		}
	}
}

func step(t *testing.T, rng *rand.Rand, h *Heap, w *twin) {
	size := rng.IntN(40 * Quantum)
	n := max(1, (size+Quantum-1)/Quantum)
	align := 1 << rng.IntN(5)
	switch k := rng.IntN(10); {
	case k < 4:
		bid := rng.IntN(len(w.owner)*Quantum + 100)
		if k < 3 {
			bid = 0
		}
		off, ok := h.Propose(uint64(size), uint64(align)*Quantum, uint64(bid))
		q, wok := w.lowest(n, align, bid)
		require.Equal(t, wok, ok)
		if ok {
			require.EqualValues(t, q*Quantum, off)
			takeBoth(t, h, w, q, size, n)
		}
	case k < 6:
		off, ok := h.ProposeTop(uint64(size), uint64(align)*Quantum)
		q, wok := w.highest(n, align)
		require.Equal(t, wok, ok)
		if ok {
			require.EqualValues(t, q*Quantum, off)
			takeBoth(t, h, w, q, size, n)
		}
	case k < 9:
		q := rng.IntN(len(w.owner))
		start, ok := h.Holding(uint64(q)*Quantum + 5)
		require.Equal(t, w.owner[q] != 0, ok)
		if !ok {
			_, err := h.Free(uint64(q) * Quantum)
			require.Error(t, err)
			return
		}
		got, err := h.Free(start)
		require.NoError(t, err)
		require.EqualValues(t, w.start[int(start/Quantum)]*Quantum, got)
		w.release(int(start / Quantum))
	default:
		q, n := rng.IntN(len(w.owner)), rng.IntN(50)
		n = min(n, len(w.owner)-q)
		h.Clean(uint64(q)*Quantum, uint64(n)*Quantum)
		clear(w.dirty[q : q+n])
	}
}

func takeBoth(t *testing.T, h *Heap, w *twin, q, size, n int) {
	require.True(t, h.Fits(uint64(q)*Quantum, uint64(size)))
	dirty, err := h.Take(uint64(q)*Quantum, uint64(size))
	require.NoError(t, err)
	require.Equal(t, w.take(q, n), dirty)
	_, err = h.Take(uint64(q)*Quantum, uint64(size))
	require.Error(t, err, "taken twice")
}

func TestProposalsOfDifferentHistoriesMeet(t *testing.T) {
	const members = 5
	rng := rand.New(rand.NewPCG(1, 2))
	var hs [members]*Heap
	for i := range hs {
		hs[i] = New(1 << 20)
		for range 40 * i {
			hs[i].FirstFit(uint64(rng.IntN(3000)), 0)
		}
	}
	for round, bid := 0, uint64(0); ; round++ {
		require.Less(t, round, 200)
		next := bid
		for _, h := range hs {
			off, ok := h.Propose(5000, 4096, bid)
			require.True(t, ok)
			next = max(next, off)
		}
		if next == bid {
			break
		}
		bid = next
	}
}

func TestOddSizes(t *testing.T) {
	h := New(0)
	_, ok := h.Propose(0, 0, 0)
	require.False(t, ok)
	h = New(1 << 40)
	_, ok = h.Propose(1<<63, 0, 0)
	require.False(t, ok)
	_, ok = h.Propose(^uint64(0), 0, 0)
	require.False(t, ok)
	a, _, ok := h.FirstFit(0, 0)
	require.True(t, ok)
	b, _, ok := h.FirstFit(0, 0)
	require.True(t, ok)
	require.NotEqual(t, a, b, "empty blocks are distinct")
	off, ok := h.Propose(1<<40-1<<21, 1<<21, 1)
	require.True(t, ok)
	require.EqualValues(t, 1<<21, off)
	_, err := h.Take(32, 64)
	require.Error(t, err, "offset is no multiple of the quantum")
	_, err = h.Take(1<<40-64, 128)
	require.Error(t, err, "past the end")
}

func TestAHundredThousandBlocksStayFast(t *testing.T) {
	if checked {
		t.Skip("each step checks all blocks")
	}
	h := New(1 << 40)
	began := time.Now()
	const n = 100_000
	for i := range uint64(n) {
		_, _, ok := h.FirstFit(i%977+1, 0)
		require.True(t, ok)
	}
	i := 0
	var offs []uint64
	h.Each(func(r Range) bool {
		if i++; i%2 == 0 {
			offs = append(offs, r.Off)
		}
		return true
	})
	for _, off := range offs {
		_, err := h.Free(off)
		require.NoError(t, err)
	}
	for range n {
		off, _, ok := h.FirstFit(900, 0)
		require.True(t, ok)
		_, err := h.Free(off)
		require.NoError(t, err)
	}
	perOp := time.Since(began) / (3 * n)
	t.Logf("%v per operation with %d blocks", perOp, h.Stats().Blocks)
	require.Less(t, perOp, 100*time.Microsecond) // a scan of all blocks takes longer
}
