package fabric

import (
	"encoding/binary"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/status"
)

// naive is the dumb twin of Update.
func naive(mem []byte, op Atomic) uint64 {
	var old uint64
	if op.Width == 4 {
		old = uint64(binary.NativeEndian.Uint32(mem))
	} else {
		old = binary.NativeEndian.Uint64(mem)
	}
	fresh := map[AtomicOp]uint64{Set: op.Operand, Fetch: old, Swap: op.Operand, CompareSwap: old, Add: old + op.Operand, Inc: old + 1,
		And: old & op.Operand, Or: old | op.Operand, Xor: old ^ op.Operand}[op.Op]
	compare := op.Compare
	if op.Width == 4 {
		compare = uint64(uint32(compare))
	}
	if op.Op == CompareSwap && old == compare {
		fresh = op.Operand
	}
	if op.Width == 4 {
		binary.NativeEndian.PutUint32(mem, uint32(fresh))
	} else {
		binary.NativeEndian.PutUint64(mem, fresh)
	}
	return old
}

func TestUpdateEqualsItsNaiveTwin(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	mem, twin := make([]byte, 64), make([]byte, 64)
	values := []uint64{0, 1, 7, 1<<31 - 1, 1 << 31, 1<<32 - 1, 1 << 32, 1<<63 - 1, 1 << 63, ^uint64(0)}
	for range 20000 {
		op := Atomic{Op: AtomicOp(1 + r.IntN(9)), Width: 4 + 4*r.IntN(2), Operand: values[r.IntN(len(values))], Compare: values[r.IntN(len(values))]}
		off := op.Width * r.IntN(64/op.Width)
		if r.IntN(2) == 0 { // a compare that hits
			op.Compare = naive(twin[off:], Atomic{Op: Fetch, Width: op.Width})
		}
		got, err := Update(mem[off:], op)
		require.NoError(t, err)
		require.Equal(t, naive(twin[off:], op), got, "%+v", op)
		require.Equal(t, twin, mem, "%+v", op)
	}
}

func TestUpdateRefuses(t *testing.T) {
	mem := make([]byte, 16)
	for _, c := range []struct {
		off  int
		op   Atomic
		code status.Code
	}{
		{0, Atomic{Op: Add, Width: 2}, status.InvalidArgument},
		{0, Atomic{Op: 0, Width: 8}, status.InvalidArgument},
		{0, Atomic{Op: 10, Width: 8}, status.InvalidArgument},
		{12, Atomic{Op: Add, Width: 8}, status.InvalidArgument},
		{4, Atomic{Op: Add, Width: 8}, status.Misaligned},
		{2, Atomic{Op: Add, Width: 4}, status.Misaligned},
	} {
		_, err := Update(mem[c.off:], c.op)
		require.ErrorIs(t, err, c.code, "%+v", c)
	}
}

func TestStoreAndLoadOddSizesAndOffsets(t *testing.T) {
	for size := range 66 {
		for off := range 9 {
			mem := make([]byte, 128)
			for i := range mem {
				mem[i] = byte(i * 7)
			}
			want, src := append([]byte(nil), mem...), make([]byte, size)
			for i := range src {
				src[i] = byte(200 - i)
			}
			copy(want[20+off:], src)
			Store(mem[20+off:20+off+size], src)
			require.Equal(t, want, mem)
			back := make([]byte, size)
			Load(back, mem[20+off:20+off+size])
			require.Equal(t, src, back)
		}
	}
}

func TestSignalUpdate(t *testing.T) {
	_, err := SignalUpdate(7, 1)
	require.ErrorIs(t, err, status.InvalidArgument)
}
