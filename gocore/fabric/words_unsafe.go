package fabric

import (
	"sync/atomic"
	"unsafe"

	"goshmem/gocore/status"
)

// Barrier is a full barrier for the stores around it: an atomic read-modify-write, which on arm64 with its atomic instructions
// orders everything before against everything after.
func Barrier() {
	var word uint32
	atomic.AddUint32(&word, 1)
}

// Store copies src to dst, which is shared memory of the same length, after everything this goroutine stored before. A naturally
// aligned word of 4 or 8 bytes is stored whole, with release; its partner is the acquire load of whoever polls that word.
func Store(dst, src []byte) {
	if len(src) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(dst))
	switch {
	case len(src) == 8 && uintptr(p)%8 == 0:
		atomic.StoreUint64((*uint64)(p), *(*uint64)(unsafe.Pointer((*[8]byte)(src))))
	case len(src) == 4 && uintptr(p)%4 == 0:
		atomic.StoreUint32((*uint32)(p), *(*uint32)(unsafe.Pointer((*[4]byte)(src))))
	default:
		Barrier()
		copy(dst, src)
	}
}

// Load copies shared memory to dst, of the same length. An aligned word of 4 or 8 bytes is loaded whole, with acquire.
func Load(dst, src []byte) {
	if len(src) == 0 {
		return
	}
	p := unsafe.Pointer(unsafe.SliceData(src))
	switch {
	case len(src) == 8 && uintptr(p)%8 == 0:
		*(*uint64)(unsafe.Pointer((*[8]byte)(dst))) = atomic.LoadUint64((*uint64)(p))
	case len(src) == 4 && uintptr(p)%4 == 0:
		*(*uint32)(unsafe.Pointer((*[4]byte)(dst))) = atomic.LoadUint32((*uint32)(p))
	default:
		copy(dst, src)
		Barrier()
	}
}

// Update applies an atomic update to the word at the start of mem, sequentially consistent, lock-free and so atomic against the C hot path
// and other processes. The old value of a 4-byte word comes zero-extended.
func Update(mem []byte, op Atomic) (uint64, error) {
	if op.Width != 4 && op.Width != 8 || len(mem) < op.Width {
		return 0, status.New(status.InvalidArgument, "atomic", "a word of %d bytes where %d are given; words have 4 or 8", op.Width, len(mem))
	}
	p := unsafe.Pointer(unsafe.SliceData(mem))
	if uintptr(p)%uintptr(op.Width) != 0 {
		return 0, status.New(status.Misaligned, "atomic", "a word of %d bytes must be aligned to its size", op.Width)
	}
	if op.Op < Set || op.Op > Xor {
		return 0, status.New(status.InvalidArgument, "atomic", "there is no operation %d", op.Op)
	}
	if op.Width == 8 {
		return update64((*uint64)(p), op), nil
	}
	return uint64(update32((*uint32)(p), op)), nil
}

func update64(w *uint64, op Atomic) uint64 {
	switch op.Op {
	case Fetch:
		return atomic.LoadUint64(w)
	case Set, Swap:
		return atomic.SwapUint64(w, op.Operand)
	case Add:
		return atomic.AddUint64(w, op.Operand) - op.Operand
	case Inc:
		return atomic.AddUint64(w, 1) - 1
	case And:
		return atomic.AndUint64(w, op.Operand)
	case Or:
		return atomic.OrUint64(w, op.Operand)
	}
	for { // CompareSwap and Xor
		old, fresh := atomic.LoadUint64(w), op.Operand
		if op.Op == Xor {
			fresh ^= old
		} else if old != op.Compare {
			return old
		}
		if atomic.CompareAndSwapUint64(w, old, fresh) {
			return old
		}
	}
}

func update32(w *uint32, op Atomic) uint32 {
	operand := uint32(op.Operand)
	switch op.Op {
	case Fetch:
		return atomic.LoadUint32(w)
	case Set, Swap:
		return atomic.SwapUint32(w, operand)
	case Add:
		return atomic.AddUint32(w, operand) - operand
	case Inc:
		return atomic.AddUint32(w, 1) - 1
	case And:
		return atomic.AndUint32(w, operand)
	case Or:
		return atomic.OrUint32(w, operand)
	}
	for {
		old, fresh := atomic.LoadUint32(w), operand
		if op.Op == Xor {
			fresh ^= old
		} else if old != uint32(op.Compare) {
			return old
		}
		if atomic.CompareAndSwapUint32(w, old, fresh) {
			return old
		}
	}
}
