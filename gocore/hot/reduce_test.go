package hot

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/reduce"
	"goshmem/gocore/status"
)

const canary = 0xa5

// specials are the float32 values whose handling goes wrong first, and their double twins.
var specials = []float64{math.NaN(), math.Inf(1), math.Inf(-1), 0, math.Copysign(0, -1), 1e-40, -1e-45, 6e-8, 65504, 65520, 448, 464, 3.4e38, -3.4e38, 1, -1}

// fillRandom makes raw random bytes, or moderate numbers with specials among them where bytes would be mostly huge.
func fillRandom(r *rand.Rand, d reduce.DType, b []byte) {
	for i := range b {
		b[i] = byte(r.Uint32())
	}
	value := func() float64 {
		if r.IntN(8) == 0 {
			return specials[r.IntN(len(specials))]
		}
		return (r.Float64() - 0.5) * math.Ldexp(1, r.IntN(20)-10)
	}
	switch d {
	case reduce.F32, reduce.C64:
		for i := 0; i+4 <= len(b); i += 4 {
			binary.LittleEndian.PutUint32(b[i:], math.Float32bits(float32(value())))
		}
	case reduce.F64, reduce.C128:
		for i := 0; i+8 <= len(b); i += 8 {
			binary.LittleEndian.PutUint64(b[i:], math.Float64bits(value()))
		}
	}
}

// isNaN tells whether one number is a NaN: any NaN equals any other, payloads are not compared.
func isNaN(t *testing.T, d reduce.DType, b []byte) bool {
	t.Helper()
	switch d {
	case reduce.F32:
		return math.IsNaN(float64(math.Float32frombits(binary.LittleEndian.Uint32(b))))
	case reduce.F64:
		return math.IsNaN(math.Float64frombits(binary.LittleEndian.Uint64(b)))
	case reduce.F16:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7c00
	case reduce.BF16:
		return binary.LittleEndian.Uint16(b)&0x7fff > 0x7f80
	case reduce.F8E4M3FN:
		return b[0]&0x7f == 0x7f
	case reduce.F8E5M2:
		return b[0]&0x7f > 0x7c
	case reduce.F8E4M3FNUZ, reduce.F8E5M2FNUZ:
		return b[0] == 0x80
	}
	return false
}

func partOf(d reduce.DType) (reduce.DType, int) {
	switch d {
	case reduce.C64:
		return reduce.F32, 4
	case reduce.C128:
		return reduce.F64, 8
	case reduce.C32:
		return reduce.F16, 2
	}
	return d, d.Size()
}

func requireSame(t *testing.T, d reduce.DType, want, got []byte, what string) {
	t.Helper()
	part, size := partOf(d)
	for i := 0; i < len(want); i += size {
		w, g := want[i:i+size], got[i:i+size]
		if string(w) == string(g) || isNaN(t, part, w) && isNaN(t, part, g) {
			continue
		}
		t.Fatalf("%s: number %d is %x, want %x", what, i/size, g, w)
	}
}

// reduceCase runs one random reduction: misaligned memory, canaries around every destination, some destinations in place.
func reduceCase(t *testing.T, r *rand.Rand, d reduce.DType, o reduce.Op, nsrc, ndst, count int, inPlace bool) {
	n := count * d.Size()
	src, keep := make([][]byte, nsrc), make([][]byte, nsrc)
	whole := make([][]byte, ndst)
	dst := make([][]byte, ndst)
	for k := range src {
		src[k] = make([]byte, n+65)[r.IntN(64):][:n:n]
		fillRandom(r, d, src[k])
		keep[k] = append([]byte(nil), src[k]...)
	}
	for k := range dst {
		whole[k] = make([]byte, n+192)
		for i := range whole[k] {
			whole[k][i] = canary
		}
		off := 64 + r.IntN(64)
		dst[k] = whole[k][off : off+n : off+n]
		if inPlace && k < nsrc {
			dst[k], whole[k] = src[nsrc-1-k], nil
		}
	}
	scale, divisor := r.Float64()*3-1, nsrc
	want, err := reduce.Reference(d, o, keep, count, scale, divisor)
	require.NoError(t, err)
	require.NoError(t, Reduce(int(d), int(o), dst, src, uint64(count), scale, divisor))
	what := fmt.Sprintf("%s of %s, %d sources, %d destinations, %d elements, in place %v", o, d, nsrc, ndst, count, inPlace)
	for k := range dst {
		requireSame(t, d, want, dst[k], what)
		if whole[k] == nil {
			continue
		}
		outside := 0
		for _, b := range whole[k] {
			if b == canary {
				outside++
			}
		}
		require.GreaterOrEqual(t, outside, 192, what)
	}
}

func TestReduceAgainstReference(t *testing.T) {
	t.Cleanup(func() { ReduceLevel(-1) })
	r := rand.New(rand.NewPCG(1, 2))
	for level := 0; level <= ReduceLevel(-1); level++ {
		for _, d := range reduce.DTypes() {
			for _, o := range reduce.Ops() {
				if !reduce.Supported(d, o) {
					continue
				}
				for _, count := range []int{0, 1, 3, 17, 63, 64, 65, 200, 1024, 1061} {
					ReduceLevel(level)
					reduceCase(t, r, d, o, 1+r.IntN(6), 1+r.IntN(4), count, r.IntN(2) == 0)
				}
			}
		}
	}
}

// The bits must not depend on the instruction set: compare the levels with each other on large input, NaN payloads apart.
func TestReduceLevelsAgree(t *testing.T) {
	t.Cleanup(func() { ReduceLevel(-1) })
	r := rand.New(rand.NewPCG(3, 4))
	const count = 20000 // every sixteen-bit pattern would fit three times over
	for _, d := range reduce.DTypes() {
		for _, o := range reduce.Ops() {
			if !reduce.Supported(d, o) {
				continue
			}
			src := make([][]byte, 3)
			for k := range src {
				src[k] = make([]byte, count*d.Size())
				fillRandom(r, d, src[k])
			}
			var first []byte
			for level := 0; level <= ReduceLevel(-1); level++ {
				ReduceLevel(level)
				out := make([]byte, count*d.Size())
				require.NoError(t, Reduce(int(d), int(o), [][]byte{out}, src, count, 1.7, 3))
				if level == 0 {
					first = out
				}
				requireSame(t, d, first, out, fmt.Sprintf("%s of %s at level %d", o, d, level))
			}
		}
	}
}

func TestReduceTableMatchesReference(t *testing.T) {
	for d := 0; d <= len(reduce.DTypes())+1; d++ {
		require.Equal(t, reduce.DType(d).Size(), DTypeSize(d))
		for o := 0; o <= len(reduce.Ops())+1; o++ {
			require.Equal(t, reduce.Supported(reduce.DType(d), reduce.Op(o)), ReduceSupported(d, o), "%s of %s", reduce.Op(o), reduce.DType(d))
		}
	}
	err := Reduce(int(reduce.I32), int(reduce.Avg), [][]byte{make([]byte, 4)}, [][]byte{make([]byte, 4)}, 1, 0, 1)
	require.ErrorIs(t, err, status.Unsupported)
	err = Reduce(int(reduce.F32), int(reduce.Avg), [][]byte{make([]byte, 4)}, [][]byte{make([]byte, 4)}, 1, 0, 0)
	require.ErrorIs(t, err, status.InvalidArgument)
}

func TestCopySizesAndOffsets(t *testing.T) {
	src := make([]byte, 128)
	for i := range src {
		src[i] = byte(i + 1)
	}
	for n := 0; n <= 65; n++ {
		for off := 0; off < 16; off++ {
			dst := make([]byte, 128)
			Copy(dst[off:off+n], src[15-off:15-off+n])
			require.Equal(t, src[15-off:15-off+n], dst[off:off+n])
			require.Equal(t, make([]byte, off), dst[:off])
			require.Equal(t, make([]byte, 128-off-n), dst[off+n:])
		}
	}
}
