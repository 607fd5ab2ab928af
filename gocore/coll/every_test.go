package coll

import (
	"bytes"
	"encoding/binary"
	"flag"
	"fmt"
	"math"
	"math/rand"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/reduce"
)

var (
	seed = flag.Int64("seed", 1, "of the random cases")
	full = flag.Bool("full", false, "run every case, not a sample of the large ones")
)

// trial is one collective as all ranks of a rig know it: everything follows from its fields.
type trial struct {
	id      int
	op      int
	n       int
	count   uint64
	dtype   reduce.DType
	redop   reduce.Op
	root    int
	place   int // 0 all symmetric, 1 all ordinary, 2 mixed
	inPlace bool
	table   [][]uint64 // V forms: bytes from row to column
}

func (c trial) String() string {
	return fmt.Sprintf("trial %d: %s n %d count %d %v %v root %d place %d in place %v", c.id, OpName(c.op), c.n, c.count, c.dtype, c.redop, c.root, c.place, c.inPlace)
}

func isReduction(op int) bool { return op == AllReduce || op == Reduce || op == ReduceScatter }

func (c trial) elem() uint64 {
	if isReduction(c.op) {
		return uint64(c.dtype.Size())
	}
	return 1
}

// lengths of a rank's buffers.
func (c trial) lengths(me int) (in, out uint64) {
	one, n := c.count*c.elem(), uint64(c.n)
	at := func(v uint64) uint64 {
		if me == c.root {
			return v
		}
		return 0
	}
	switch c.op {
	case Broadcast:
		return at(one), one
	case AllReduce:
		return one, one
	case Reduce:
		return one, at(one)
	case AllGather:
		return one, n * one
	case ReduceScatter:
		return n * one, one
	case AllToAll:
		return n * one, n * one
	case Gather:
		return one, at(n * one)
	case Scatter:
		return at(n * one), one
	case AllGatherV, AllToAllV:
		if c.op == AllGatherV {
			for r := range c.n {
				out += c.table[r][r]
			}
			return c.table[me][me], out
		}
		for r := range c.n {
			in += c.table[me][r]
			out += c.table[r][me]
		}
		return in, out
	}
	return 0, 0
}

// input is a rank's data: different for every element and rank. Numbers are small, so that sums are exact and never NaN.
func (c trial) input(me int) []byte {
	n, _ := c.lengths(me)
	r := rand.New(rand.NewSource(int64(c.id)*1000 + int64(me)))
	b := make([]byte, n)
	_, _ = r.Read(b) // never fails
	if !isReduction(c.op) {
		return b
	}
	size := c.dtype.Size()
	for i := 0; i+size <= len(b); i += size {
		v := float64(int(b[i])%15 - 7)
		switch c.dtype {
		case reduce.F32:
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(v)))
		case reduce.F64:
			binary.LittleEndian.PutUint64(b[i:], math.Float64bits(v))
		case reduce.BF16:
			binary.LittleEndian.PutUint16(b[i:], uint16(math.Float32bits(float32(v))>>16))
		}
	}
	return b
}

// counts is the size table a rank gives.
func (c trial) counts(me int) []uint64 {
	switch c.op {
	case AllGatherV:
		v := make([]uint64, c.n)
		for r := range v {
			v[r] = c.table[r][r]
		}
		return v
	case AllToAllV:
		v := make([]uint64, 4*c.n)
		var in, out uint64
		for r := range c.n {
			v[r], v[c.n+r] = c.table[me][r], in
			v[2*c.n+r], v[3*c.n+r] = c.table[r][me], out
			in += c.table[me][r]
			out += c.table[r][me]
		}
		return v
	}
	return nil
}

// want is a rank's result, the plain way.
func (c trial) want(t require.TestingT, me int) []byte {
	parts := make([][]byte, c.n)
	one := c.count * c.elem()
	for r := range parts {
		in := c.input(r)
		switch c.op {
		case ReduceScatter, AllToAll:
			in = in[uint64(me)*one : uint64(me+1)*one]
		case AllToAllV:
			v := c.counts(r)
			in = in[v[c.n+me]:][:v[me]]
		}
		parts[r] = in
	}
	_, out := c.lengths(me)
	switch {
	case isReduction(c.op):
		b := make([]byte, out)
		if out > 0 {
			require.NoError(t, hot.Reduce(int(c.dtype), int(c.redop), [][]byte{b}, parts, c.count, 1.5, c.n))
		}
		return b
	case c.op == Broadcast:
		return parts[c.root]
	case c.op == Scatter:
		return parts[c.root][uint64(me)*one : uint64(me+1)*one]
	case out == 0:
		return nil
	}
	return bytes.Join(parts, nil)
}

// buffer gives n bytes of symmetric or ordinary memory between canaries; at is the next free place of the heap.
func (p *pe) buffer(n uint64, symmetric bool, shift uint64, at *uint64) (whole, b []byte) {
	if n == 0 {
		return nil, nil
	}
	if symmetric {
		off := *at + shift
		*at = (off + n + 2*64 + 127) &^ 127
		whole = p.seg[off : off+n+128]
	} else {
		whole = make([]byte, n+128+8+shift)[shift:][:n+128]
	}
	for i := range whole {
		whole[i] = 0xa5
	}
	return whole, whole[64 : 64+n]
}

func intact(whole []byte) bool {
	if whole == nil {
		return true
	}
	for i := range 64 {
		if whole[i] != 0xa5 || whole[len(whole)-1-i] != 0xa5 {
			return false
		}
	}
	return true
}

// run does the trial on one PE and gives what was wrong.
func (c trial) run(t require.TestingT, p *pe) error {
	me := p.me
	r := rand.New(rand.NewSource(int64(c.id)*77 + int64(me)))
	symmetric := c.place == 0 || c.place == 2 && r.Intn(2) == 0
	inLen, outLen := c.lengths(me)
	at := uint64(rigScratch) + uint64(r.Intn(8))*64 // offsets differ between PEs
	size := c.elem()
	shift := uint64(r.Intn(int(64/size))) * size
	inWhole, in := p.buffer(inLen, symmetric, shift, &at)
	outWhole, out := p.buffer(outLen, symmetric && c.place != 2 || c.place == 2 && r.Intn(2) == 0, 0, &at)
	if c.inPlace && inLen > 0 && outLen > 0 {
		_, whole := p.buffer(max(inLen, outLen), symmetric, 0, &at)
		in, out = whole[:inLen], whole[:outLen]
	}
	data := c.input(me)
	copy(in, data)
	err := p.do(Call{Op: c.op, DType: int(c.dtype) * b2i(isReduction(c.op)), RedOp: int(c.redop) * b2i(isReduction(c.op)), Root: c.root, In: addressOf(in), Out: addressOf(out),
		Count: c.count, Scale: 1.5, Counts: c.counts(me)})
	runtime.KeepAlive(inWhole)
	runtime.KeepAlive(outWhole)
	switch {
	case err != nil:
		return err
	case !intact(inWhole) || !intact(outWhole):
		return fmt.Errorf("a canary is gone")
	case !c.inPlace && !bytes.Equal(in, data):
		return fmt.Errorf("the input changed")
	case c.op == Barrier || c.op == Sync:
		return nil
	}
	if want := c.want(t, me); !bytes.Equal(out, want) {
		for i := range want {
			if out[i] != want[i] {
				return fmt.Errorf("byte %d of %d is %d, want %d", i, len(want), out[i], want[i])
			}
		}
	}
	return nil
}

func b2i(b bool) int {
	if b {
		return 1
	}
	return 0
}

var sizes = []uint64{0, 1, 3, 17, 96, 97, 1000, 4097, 65536, 1<<20 + 3}

// trials is every operation, size and placement for n PEs in random order; of the large ones a sample.
func trials(r *rand.Rand, n int, keep func(size uint64) bool) []trial {
	types := []reduce.DType{reduce.U8, reduce.I32, reduce.I64, reduce.F32, reduce.F64, reduce.BF16}
	var all []trial
	for op := Barrier; op <= AllToAllV; op++ {
		for _, size := range sizes {
			for place := range 3 {
				if !keep(size) {
					continue
				}
				c := trial{op: op, n: n, count: size, dtype: types[r.Intn(len(types))], root: r.Intn(n), place: place, inPlace: r.Intn(3) == 0 && op < AllGatherV}
				c.redop = []reduce.Op{reduce.Sum, reduce.Max, reduce.Min}[r.Intn(3)]
				if isReduction(op) && size > 4096 {
					c.count = size / c.elem()
				}
				if op == AllGatherV || op == AllToAllV {
					c.table = drawTable(r, n, size)
				}
				all = append(all, c)
			}
		}
	}
	r.Shuffle(len(all), func(i, j int) { all[i], all[j] = all[j], all[i] })
	for i := range all {
		all[i].id = i
	}
	return all
}

func drawTable(r *rand.Rand, n int, size uint64) [][]uint64 {
	table := make([][]uint64, n)
	for i := range table {
		table[i] = make([]uint64, n)
		for j := range table[i] {
			if r.Intn(4) > 0 {
				table[i][j] = uint64(r.Int63n(int64(size) + 1))
			}
		}
	}
	return table
}

func TestEveryCollective(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		for _, n := range []int{1, 2, 3, 5, 8} {
			t.Run(fmt.Sprint(n), func(t *testing.T) { everyCollective(t, n, cExe) })
		}
	})
}

func everyCollective(t *testing.T, n int, cExe bool) {
	r := rand.New(rand.NewSource(*seed*100 + int64(n)))
	share := map[bool]float64{true: 0.25, false: 0.1}[cExe]
	all := trials(r, n, func(size uint64) bool {
		return *full || size < 1<<16 || size < 1<<20 && !raceEnabled || r.Float64() < share/float64(n)*2
	})
	rg := newRig(t, n, cExe, 34<<20)
	for _, c := range all {
		errs := make([]error, n)
		rg.each(func(p *pe) { errs[p.me] = c.run(t, p) })
		for me, err := range errs {
			require.NoError(t, err, "%v: PE %d", c, me)
		}
	}
}
