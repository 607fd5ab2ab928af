package world

import (
	"context"
	"encoding/binary"

	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// One-sided access where a side of it is device memory. The CPU follows no device address: device memory moves by kernels or by the
// device's copies, host memory goes through pinned staging. What the host starts runs on the library's own stream and in its order.

// dtypes and operators as kernels number them (kernels/include/kernel_table.def).
const (
	aclInt32 = 3
	aclInt64 = 9
)

// PutAny is Put for any mix of memory: the symmetric side and the local side are host or device memory. nbi: the source must stay
// until the next quiet.
func (w *World) PutAny(ctx context.Context, dst, src uintptr, n uint64, pe int, nbi bool) error {
	x := w.device()
	if x == nil || n == 0 || !x.symmetric(dst, 0) && !x.holds(src) {
		return w.putHost(ctx, dst, src, n, pe)
	}
	if err := w.enter("put"); err != nil {
		return err
	}
	defer w.exit()
	ctx, stop := w.bounded(ctx, Default)
	defer stop()
	if !x.symmetric(dst, 0) {
		if _, err := w.addr("put", dst, n, pe); err != nil { // before the first piece moves
			return err
		}
		return x.staged(n, func(at uint64, mem []byte) error { // device memory to a host heap
			if err := x.read(ctx, src+uintptr(at), mem); err != nil {
				return err
			}
			return w.Put(ctx, dst+uintptr(at), mem, pe)
		})
	}
	if err := x.put(ctx, "put", device.Own, dst, src, n, pe); err != nil || nbi {
		return err
	}
	return x.wait(ctx, "put", device.Own)
}

// GetAny is Get for any mix of memory. nbi: the data are there after the next quiet.
func (w *World) GetAny(ctx context.Context, dst, src uintptr, n uint64, pe int, nbi bool) error {
	x := w.device()
	if x == nil || n == 0 || !x.symmetric(src, 0) && !x.holds(dst) {
		return w.getHost(ctx, dst, src, n, pe)
	}
	if err := w.enter("get"); err != nil {
		return err
	}
	defer w.exit()
	ctx, stop := w.bounded(ctx, Default)
	defer stop()
	if !x.symmetric(src, 0) {
		if _, err := w.addr("get", src, n, pe); err != nil {
			return err
		}
		return x.staged(n, func(at uint64, mem []byte) error { // a host heap to device memory
			if err := w.Get(ctx, mem, src+uintptr(at), pe); err != nil {
				return err
			}
			return x.write(ctx, dst+uintptr(at), mem)
		})
	}
	if err := x.get(ctx, "get", device.Own, dst, src, n, pe); err != nil || nbi {
		return err
	}
	return x.wait(ctx, "get", device.Own)
}

// putHost and getHost are the forms without a device, by addresses.
func (w *World) putHost(ctx context.Context, dst, src uintptr, n uint64, pe int) error {
	return w.Put(ctx, dst, memoryAt(src, n), pe)
}
func (w *World) getHost(ctx context.Context, dst, src uintptr, n uint64, pe int) error {
	return w.Get(ctx, memoryAt(dst, n), src, pe)
}

// staged cuts n bytes into pieces of pinned memory.
func (x *accelerator) staged(n uint64, move func(at uint64, mem []byte) error) error {
	mem := make([]byte, min(n, bounceBytes))
	for at := uint64(0); at < n; at += uint64(len(mem)) {
		if err := move(at, mem[:min(n-at, uint64(len(mem)))]); err != nil {
			return err
		}
	}
	return nil
}

// put queues a put to symmetric device memory on a stream. From host memory it waits for the stream and is complete on return.
func (x *accelerator) put(ctx context.Context, op string, s device.Stream, dst, src uintptr, n uint64, pe int) error {
	to, err := x.twin(op, dst, n, pe)
	if err != nil || n == 0 {
		return err
	}
	if !x.holds(src) {
		return x.putMemory(ctx, op, s, dst, memoryAt(src, n), pe)
	}
	x.note(s, op, false)
	return x.transfer("gshmem_k_put", s, dst, src, to, src, n, pe)
}

// putMemory puts host memory to symmetric device memory, after what is queued on a stream.
func (x *accelerator) putMemory(ctx context.Context, op string, s device.Stream, dst uintptr, src []byte, pe int) error {
	to, err := x.twin(op, dst, uint64(len(src)), pe)
	if err == nil {
		err = x.settled(ctx, op, s)
	}
	if err != nil {
		return err
	}
	return x.throughBounce(uint64(len(src)), func(at uint64, mem []byte) error {
		copy(mem, src[at:])
		return x.pushBounce(ctx, op, dst+uintptr(at), to+uintptr(at), uint64(len(mem)), pe)
	})
}

// get queues a get from symmetric device memory on a stream. Into host memory it waits and is complete on return.
func (x *accelerator) get(ctx context.Context, op string, s device.Stream, dst, src uintptr, n uint64, pe int) error {
	from, err := x.twin(op, src, n, pe)
	if err != nil || n == 0 {
		return err
	}
	if !x.holds(dst) {
		return x.getMemory(ctx, op, s, memoryAt(dst, n), src, pe)
	}
	x.note(s, op, false)
	return x.transfer("gshmem_k_get", s, dst, src, dst, from, n, pe)
}

// getMemory gets symmetric device memory into host memory, after what is queued on a stream.
func (x *accelerator) getMemory(ctx context.Context, op string, s device.Stream, dst []byte, src uintptr, pe int) error {
	from, err := x.twin(op, src, uint64(len(dst)), pe)
	if err == nil {
		err = x.settled(ctx, op, s)
	}
	if err != nil {
		return err
	}
	return x.throughBounce(uint64(len(dst)), func(at uint64, mem []byte) error {
		if err := x.pullBounce(ctx, op, src+uintptr(at), from+uintptr(at), uint64(len(mem)), pe); err != nil {
			return err
		}
		copy(dst[at:], mem)
		return nil
	})
}

// transfer moves device memory: by a kernel with the addresses as this PE knows them, or by the device's copy with the peer's part as it is mapped.
func (x *accelerator) transfer(kernel string, s device.Stream, dst, src, to, from uintptr, n uint64, pe int) error {
	if x.state == nil {
		return x.dev.Copy(to, from, n, s)
	}
	return x.launch(kernel, s, uint64(dst), uint64(src), n, uint64(pe))
}

func (x *accelerator) launch(kernel string, s device.Stream, args ...uint64) error {
	return x.launchOn(kernel, 0, s, args...)
}

func (x *accelerator) launchOn(kernel string, blocks int, s device.Stream, args ...uint64) error {
	return x.dev.Launch(kernel, blocks, s, append([]uint64{uint64(x.state.Address())}, args...)...)
}

// settled waits for a caller's stream before host memory is touched: what was queued there may have to do with it.
func (x *accelerator) settled(ctx context.Context, op string, s device.Stream) error {
	if s == device.Own {
		return nil
	}
	return x.wait(ctx, op, s)
}

// throughBounce calls move for pieces of pinned memory, one at a time in this process.
func (x *accelerator) throughBounce(n uint64, move func(at uint64, mem []byte) error) error {
	x.bounceMu.Lock()
	defer x.bounceMu.Unlock()
	if x.bounce == 0 {
		at, err := x.dev.Alloc(bounceBytes)
		if err != nil {
			return err
		}
		if x.pinned, err = x.dev.AllocHost(bounceBytes); err != nil {
			_ = x.dev.Free(at) // the first failure is the one to report
			return err
		}
		x.bounce = at
	}
	for at := uint64(0); at < n; at += bounceBytes {
		if err := move(at, memoryAt(x.pinned, min(n-at, bounceBytes))); err != nil {
			return err
		}
	}
	return nil
}

// pushBounce sends pinned memory to a PE: over the own device where the target is a peer's, whose memory only devices may be asked to write.
func (x *accelerator) pushBounce(ctx context.Context, op string, dst, to uintptr, n uint64, pe int) error {
	if pe == x.w.me {
		if err := x.dev.Copy(to, x.pinned, n, device.Own); err != nil {
			return err
		}
		return x.wait(ctx, op, device.Own)
	}
	if err := x.dev.Copy(x.bounce, x.pinned, n, device.Own); err != nil {
		return err
	}
	if err := x.transfer("gshmem_k_put", device.Own, dst, x.bounce, to, x.bounce, n, pe); err != nil {
		return err
	}
	return x.wait(ctx, op, device.Own)
}

func (x *accelerator) pullBounce(ctx context.Context, op string, src, from uintptr, n uint64, pe int) error {
	at := from
	if pe != x.w.me {
		if err := x.transfer("gshmem_k_get", device.Own, x.bounce, src, x.bounce, from, n, pe); err != nil {
			return err
		}
		at = x.bounce
	}
	if err := x.dev.Copy(x.pinned, at, n, device.Own); err != nil {
		return err
	}
	return x.wait(ctx, op, device.Own)
}

// read and write move between this process' device memory and host memory, and are complete on return.
func (x *accelerator) read(ctx context.Context, src uintptr, mem []byte) error {
	return x.throughBounce(uint64(len(mem)), func(at uint64, pinned []byte) error {
		if err := x.dev.Copy(x.pinned, src+uintptr(at), uint64(len(pinned)), device.Own); err != nil {
			return err
		}
		err := x.wait(ctx, "get", device.Own)
		copy(mem[at:], pinned)
		return err
	})
}

func (x *accelerator) write(ctx context.Context, dst uintptr, mem []byte) error {
	return x.throughBounce(uint64(len(mem)), func(at uint64, pinned []byte) error {
		copy(pinned, mem[at:])
		if err := x.dev.Copy(dst+uintptr(at), x.pinned, uint64(len(pinned)), device.Own); err != nil {
			return err
		}
		return x.wait(ctx, "put", device.Own)
	})
}

// putWord stores a word at a PE, in the order of the stream; whole when it is aligned.
func (x *accelerator) putWord(ctx context.Context, op string, s device.Stream, dst uintptr, value uint64, width, pe int) error {
	if _, err := x.twin(op, dst, uint64(width), pe); err != nil {
		return err
	}
	if x.state != nil && dst%uintptr(width) == 0 {
		x.note(s, op, false)
		return x.launchOn("gshmem_k_put_value", 1, s, uint64(dst), value, uint64(width), uint64(pe))
	}
	var b [8]byte
	binary.LittleEndian.PutUint64(b[:], value)
	return x.putMemory(ctx, op, s, dst, b[:width], pe)
}

func (x *accelerator) getWord(ctx context.Context, op string, src uintptr, width, pe int) (uint64, error) {
	var b [8]byte
	err := x.getMemory(ctx, op, device.Own, b[:width], src, pe)
	return binary.LittleEndian.Uint64(b[:]), err
}

// addWord adds to a word at a PE, in the order of the stream.
func (x *accelerator) addWord(op string, s device.Stream, dst uintptr, value uint64, width, pe int) error {
	if _, err := x.twin(op, dst, uint64(width), pe); err != nil {
		return err
	}
	if err := x.canAdd(op, width); err != nil {
		return err
	}
	kind := uint64(aclInt32)
	if width == 8 {
		kind = aclInt64
	}
	x.note(s, op, false)
	return x.launchOn("gshmem_k_atomic_add", 1, s, uint64(dst), kind, value, uint64(pe))
}

// canAdd refuses what the chip lacks.
func (x *accelerator) canAdd(op string, width int) error {
	switch {
	case x.state == nil:
		return status.New(status.Unsupported, op, "adding to a word on the device needs the kernels (%s); set it instead, or keep the word in symmetric host memory", x.facts.Kernels)
	case width == 8 && !x.facts.Atomics:
		return status.New(status.Unsupported, op, "%s adds to words of 4 bytes, not of 8; use a word of 4 bytes, set it instead, or keep it in symmetric host memory", x.facts.Name)
	}
	return nil
}

// atomic is one atomic update of a word on the device: set, fetch, and additions whose old value nobody wants.
func (x *accelerator) atomic(ctx context.Context, target uintptr, op fabric.Atomic, pe int) (uint64, error) {
	ctx, stop := x.w.bounded(ctx, Default)
	defer stop()
	switch {
	case op.Op == fabric.Fetch:
		return x.getWord(ctx, "atomic", target, op.Width, pe)
	case op.Op == fabric.Set && op.NoReply:
		return 0, x.putWord(ctx, "atomic", device.Own, target, op.Operand, op.Width, pe)
	case op.Op == fabric.Add && op.NoReply:
		return 0, x.addWord("atomic", device.Own, target, op.Operand, op.Width, pe)
	case op.Op == fabric.Inc && op.NoReply:
		return 0, x.addWord("atomic", device.Own, target, 1, op.Width, pe)
	}
	return 0, status.New(status.Unsupported, "atomic", "on device memory the host sets, fetches, and adds without asking for the old value; keep the word in symmetric host memory, or use a kernel's atomics where the chip has them (950)")
}

// putSignal puts and then updates a word of 8 bytes, each in its kind of memory; whoever sees the word sees the data.
func (w *World) putSignalAny(ctx context.Context, x *accelerator, dst, src uintptr, n uint64, sig uintptr, op int, value uint64, pe int) error {
	const name = "put_signal"
	if sig%8 != 0 {
		return status.New(status.Misaligned, name, "signal address %#x is not a multiple of 8", sig)
	}
	if !x.symmetric(sig, 8) {
		if _, err := w.addr(name, sig, 8, pe); err != nil {
			return err
		}
		if err := w.PutAny(ctx, dst, src, n, pe, false); err != nil {
			return err
		}
		return w.PutSignal(ctx, sig, nil, sig, op, value, pe)
	}
	if op == int(fabric.SignalAdd) {
		if err := x.canAdd(name, 8); err != nil {
			return err
		}
	}
	if _, err := x.twin(name, sig, 8, pe); err != nil {
		return err
	}
	if err := w.PutAny(ctx, dst, src, n, pe, false); err != nil {
		return err
	}
	ctx, stop := w.bounded(ctx, Default)
	defer stop()
	if !x.symmetric(dst, 0) { // the data went another way than the signal will
		if err := w.net.Quiet(ctx); err != nil {
			return err
		}
	}
	if op == int(fabric.SignalAdd) {
		return x.addWord(name, device.Own, sig, value, 8, pe)
	}
	return x.putWord(ctx, name, device.Own, sig, value, 8, pe)
}

// PutSignalAny is PutSignal for any mix of memory.
func (w *World) PutSignalAny(ctx context.Context, dst, src uintptr, n uint64, sig uintptr, op int, value uint64, pe int) error {
	x := w.device()
	if x == nil || !x.symmetric(dst, 0) && !x.symmetric(sig, 0) && (n == 0 || !x.holds(src)) {
		return w.PutSignal(ctx, dst, memoryAt(src, n), sig, op, value, pe)
	}
	if err := w.enter("put_signal"); err != nil {
		return err
	}
	defer w.exit()
	if op != int(fabric.SignalSet) && op != int(fabric.SignalAdd) {
		return status.New(status.InvalidArgument, "put_signal", "signal operation %d is neither GSHMEM_SIGNAL_SET nor GSHMEM_SIGNAL_ADD", op)
	}
	return w.putSignalAny(ctx, x, dst, src, n, sig, op, value, pe)
}
