package tcp

import (
	"fmt"
	"sync/atomic"
	"unsafe"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// heap is memory on the Go heap for tests: the race detector sees it.
type heap struct {
	pe    int
	words []uint64
	bytes []byte
	rings atomic.Int64
}

func newHeap(pe, size int) *heap {
	w := make([]uint64, (size+7)/8)
	return &heap{pe: pe, words: w, bytes: unsafe.Slice((*byte)(unsafe.Pointer(&w[0])), size)}
}

func (h *heap) Span(ref fabric.Ref, n uint64) ([]byte, error) {
	off := ref.Off()
	if ref.Seg() != 0 || off > uint64(len(h.bytes)) || n > uint64(len(h.bytes))-off {
		return nil, status.At(status.NotSymmetric, "heap", h.pe, "[%d, +%d) of segment %d is outside of %d bytes", off, n, ref.Seg(), len(h.bytes))
	}
	return h.bytes[off : off+n : off+n], nil
}

func (h *heap) Atomic(ref fabric.Ref, op fabric.Atomic) (uint64, error) {
	if _, err := h.Span(ref, 8); err != nil {
		return 0, err
	}
	if ref.Off()%8 != 0 || op.Width != 8 {
		return 0, status.At(status.Misaligned, "heap", h.pe, "offset %d", ref.Off())
	}
	w := &h.words[ref.Off()/8]
	switch op.Op {
	case fabric.Set, fabric.Swap:
		return atomic.SwapUint64(w, op.Operand), nil
	case fabric.Fetch:
		return atomic.LoadUint64(w), nil
	case fabric.Add:
		return atomic.AddUint64(w, op.Operand) - op.Operand, nil
	case fabric.Xor:
		for {
			old := atomic.LoadUint64(w)
			if atomic.CompareAndSwapUint64(w, old, old^op.Operand) {
				return old, nil
			}
		}
	case fabric.CompareSwap:
		for {
			old := atomic.LoadUint64(w)
			if old != op.Compare || atomic.CompareAndSwapUint64(w, old, op.Operand) {
				return old, nil
			}
		}
	}
	return 0, fmt.Errorf("operation %d is not in this test memory", op.Op)
}

func (h *heap) Ring() { h.rings.Add(1) }

func (h *heap) load(off uint64) uint64 { return atomic.LoadUint64(&h.words[off/8]) }
