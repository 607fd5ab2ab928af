package reduce

import (
	"encoding/binary"
	"math"

	"goshmem/gocore/status"
)

// Reference reduces count elements of every source, in order, and returns the result: what each kernel must give. NaNs may have
// any payload. scale is for PreMul, divisor for Avg.
func Reference(d DType, o Op, src [][]byte, count int, scale float64, divisor int) ([]byte, error) {
	if !Supported(d, o) {
		return nil, status.New(status.Unsupported, "reduce", "torch defines no %s of %s", o, d)
	}
	size := d.Size()
	out := make([]byte, count*size)
	for i := 0; i < count; i++ {
		in := make([][]byte, len(src))
		for k := range src {
			in[k] = src[k][i*size : (i+1)*size]
		}
		at := out[i*size : (i+1)*size]
		switch d.Info().Class {
		case Unsigned, SignedInt:
			putInt(at, foldInts(d, o, in))
		case Boolean:
			at[0] = foldBools(o, in)
		case Float:
			putFloat(d, at, foldFloats(d, o, in, scale, divisor))
		case Complex:
			foldComplex(d, o, at, in, scale, divisor)
		}
	}
	return out, nil
}

func getInt(b []byte) uint64 {
	var w [8]byte
	copy(w[:], b)
	return binary.LittleEndian.Uint64(w[:])
}

func putInt(b []byte, v uint64) {
	var w [8]byte
	binary.LittleEndian.PutUint64(w[:], v)
	copy(b, w[:])
}

func foldInts(d DType, o Op, in [][]byte) uint64 {
	shift := 64 - 8*d.Size()
	signed := func(v uint64) int64 { return int64(v<<shift) >> shift }
	acc := getInt(in[0])
	for _, b := range in[1:] {
		v := getInt(b)
		less := v < acc
		if d.Info().Class == SignedInt {
			less = signed(v) < signed(acc)
		}
		switch {
		case o == Sum:
			acc += v
		case o == Prod:
			acc *= v
		case o == BAnd:
			acc &= v
		case o == BOr:
			acc |= v
		case o == BXor:
			acc ^= v
		case o == Min && less, o == Max && !less:
			acc = v
		}
		acc = acc << shift >> shift
	}
	return acc
}

func foldBools(o Op, in [][]byte) byte {
	acc := in[0][0] != 0
	for _, b := range in[1:] {
		v := b[0] != 0
		switch o {
		case Sum, Max, BOr:
			acc = acc || v
		case Prod, Min, BAnd:
			acc = acc && v
		case BXor:
			acc = acc != v
		}
	}
	if acc {
		return 1
	}
	return 0
}

// part is the real type of a complex type's parts.
func part(d DType) DType {
	switch d {
	case C64:
		return F32
	case C128:
		return F64
	case C32:
		return F16
	}
	return d
}

func getFloat(d DType, b []byte) float64 {
	switch part(d) {
	case F32:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(b)))
	case F64:
		return math.Float64frombits(binary.LittleEndian.Uint64(b))
	}
	s, _ := smallOf(d)
	return s.decode(uint32(getInt(b)))
}

func putFloat(d DType, b []byte, v float64) {
	switch part(d) {
	case F32:
		binary.LittleEndian.PutUint32(b, math.Float32bits(float32(v)))
	case F64:
		binary.LittleEndian.PutUint64(b, math.Float64bits(v))
	default:
		s, _ := smallOf(d)
		putInt(b, uint64(s.encode(v)))
	}
}

// rounder is the precision that values of d are accumulated in: float64 for itself, float32 for all others. A float64 operation on
// float32 values, rounded to float32, is the float32 operation (its 53 bits are more than twice 24 plus two).
func rounder(d DType) func(float64) float64 {
	if part(d) == F64 {
		return func(v float64) float64 { return v }
	}
	return func(v float64) float64 { return float64(float32(v)) }
}

func foldFloats(d DType, o Op, in [][]byte, scale float64, divisor int) float64 {
	round := rounder(d)
	value := func(b []byte) float64 {
		if o == PreMul {
			return round(getFloat(d, b) * round(scale))
		}
		return getFloat(d, b)
	}
	acc := value(in[0])
	for _, b := range in[1:] {
		acc = foldFloat(o, acc, value(b), round)
	}
	if o == Avg {
		acc = round(acc / float64(divisor))
	}
	return acc
}

func foldFloat(o Op, acc, v float64, round func(float64) float64) float64 {
	switch o {
	case Prod:
		return round(acc * v)
	case Min, Max:
		if math.IsNaN(acc) {
			return acc
		}
		if math.IsNaN(v) || o == Min && v < acc || o == Max && v > acc {
			return v
		}
		return acc
	}
	return round(acc + v)
}

func foldComplex(d DType, o Op, out []byte, in [][]byte, scale float64, divisor int) {
	half := d.Size() / 2
	if o != Prod {
		for p := 0; p < 2; p++ {
			parts := make([][]byte, len(in))
			for k := range in {
				parts[k] = in[k][p*half : (p+1)*half]
			}
			putFloat(d, out[p*half:(p+1)*half], foldFloats(d, o, parts, scale, divisor))
		}
		return
	}
	round := rounder(d)
	re, im := getFloat(d, in[0][:half]), getFloat(d, in[0][half:])
	for _, b := range in[1:] {
		c, e := getFloat(d, b[:half]), getFloat(d, b[half:])
		re, im = round(round(re*c)-round(im*e)), round(round(re*e)+round(im*c))
	}
	putFloat(d, out[:half], re)
	putFloat(d, out[half:], im)
}
