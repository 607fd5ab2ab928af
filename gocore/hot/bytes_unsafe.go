package hot

// #include <stdlib.h>
// #include "hot_inline.h"
//
// // Addresses, not pointers: the bytes may lie in a Go struct that also holds pointers, which cgo's check would refuse
// // although nothing but the bytes is touched.
// static void copy_at(uintptr_t dst, uintptr_t src, uint64_t n) { hot_copy((void *)dst, (const void *)src, n); }
import "C"

import (
	"runtime"
	"unsafe"

	"goshmem/gocore/status"
)

// Copy copies len(src) bytes to dst, which must be as long; they are equal or disjoint.
func Copy(dst, src []byte) {
	if len(dst) < len(src) {
		panic("hot.Copy: destination shorter than source")
	}
	if len(src) < smallCopy {
		copy(dst, src)
		return
	}
	C.copy_at(C.uintptr_t(uintptr(pointer(dst))), C.uintptr_t(uintptr(pointer(src))), C.uint64_t(len(src)))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
}

// smallCopy is below what entering C costs.
const smallCopy = 4 << 10

// DTypeSize is the bytes of an element of a HOT_T_* dtype, 0 for an unknown one.
func DTypeSize(dtype int) int { return int(C.hot_dtype_size(C.int(dtype))) }

// ReduceSupported reports whether the operator is defined for the dtype.
func ReduceSupported(dtype, op int) bool { return C.hot_reduce_supported(C.int(dtype), C.int(op)) != 0 }

// Reduce stores op over all src, in that order, to every dst: count elements of dtype each. A dst may be a src, and must not overlap
// one in part. scale is for PREMUL, divisor for AVG.
func Reduce(dtype, op int, dst, src [][]byte, count uint64, scale float64, divisor int) error {
	bytes := count * uint64(DTypeSize(dtype))
	d, s := addresses(dst, bytes), addresses(src, bytes)
	defer C.free(d)
	defer C.free(s)
	rc := C.hot_reduce(C.int(dtype), C.int(op), (*unsafe.Pointer)(d), C.int(len(dst)), (*unsafe.Pointer)(s), C.int(len(src)),
		C.uint64_t(count), C.double(scale), C.int(divisor))
	runtime.KeepAlive(dst)
	runtime.KeepAlive(src)
	if rc != 0 {
		return status.New(status.Code(rc), "reduce", "operator %d on dtype %d with %d sources, %d destinations, divisor %d", op, dtype, len(src), len(dst), divisor)
	}
	return nil
}

// addresses is a C array of where the slices begin (the caller frees it, and keeps the slices alive until then).
func addresses(mem [][]byte, bytes uint64) unsafe.Pointer {
	p := C.calloc(C.size_t(len(mem)+1), C.size_t(unsafe.Sizeof(uintptr(0))))
	list := unsafe.Slice((*unsafe.Pointer)(p), len(mem))
	for i, m := range mem {
		if uint64(len(m)) < bytes {
			panic("hot.Reduce: slice shorter than its elements")
		}
		list[i] = pointer(m)
	}
	return p
}

// ReduceLevel limits the instruction set of Reduce (0 baseline, 1 x86-64-v3, 2 x86-64-v4, -1 the best) and returns the one in use. For tests.
func ReduceLevel(level int) int { return int(C.hot_reduce_level(C.int(level))) }
