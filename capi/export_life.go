package main

// #include "internal.h"
import "C"

import (
	"context"
	"time"
	"unsafe"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

// text copies a C string; NULL is "".
func text(s *C.char) string {
	if s == nil {
		return ""
	}
	return C.GoString(s)
}

//export goshmem_uid_create
func goshmem_uid_create(iface *C.char, out *C.uint8_t) C.int32_t {
	return guard(func() error {
		offer, err := bootstrap.NewOffer(text(iface))
		if err != nil {
			return err
		}
		all.mu.Lock()
		all.offers[string(offer.UID)] = offer
		all.mu.Unlock()
		copy(unsafe.Slice((*byte)(unsafe.Pointer(out)), C.GSHMEM_UID_BYTES), offer.UID)
		return nil
	})
}

// options reads the caller's struct, as much of it as the caller knows.
func options(o *C.gshmem_options) (world.Options, error) {
	opts := world.Options{Me: -1, N: -1, FindOffer: all.takeOffer}
	if o == nil {
		return opts, nil
	}
	if uint64(o.size) > uint64(unsafe.Sizeof(*o)) || o.size < 16 {
		return opts, status.New(status.InvalidArgument, "init", "options.size is %d, this library knows %d bytes: set it to sizeof(gshmem_options)", uint64(o.size), unsafe.Sizeof(*o))
	}
	var full C.gshmem_options
	copy(unsafe.Slice((*byte)(unsafe.Pointer(&full)), unsafe.Sizeof(full)), unsafe.Slice((*byte)(unsafe.Pointer(o)), int(o.size)))
	opts.Me, opts.N = int(full.me), int(full.n)
	opts.HeapBytes, opts.Timeout = uint64(full.heap_bytes), time.Duration(full.timeout_ns)
	opts.Method, opts.Endpoint, opts.Secret = text(full.method), text(full.endpoint), text(full.secret)
	opts.Transport, opts.Interface, opts.Label = text(full.transport), text(full._interface), text(full.label)
	opts.Device, opts.DeviceBytes = text(full.device), uint64(full.device_bytes)
	opts.At = world.Here(opts.Device)
	if full.uid != nil {
		opts.UID = C.GoBytes(unsafe.Pointer(full.uid), C.GSHMEM_UID_BYTES)
	}
	return opts, nil
}

//export goshmem_init_start
func goshmem_init_start(o *C.gshmem_options, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		opts, err := options(o)
		if err != nil {
			return err
		}
		ctx, cancel := context.WithCancelCause(context.Background())
		var w *world.World
		p := &pending{
			finish: func() ([4]uint64, error) {
				wh, th := all.addWorld(w)
				return [4]uint64{wh, th}, nil
			},
			drop: func(words [4]uint64) { // leaving must not keep the caller
				go func() {
					_ = w.Finalize(0)
					all.removeWorld(words[0])
				}()
			},
		}
		p.r = world.Background(func(why error) {
			cancel(why)
			go func() { // a world that came up all the same is left alone, at once
				if _, err := p.r.Wait(-1); err == nil && w != nil {
					_ = w.Finalize(0)
				}
			}()
		}, func() (err error) {
			w, err = world.New(ctx, opts)
			return err
		})
		p.r.Wait(time.Duration(slice))
		return handWords(p, out)
	})
}

//export goshmem_finalize_start
func goshmem_finalize_start(h C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(h), "finalize")
		if err != nil {
			if status.Of(err) == status.Finalized { // safe to repeat
				*out = 0
				return nil
			}
			return err
		}
		p := &pending{r: world.Background(nil, func() error {
			defer all.removeWorld(uint64(h))
			return w.Finalize(time.Duration(timeout))
		})}
		p.r.Wait(time.Duration(slice))
		return hand(p, out)
	})
}

//export goshmem_abort
func goshmem_abort(h C.uint64_t, code C.int32_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(h), "abort")
		if err != nil {
			return err
		}
		w.Abort(int32(code))
		return nil
	})
}

//export goshmem_world_number
func goshmem_world_number(h C.uint64_t, what C.int32_t) (n C.int32_t) {
	code := guard(func() error {
		w, err := all.world(uint64(h), "my_pe")
		if err != nil {
			return err
		}
		if n = C.int32_t(w.Me()); what == 1 {
			n = C.int32_t(w.N())
		}
		return nil
	})
	if code != C.GSHMEM_OK {
		return code
	}
	return n
}

//export goshmem_info
func goshmem_info(h C.uint64_t, out *C.char, capacity C.uint64_t, needed *C.uint64_t) C.int32_t {
	return guard(func() error {
		var words []byte
		if h == 0 {
			words = world.LibraryInfo(all.current())
		} else {
			w, err := all.world(uint64(h), "info")
			if err != nil {
				return err
			}
			words = w.Info()
		}
		if needed != nil {
			*needed = C.uint64_t(len(words) + 1)
		}
		if capacity == 0 {
			return nil
		}
		dst := unsafe.Slice((*byte)(unsafe.Pointer(out)), int(capacity))
		n := copy(dst[:len(dst)-1], words)
		dst[n] = 0
		return nil
	})
}
