package reduce

import (
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/status"
)

func TestSmallFloatsByHand(t *testing.T) {
	f16, _ := smallOf(F16)
	require.Equal(t, uint32(0x3c00), f16.encode(1))
	require.Equal(t, uint32(0x7bff), f16.encode(65519.99))
	require.Equal(t, uint32(0x7c00), f16.encode(65520))
	require.Equal(t, uint32(0xfc00), f16.encode(math.Inf(-1)))
	require.Equal(t, uint32(1), f16.encode(math.Ldexp(1, -24)))
	require.Equal(t, uint32(0), f16.encode(math.Ldexp(1, -25)), "a tie goes to even")
	require.Equal(t, uint32(0x8000), f16.encode(math.Copysign(0, -1)))
	bf, _ := smallOf(BF16)
	require.Equal(t, uint32(0x3f80), bf.encode(1+math.Ldexp(1, -8)), "a tie goes to even")
	require.Equal(t, uint32(0x3f82), bf.encode(1+3*math.Ldexp(1, -8)))
	fn, _ := smallOf(F8E4M3FN)
	require.Equal(t, uint32(0x7e), fn.encode(464), "448 is the largest; its tie with 480 goes to even")
	require.Equal(t, uint32(0xff), fn.encode(-465), "no infinity: NaN with the sign")
	uz, _ := smallOf(F8E4M3FNUZ)
	require.Equal(t, uint32(0x80), uz.encode(-1000))
	require.Equal(t, uint32(0), uz.encode(math.Copysign(0, -1)), "no minus zero")
}

func TestEveryCodeRoundTrips(t *testing.T) {
	for _, d := range []DType{F16, BF16, F8E4M3FN, F8E5M2, F8E4M3FNUZ, F8E5M2FNUZ} {
		s, ok := smallOf(d)
		require.True(t, ok)
		for code := uint32(0); code < 2*s.signBit(); code++ {
			v := s.decode(code)
			if math.IsNaN(v) {
				require.True(t, math.IsNaN(s.decode(s.encode(v))), "%s %#x", d, code)
				continue
			}
			require.Equal(t, code, s.encode(v), "%s %#x", d, code)
		}
	}
}

func TestUnsupportedIsAnError(t *testing.T) {
	for _, c := range []struct {
		d DType
		o Op
	}{{I32, Avg}, {F32, BAnd}, {C64, Max}, {Bool, PreMul}, {0, Sum}, {99, Sum}, {F32, 0}, {F32, 10}} {
		_, err := Reference(c.d, c.o, nil, 0, 0, 0)
		require.ErrorIs(t, err, status.Unsupported, "%v", c)
	}
}

func TestIntegersWrapAndBoolsAreTruth(t *testing.T) {
	got, err := Reference(I8, Sum, [][]byte{{127, 0x80}, {1, 0xff}}, 2, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{0x80, 0x7f}, got)
	got, err = Reference(I8, Max, [][]byte{{127, 0x80}, {1, 0xff}}, 2, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{127, 0xff}, got)
	got, err = Reference(Bool, Sum, [][]byte{{0, 1, 2}, {0, 1, 0}}, 3, 0, 0)
	require.NoError(t, err)
	require.Equal(t, []byte{0, 1, 1}, got)
}
