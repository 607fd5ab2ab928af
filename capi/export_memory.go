package main

// #include "internal.h"
import "C"

import (
	"time"
	"unsafe"

	"goshmem/gocore/world"
)

func want(flags C.uint32_t) world.Want {
	return world.Want{Zero: flags&C.GSHMEM_ZERO != 0, OnDevice: flags&C.GSHMEM_ON_DEVICE != 0}
}

//export goshmem_alloc_start
func goshmem_alloc_start(th, bytes, align C.uint64_t, flags C.uint32_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "alloc")
		if err != nil {
			return err
		}
		r, block, err := t.Alloc(uint64(bytes), uint64(align), want(flags), int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		p := &pending{r: r, finish: func() ([4]uint64, error) { return nameBlock(block()), nil }, drop: func(words [4]uint64) {
			all.blocks.remove(words[0])
			block().Drop()
		}}
		return handWords(p, out)
	})
}

// nameBlock gives a block its handle and tells both words of it.
func nameBlock(b *world.Block) [4]uint64 {
	return [4]uint64{all.blocks.add(b), uint64(b.Address())}
}

//export goshmem_alloc_local
func goshmem_alloc_local(wh, bytes, align C.uint64_t, flags C.uint32_t, block *C.uint64_t, addr *unsafe.Pointer) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "alloc_local")
		if err != nil {
			return err
		}
		b, err := w.AllocLocal(uint64(bytes), uint64(align), want(flags))
		if err != nil {
			return err
		}
		words := nameBlock(b)
		*block = C.uint64_t(words[0])
		*addr = pointer(uintptr(words[1]))
		return nil
	})
}

//export goshmem_free_start
func goshmem_free_start(bh C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		b, ok := all.blocks.get(uint64(bh))
		if !ok {
			return staleBlock("free", uint64(bh))
		}
		r, err := b.Free(int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		p := &pending{r: r, finish: func() ([4]uint64, error) {
			all.blocks.remove(uint64(bh))
			return [4]uint64{}, nil
		}}
		return hand(p, out)
	})
}

//export goshmem_block_drop
func goshmem_block_drop(bh C.uint64_t) C.int32_t {
	return guard(func() error {
		b, ok := all.blocks.remove(uint64(bh))
		if !ok {
			return staleBlock("block_drop", uint64(bh))
		}
		b.Drop()
		return nil
	})
}

//export goshmem_collect_start
func goshmem_collect_start(th C.uint64_t, timeout, slice C.int64_t, out *C.uint64_t) C.int32_t {
	return guard(func() error {
		t, err := all.team(uint64(th), "collect")
		if err != nil {
			return err
		}
		r, err := t.Collect(int64(timeout), time.Duration(slice))
		if err != nil {
			return err
		}
		return handWords(&pending{r: r}, out)
	})
}

//export goshmem_block_of
func goshmem_block_of(wh C.uint64_t, addr unsafe.Pointer, block *C.uint64_t, low *unsafe.Pointer, bytes *C.uint64_t) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "block_of")
		if err != nil {
			return err
		}
		b, err := w.BlockOf(uintptr(addr))
		if err != nil {
			return err
		}
		h, ok := all.blocks.find(func(x *world.Block) bool { return x == b })
		if !ok {
			return staleBlock("block_of", 0)
		}
		*block, *low, *bytes = C.uint64_t(h), pointer(b.Address()), C.uint64_t(b.Size())
		return nil
	})
}

//export goshmem_ptr
func goshmem_ptr(wh C.uint64_t, addr unsafe.Pointer, pe C.int32_t, out *unsafe.Pointer) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "ptr")
		if err != nil {
			return err
		}
		at, err := w.Ptr(uintptr(addr), int(pe))
		if err != nil {
			return err
		}
		*out = pointer(at)
		return nil
	})
}

//export goshmem_heap_stats
func goshmem_heap_stats(wh C.uint64_t, out *C.gshmem_heap_stat) C.int32_t {
	return guard(func() error {
		w, err := all.world(uint64(wh), "heap_stats")
		if err != nil {
			return err
		}
		fillStats(out, w.HeapStats())
		return nil
	})
}

func fillStats(out *C.gshmem_heap_stat, s world.HeapStat) {
	full := C.gshmem_heap_stat{size: out.size, low: C.uint64_t(s.Low), bytes: C.uint64_t(s.Bytes), used: C.uint64_t(s.Used),
		largest_hole: C.uint64_t(s.LargestHole), blocks: C.uint64_t(s.Blocks), dropped: C.uint64_t(s.Dropped)}
	n := min(uint64(out.size), uint64(unsafe.Sizeof(full)))
	copy(unsafe.Slice((*byte)(unsafe.Pointer(out)), int(n)), unsafe.Slice((*byte)(unsafe.Pointer(&full)), int(n)))
}
