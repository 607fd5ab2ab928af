package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// nothing is where no memory is on any machine we run on. Go ends the process when it meets such an address as a pointer.
const nothing = 4096

// local checks the caller's address of n bytes; whatever kind of memory it is, NULL and what is next to it is none.
func local(op string, p unsafe.Pointer, n C.uint64_t) (uintptr, error) {
	if n != 0 && p == nil {
		return 0, status.New(status.InvalidArgument, op, "the address of %d bytes of this process is NULL", uint64(n))
	}
	if n != 0 && uintptr(p) < nothing {
		return 0, status.New(status.InvalidArgument, op, "the address %#x of %d bytes of this process is none", uintptr(p), uint64(n))
	}
	return uintptr(p), nil
}

//export goshmem_put
func goshmem_put(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, pe, nbi C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "put")
		if err != nil {
			return err
		}
		from, err := local("put", src, n)
		if err != nil {
			return err
		}
		return w.PutAny(w.Context(), uintptr(dst), from, uint64(n), int(pe), nbi != 0)
	})
}

//export goshmem_get
func goshmem_get(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, pe, nbi C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "get")
		if err != nil {
			return err
		}
		to, err := local("get", dst, n)
		if err != nil {
			return err
		}
		return w.GetAny(w.Context(), to, uintptr(src), uint64(n), int(pe), nbi != 0)
	})
}

//export goshmem_iput
func goshmem_iput(wh C.uint64_t, dst, src unsafe.Pointer, ds, ss C.int64_t, elem, count C.uint64_t, pe C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "iput")
		if err != nil {
			return err
		}
		from, err := local("iput", src, elem*min(count, 1))
		if err != nil {
			return err
		}
		return w.IputAny(w.Context(), uintptr(dst), from, int64(ds), int64(ss), uint64(elem), uint64(count), int(pe))
	})
}

//export goshmem_iget
func goshmem_iget(wh C.uint64_t, dst, src unsafe.Pointer, ds, ss C.int64_t, elem, count C.uint64_t, pe C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "iget")
		if err != nil {
			return err
		}
		to, err := local("iget", dst, elem*min(count, 1))
		if err != nil {
			return err
		}
		return w.IgetAny(w.Context(), to, uintptr(src), int64(ds), int64(ss), uint64(elem), uint64(count), int(pe))
	})
}

//export goshmem_p
func goshmem_p(wh C.uint64_t, dst unsafe.Pointer, value C.uint64_t, width, pe C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "p")
		if err != nil {
			return err
		}
		return w.P(w.Context(), uintptr(dst), uint64(value), int(width), int(pe))
	})
}

//export goshmem_g
func goshmem_g(wh C.uint64_t, src unsafe.Pointer, width, pe C.int32_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "g")
		if err != nil {
			return err
		}
		if out == nil {
			return status.New(status.InvalidArgument, "g", "value_out is NULL")
		}
		v, err := w.G(w.Context(), uintptr(src), int(width), int(pe))
		if err == nil {
			*out = C.uint64_t(v)
		}
		return err
	})
}

//export goshmem_fence
func goshmem_fence(wh C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "fence")
		if err != nil {
			return err
		}
		return w.Fence()
	})
}

//export goshmem_quiet
func goshmem_quiet(wh C.uint64_t, timeout C.int64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "quiet")
		if err != nil {
			return err
		}
		return w.Quiet(w.Context(), int64(timeout))
	})
}

//export goshmem_atomic
func goshmem_atomic(wh C.uint64_t, op, width C.int32_t, target unsafe.Pointer, operand, compare C.uint64_t, pe C.int32_t, old *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "atomic")
		if err != nil {
			return err
		}
		if op < 0 || op > 255 {
			op = 0 // none either, and does not become one when cut to a byte
		}
		v, err := w.Atomic(w.Context(), uintptr(target), fabric.Atomic{Op: fabric.AtomicOp(op), Width: int(width), Operand: uint64(operand),
			Compare: uint64(compare), NoReply: old == nil}, int(pe))
		if err == nil && old != nil {
			*old = C.uint64_t(v)
		}
		return err
	})
}

//export goshmem_put_signal
func goshmem_put_signal(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, sig *C.uint64_t, value C.uint64_t, op, pe C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "put_signal")
		if err != nil {
			return err
		}
		from, err := local("put_signal", src, n)
		if err != nil {
			return err
		}
		return w.PutSignalAny(w.Context(), uintptr(dst), from, uint64(n), uintptr(unsafe.Pointer(sig)), int(op), uint64(value), int(pe))
	})
}

//export goshmem_test
func goshmem_test(wh C.uint64_t, word unsafe.Pointer, width, isSigned, cmp C.int32_t, value C.uint64_t, out *C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "test")
		if err != nil {
			return err
		}
		yes, err := w.Test(uintptr(word), int(width), isSigned != 0, int(cmp), uint64(value))
		if err != nil {
			return err
		}
		*out = 0
		if yes {
			*out = 1
		}
		return nil
	})
}

//export goshmem_wait_until_start
func goshmem_wait_until_start(wh C.uint64_t, word unsafe.Pointer, width, isSigned, cmp C.int32_t, value C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "wait_until")
		if err != nil {
			return err
		}
		r, err := w.WaitUntil(uintptr(word), int(width), isSigned != 0, int(cmp), uint64(value), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(&pending{r: r}, out)
	})
}

//export goshmem_wait_until
func goshmem_wait_until(wh C.uint64_t, word unsafe.Pointer, width, isSigned, cmp C.int32_t, value C.uint64_t, timeout C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "wait_until")
		if err != nil {
			return err
		}
		r, err := w.WaitUntil(uintptr(word), int(width), isSigned != 0, int(cmp), uint64(value), int64(timeout), -1)
		if err != nil {
			return err
		}
		if _, err := r.Wait(-1); err != nil {
			return err
		}
		if out != nil {
			*out = C.uint64_t(r.Result()[0])
		}
		return nil
	})
}
