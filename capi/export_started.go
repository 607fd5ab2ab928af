package main

// #include "internal.h"
import "C"

import (
	"context"
	"time"
	"unsafe"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

// oneSided is a copy of what the caller asks for; what it points to is the caller's until the request ends.
type oneSided C.gshmem_one_sided

//export goshmem_one_sided_start
func goshmem_one_sided_start(wh C.uint64_t, what *C.gshmem_one_sided, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "one_sided")
		if err != nil {
			return err
		}
		if what == nil || out == nil {
			return status.New(status.InvalidArgument, "one_sided", "what or request_out is NULL")
		}
		if what.size != C.sizeof_gshmem_one_sided {
			return status.New(status.InvalidArgument, "one_sided", "what.size is %d; set it to sizeof(gshmem_one_sided), which is %d here", uint64(what.size), C.sizeof_gshmem_one_sided)
		}
		asked := oneSided(*what)
		run, err := asked.bind(w, int64(timeout))
		if err != nil {
			return err
		}
		return handWords(&pending{r: w.Started(time.Duration(slice), run)}, out)
	})
}

// bind checks what can be checked now and gives the operation.
func (o *oneSided) bind(w *world.World, timeout int64) (func(context.Context) (uint64, error), error) {
	dst, src, n, pe := uintptr(o.dst), uintptr(o.src), uint64(o.bytes), int(o.pe)
	plain := func(f func(ctx context.Context) error) func(context.Context) (uint64, error) {
		return func(ctx context.Context) (uint64, error) { return 0, f(ctx) }
	}
	switch o.what {
	case C.GSHMEM_DO_PUT:
		_, err := local("put", o.src, o.bytes)
		return plain(func(ctx context.Context) error { return w.PutAny(ctx, dst, src, n, pe, o.nbi != 0) }), err
	case C.GSHMEM_DO_GET:
		_, err := local("get", o.dst, o.bytes)
		return plain(func(ctx context.Context) error { return w.GetAny(ctx, dst, src, n, pe, o.nbi != 0) }), err
	case C.GSHMEM_DO_IPUT:
		_, err := local("iput", o.src, o.bytes*min(o.count, 1))
		return plain(func(ctx context.Context) error {
			return w.IputAny(ctx, dst, src, int64(o.dst_stride), int64(o.src_stride), n, uint64(o.count), pe)
		}), err
	case C.GSHMEM_DO_IGET:
		_, err := local("iget", o.dst, o.bytes*min(o.count, 1))
		return plain(func(ctx context.Context) error {
			return w.IgetAny(ctx, dst, src, int64(o.dst_stride), int64(o.src_stride), n, uint64(o.count), pe)
		}), err
	case C.GSHMEM_DO_PUT_MANY, C.GSHMEM_DO_GET_MANY:
		return o.many(w)
	case C.GSHMEM_DO_P:
		return plain(func(ctx context.Context) error { return w.P(ctx, dst, uint64(o.value), int(o.width), pe) }), nil
	case C.GSHMEM_DO_G:
		return func(ctx context.Context) (uint64, error) { return w.G(ctx, src, int(o.width), pe) }, nil
	case C.GSHMEM_DO_ATOMIC:
		if o.op < C.GSHMEM_A_SET || o.op > C.GSHMEM_A_XOR {
			return nil, status.New(status.InvalidArgument, "atomic", "operation %d is none of GSHMEM_A_SET to GSHMEM_A_XOR", int32(o.op))
		}
		op := fabric.Atomic{Op: fabric.AtomicOp(o.op), Width: int(o.width), Operand: uint64(o.value), Compare: uint64(o.compare), NoReply: o.fetch == 0}
		return func(ctx context.Context) (uint64, error) { return w.Atomic(ctx, dst, op, pe) }, nil
	case C.GSHMEM_DO_PUT_SIGNAL:
		_, err := local("put_signal", o.src, o.bytes)
		return plain(func(ctx context.Context) error {
			return w.PutSignalAny(ctx, dst, src, n, uintptr(unsafe.Pointer(o.signal)), int(o.op), uint64(o.value), pe)
		}), err
	case C.GSHMEM_DO_QUIET:
		return plain(func(ctx context.Context) error { return w.Quiet(ctx, timeout) }), nil
	}
	return nil, status.New(status.InvalidArgument, "one_sided", "what.what is %d, none of GSHMEM_DO_PUT to GSHMEM_DO_QUIET", int32(o.what))
}

// many moves pieces one after the other, and counts them.
func (o *oneSided) many(w *world.World) (func(context.Context) (uint64, error), error) {
	n := int(o.count)
	if o.count > 1<<40 {
		return nil, status.New(status.InvalidArgument, "one_sided", "count is %d pieces; no memory holds the arrays of so many", uint64(o.count))
	}
	if n > 0 && (o.dst == nil || o.src == nil || o.many_bytes == nil || o.many_pe == nil) {
		return nil, status.New(status.InvalidArgument, "one_sided", "%d pieces, and an array of them is NULL", uint64(o.count))
	}
	dst, src := unsafe.Slice((*uintptr)(o.dst), n), unsafe.Slice((*uintptr)(o.src), n)
	bytes, pe := unsafe.Slice(o.many_bytes, n), unsafe.Slice(o.many_pe, n)
	name, near, move := "get_many", dst, w.GetAny
	if o.what == C.GSHMEM_DO_PUT_MANY {
		name, near, move = "put_many", src, w.PutAny
	}
	return func(ctx context.Context) (done uint64, err error) {
		defer func() {
			if o.done_out != nil {
				*o.done_out = C.uint64_t(done)
			}
		}()
		for i := range n {
			if err := context.Cause(ctx); err != nil { // mapped memory is moved without a look at it
				return done, err
			}
			if near[i] < nothing && bytes[i] != 0 {
				return done, status.New(status.InvalidArgument, name, "piece %d: the address %#x of %d bytes of this process is none", i, near[i], uint64(bytes[i]))
			}
			err = move(ctx, dst[i], src[i], uint64(bytes[i]), int(pe[i]), false)
			if err != nil {
				return done, err
			}
			done++
		}
		return done, nil
	}, nil
}
