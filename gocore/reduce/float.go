package reduce

import "math"

// small is a float format of at most 16 bits: mantissa bits, exponent bias, how many bits in all.
type small struct {
	mantissa, bias, bits int
	last                 uint32 // magnitude code of the largest finite value
	overflow             uint32 // code of what is too large (without sign unless unsigned)
	nan                  uint32
	fnuz                 bool // one NaN (the code of minus zero), no minus zero, overflow has no sign
}

func smallOf(d DType) (small, bool) {
	switch d {
	case F16, C32:
		return small{10, 15, 16, 0x7bff, 0x7c00, 0x7e00, false}, true
	case BF16:
		return small{7, 127, 16, 0x7f7f, 0x7f80, 0x7fc0, false}, true
	case F8E4M3FN:
		return small{3, 7, 8, 0x7e, 0x7f, 0x7f, false}, true
	case F8E5M2:
		return small{2, 15, 8, 0x7b, 0x7c, 0x7f, false}, true
	case F8E4M3FNUZ:
		return small{3, 8, 8, 0x7f, 0x80, 0x80, true}, true
	case F8E5M2FNUZ:
		return small{2, 16, 8, 0x7f, 0x80, 0x80, true}, true
	}
	return small{}, false
}

func (s small) signBit() uint32 { return 1 << (s.bits - 1) }

// magnitude is the value of a magnitude code as if the exponent had no upper end.
func (s small) magnitude(code uint32) float64 {
	e, m := int(code>>s.mantissa), float64(code&(1<<s.mantissa-1))
	if e == 0 {
		return math.Ldexp(m, 1-s.bias-s.mantissa)
	}
	return math.Ldexp(m+float64(uint32(1)<<s.mantissa), e-s.bias-s.mantissa)
}

func (s small) decode(code uint32) float64 {
	sign, m := code&s.signBit(), code&(s.signBit()-1)
	if s.fnuz && code == s.nan {
		return math.NaN()
	}
	v := s.magnitude(m)
	if m > s.last {
		v = math.NaN()
		if m == s.overflow && s.overflow != s.nan {
			v = math.Inf(1)
		}
	}
	if sign != 0 {
		return math.Copysign(v, -1)
	}
	return v
}

// encode is the code of the nearest value, the even one of two equally near.
func (s small) encode(v float64) uint32 {
	if math.IsNaN(v) {
		return s.nan
	}
	sign := uint32(0)
	if math.Signbit(v) {
		sign = s.signBit()
	}
	code := s.nearest(math.Abs(v))
	switch {
	case code > s.last && s.fnuz:
		return s.overflow
	case code > s.last:
		return sign | s.overflow
	case code == 0 && s.fnuz:
		return 0
	}
	return sign | code
}

// nearest searches the codes up to one beyond the last for the nearest to v >= 0.
func (s small) nearest(v float64) uint32 {
	low, high := uint32(0), s.last+1 // magnitude(low) <= v unless v is beyond high
	if v >= s.magnitude(high) {
		return high
	}
	for high-low > 1 {
		if mid := (low + high) / 2; s.magnitude(mid) <= v {
			low = mid
		} else {
			high = mid
		}
	}
	below, above := v-s.magnitude(low), s.magnitude(high)-v
	if below < above || below == above && low%2 == 0 {
		return low
	}
	return high
}
