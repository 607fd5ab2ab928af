package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/coll"
	"goshmem/gocore/device"
	"goshmem/gocore/world"
)

// onWorld is guard for calls on a world.
func onWorld(wh C.uint64_t, op string, f func(w *world.World) error) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), op)
		if err != nil {
			return err
		}
		return f(w)
	})
}

func streamOf(s unsafe.Pointer) device.Stream { return device.Stream(uintptr(s)) }

//export goshmem_device_open_start
func goshmem_device_open_start(wh C.uint64_t, kind *C.char, bytes C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return onWorld(wh, "device_open", func(w *world.World) error {
		r, err := w.OpenDevice(text(kind), world.Here(text(kind)), uint64(bytes), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return hand(&pending{r: r}, out)
	})
}

//export goshmem_device_health
func goshmem_device_health(wh C.uint64_t) C.int32_t {
	return onWorld(wh, "device_health", func(w *world.World) error { return w.DeviceHealth() })
}

//export goshmem_device_stats
func goshmem_device_stats(wh C.uint64_t, out *C.gshmem_heap_stat) C.int32_t {
	return onWorld(wh, "device_stats", func(w *world.World) error {
		s, err := w.DeviceStats()
		if err == nil {
			fillStats(out, s)
		}
		return err
	})
}

//export goshmem_device_state
func goshmem_device_state(wh C.uint64_t, out *C.uint64_t) C.int32_t {
	return onWorld(wh, "device_state", func(w *world.World) error {
		at, err := w.DeviceState()
		if err == nil {
			*out = C.uint64_t(at)
		}
		return err
	})
}

//export goshmem_device_reach_host_start
func goshmem_device_reach_host_start(wh C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return onWorld(wh, "device_reach_host", func(w *world.World) error {
		r, err := w.ReachHost(int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return hand(&pending{r: r}, out)
	})
}

//export goshmem_device_address
func goshmem_device_address(wh C.uint64_t, at unsafe.Pointer, pe C.int32_t, out *C.uint64_t) C.int32_t {
	return onWorld(wh, "device_address", func(w *world.World) error {
		there, err := w.DeviceAddress(uintptr(at), int(pe))
		if err == nil {
			*out = C.uint64_t(there)
		}
		return err
	})
}

//export goshmem_team_index
func goshmem_team_index(th C.uint64_t, out *C.int32_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "team_index")
		if err == nil {
			*out = C.int32_t(t.Index())
		}
		return err
	})
}

//export goshmem_kind_of
func goshmem_kind_of(wh C.uint64_t, at unsafe.Pointer, out *C.int32_t) C.int32_t {
	return onWorld(wh, "kind_of", func(w *world.World) error {
		*out = C.int32_t(w.KindOf(uintptr(at)))
		return nil
	})
}

//export goshmem_stream_create
func goshmem_stream_create(wh C.uint64_t, out *unsafe.Pointer) C.int32_t {
	return onWorld(wh, "stream_create", func(w *world.World) error {
		s, err := w.NewStream()
		if err == nil {
			*out = pointer(uintptr(s))
		}
		return err
	})
}

//export goshmem_stream_destroy
func goshmem_stream_destroy(wh C.uint64_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "stream_destroy", func(w *world.World) error { return w.FreeStream(streamOf(s)) })
}

//export goshmem_stream_join
func goshmem_stream_join(wh C.uint64_t, s, other unsafe.Pointer) C.int32_t {
	return onWorld(wh, "stream_join", func(w *world.World) error { return w.JoinStreams(streamOf(s), streamOf(other)) })
}

//export goshmem_stream_wait_start
func goshmem_stream_wait_start(wh C.uint64_t, s unsafe.Pointer, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return onWorld(wh, "stream_wait", func(w *world.World) error {
		r, err := w.WaitStream(streamOf(s), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return hand(&pending{r: r}, out)
	})
}

//export goshmem_copy_on_stream
func goshmem_copy_on_stream(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "copy_on_stream", func(w *world.World) error {
		from, err := local("copy_on_stream", src, n)
		if err != nil {
			return err
		}
		to, err := local("copy_on_stream", dst, n)
		if err != nil {
			return err
		}
		return w.CopyOnStream(to, from, uint64(n), streamOf(s))
	})
}

//export goshmem_put_on_stream
func goshmem_put_on_stream(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, pe C.int32_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "put_on_stream", func(w *world.World) error {
		from, err := local("put_on_stream", src, n)
		if err != nil {
			return err
		}
		return w.PutOnStream(uintptr(dst), from, uint64(n), int(pe), streamOf(s))
	})
}

//export goshmem_get_on_stream
func goshmem_get_on_stream(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, pe C.int32_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "get_on_stream", func(w *world.World) error {
		to, err := local("get_on_stream", dst, n)
		if err != nil {
			return err
		}
		return w.GetOnStream(to, uintptr(src), uint64(n), int(pe), streamOf(s))
	})
}

//export goshmem_put_signal_on_stream
func goshmem_put_signal_on_stream(wh C.uint64_t, dst, src unsafe.Pointer, n C.uint64_t, sig unsafe.Pointer, value, op, pe C.int32_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "put_signal_on_stream", func(w *world.World) error {
		from, err := local("put_signal_on_stream", src, n)
		if err != nil {
			return err
		}
		return w.PutSignalOnStream(uintptr(dst), from, uint64(n), uintptr(sig), int32(value), int(op), int(pe), streamOf(s))
	})
}

//export goshmem_signal_on_stream
func goshmem_signal_on_stream(wh C.uint64_t, sig unsafe.Pointer, value, op, pe C.int32_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "signal_on_stream", func(w *world.World) error {
		return w.SignalOnStream(uintptr(sig), int32(value), int(op), int(pe), streamOf(s))
	})
}

//export goshmem_signal_wait_on_stream
func goshmem_signal_wait_on_stream(wh C.uint64_t, sig unsafe.Pointer, cmp, value C.int32_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "signal_wait_on_stream", func(w *world.World) error {
		return w.SignalWaitOnStream(uintptr(sig), int(cmp), int32(value), streamOf(s))
	})
}

//export goshmem_quiet_on_stream
func goshmem_quiet_on_stream(wh C.uint64_t, s unsafe.Pointer) C.int32_t {
	return onWorld(wh, "quiet_on_stream", func(w *world.World) error { return w.QuietOnStream(streamOf(s)) })
}

//export goshmem_collective_announce
func goshmem_collective_announce(th C.uint64_t, what C.int32_t, count C.uint64_t, dtype, op, root, byHost C.int32_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "collective_announce")
		if err != nil {
			return err
		}
		return t.AnnounceOnStream(coll.Call{Op: int(what), Count: uint64(count), DType: int(dtype), RedOp: int(op), Root: int(root)}, byHost != 0)
	})
}

//export goshmem_exchange_announce
func goshmem_exchange_announce(th C.uint64_t, dtype C.int32_t, sent, taken *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "exchange_announce")
		if err != nil {
			return err
		}
		return t.AnnounceExchange(int(dtype), unsafe.Slice((*uint64)(unsafe.Pointer(sent)), t.N()), unsafe.Slice((*uint64)(unsafe.Pointer(taken)), t.N()))
	})
}

//export goshmem_collective_on_stream
func goshmem_collective_on_stream(th C.uint64_t, what C.int32_t, in, out unsafe.Pointer, count C.uint64_t, dtype, op, root C.int32_t, s unsafe.Pointer) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "collective_on_stream")
		if err != nil {
			return err
		}
		return t.CollectiveOnStream(coll.Call{Op: int(what), In: uintptr(in), Out: uintptr(out), Count: uint64(count), DType: int(dtype), RedOp: int(op),
			Root: int(root)}, streamOf(s))
	})
}

// goshmem_device_buffer moves the staging buffer of kernels, for the Ascend face. Without kernels there is nothing to move.
//
//export goshmem_device_buffer
func goshmem_device_buffer(wh C.uint64_t, engine C.int32_t, at C.uint64_t, size, event C.uint32_t) C.int32_t {
	return onWorld(wh, "set_config", func(w *world.World) error {
		return w.SetKernelBuffer(int(engine), uint64(at), uint32(size), uint32(event))
	})
}
