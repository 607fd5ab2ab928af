// Package reduce says which reductions exist and what each must give: the dtype table and a slow, plain reference.
//
// The reference is the oracle of the C kernels in package hot. It shares no code with them: integers are computed one by
// one, small floats are decoded by their definition and encoded by searching for the nearest value.
package reduce

import "fmt"

// DType is an element type; the numbers are those of gshmem.h.
type DType uint8

// The element types.
const (
	U8 DType = iota + 1
	I8
	U16
	I16
	U32
	I32
	U64
	I64
	F16
	BF16
	F32
	F64
	Bool
	C64
	C128
	C32
	F8E4M3FN
	F8E5M2
	F8E4M3FNUZ
	F8E5M2FNUZ
)

// Op is a reduction operator; the numbers are those of gshmem.h.
type Op uint8

// The operators.
const (
	Sum Op = iota + 1
	Prod
	Min
	Max
	BAnd
	BOr
	BXor
	Avg
	PreMul
)

// Class is how an element type computes.
type Class uint8

// The classes.
const (
	Unsigned Class = iota + 1
	SignedInt
	Float
	Boolean
	Complex
)

// Info describes an element type. Name is torch's.
type Info struct {
	Name  string
	Size  int
	Class Class
}

var infos = [...]Info{
	U8: {"uint8", 1, Unsigned}, I8: {"int8", 1, SignedInt}, U16: {"uint16", 2, Unsigned}, I16: {"int16", 2, SignedInt},
	U32: {"uint32", 4, Unsigned}, I32: {"int32", 4, SignedInt}, U64: {"uint64", 8, Unsigned}, I64: {"int64", 8, SignedInt},
	F16: {"float16", 2, Float}, BF16: {"bfloat16", 2, Float}, F32: {"float32", 4, Float}, F64: {"float64", 8, Float},
	Bool: {"bool", 1, Boolean}, C64: {"complex64", 8, Complex}, C128: {"complex128", 16, Complex}, C32: {"complex32", 4, Complex},
	F8E4M3FN: {"float8_e4m3fn", 1, Float}, F8E5M2: {"float8_e5m2", 1, Float},
	F8E4M3FNUZ: {"float8_e4m3fnuz", 1, Float}, F8E5M2FNUZ: {"float8_e5m2fnuz", 1, Float},
}

// DTypes is every element type, in the order of the numbers.
func DTypes() []DType {
	all := make([]DType, 0, len(infos)-1)
	for d := U8; int(d) < len(infos); d++ {
		all = append(all, d)
	}
	return all
}

// Ops is every operator, in the order of the numbers.
func Ops() []Op { return []Op{Sum, Prod, Min, Max, BAnd, BOr, BXor, Avg, PreMul} }

// Info describes d; Size is 0 for an unknown one.
func (d DType) Info() Info {
	if d == 0 || int(d) >= len(infos) {
		return Info{Name: fmt.Sprintf("dtype %d", uint8(d))}
	}
	return infos[d]
}

// Size is the bytes of an element, 0 for an unknown type.
func (d DType) Size() int { return d.Info().Size }

// String is torch's name of the type.
func (d DType) String() string { return d.Info().Name }

// String is the operator's name as users write it.
func (o Op) String() string {
	names := [...]string{Sum: "sum", Prod: "product", Min: "min", Max: "max", BAnd: "band", BOr: "bor", BXor: "bxor", Avg: "avg", PreMul: "premul_sum"}
	if o == 0 || int(o) >= len(names) {
		return fmt.Sprintf("operator %d", uint8(o))
	}
	return names[o]
}

// Supported reports whether torch defines the operator for the type: bits for integers and bool, order for real numbers, averages and
// factors for floats and complex numbers.
func Supported(d DType, o Op) bool {
	switch c := d.Info().Class; o {
	case Sum, Prod:
		return c != 0
	case Min, Max:
		return c != 0 && c != Complex
	case BAnd, BOr, BXor:
		return c == Unsigned || c == SignedInt || c == Boolean
	case Avg, PreMul:
		return c == Float || c == Complex
	}
	return false
}
