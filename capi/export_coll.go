package main

// #include "internal.h"
// #include "../gocore/hot/exec.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/coll"
	"goshmem/gocore/world"
)

//export goshmem_collective
func goshmem_collective(th C.uint64_t, what C.int32_t, in, out unsafe.Pointer, count C.uint64_t, dtype, op, root C.int32_t, scale C.double,
	counts *C.uint64_t, flags C.uint32_t, timeout, slice C.int64_t, request *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "collective")
		if err != nil {
			return err
		}
		call := coll.Call{Op: int(what), In: uintptr(in), Out: uintptr(out), Count: uint64(count), DType: int(dtype), RedOp: int(op), Root: int(root),
			Scale: float64(scale), Counts: countsOf(int(what), t.N(), counts)}
		r, err := t.Collective(call, how(flags), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return hand(&pending{r: r}, request)
	})
}

// goshmem_collective_adopt takes over a collective that C began, whatever it has come to. The caller's thread is still announced
// inside the world, so that neither the team's tables nor the memory go away meanwhile.
//
//export goshmem_collective_adopt
func goshmem_collective_adopt(th C.uint64_t, c *C.hot_coll, request *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "collective")
		var r *world.Request
		if err == nil {
			r, err = t.Adopt(unsafe.Pointer(c))
		}
		if err != nil { // destroyed by another thread since it began: the members must not wait for us
			C.hot_coll_give_up(c, C.GSHMEM_ECANCELED)
			return err
		}
		return hand(&pending{r: r}, request)
	})
}

// countsOf copies the table of sizes of a V form; nil for the others.
func countsOf(what, n int, counts *C.uint64_t) []uint64 {
	switch {
	case counts == nil:
		return nil
	case what == coll.AllToAllV:
		n *= 4
	case what != coll.AllGatherV:
		return nil
	}
	return append([]uint64(nil), unsafe.Slice((*uint64)(counts), n)...)
}
