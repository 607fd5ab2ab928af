package world

import (
	"context"
	"encoding/binary"

	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// Words in device memory: single values, atomics and signals. Transfers are in device_move.go.

// dtypes as kernels number them (kernels/include/kernel_table.def).
const (
	aclInt32  = 3
	aclUint32 = 8
	aclInt64  = 9
)

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
	return x.moveMemory(ctx, s, move{op: op, putting: true, at: dst, pe: pe}, b[:width])
}

func (x *accelerator) getWord(ctx context.Context, op string, src uintptr, width, pe int) (uint64, error) {
	var b [8]byte
	err := x.moveMemory(ctx, device.Own, move{op: op, at: src, pe: pe}, b[:width])
	return binary.LittleEndian.Uint64(b[:]), err
}

// addWord adds to a word at a PE, in the order of the stream: by the scalar unit where the chip's has atomics, as those with an old value
// do, else by an adding store.
func (x *accelerator) addWord(op string, s device.Stream, dst uintptr, value uint64, width, pe int) error {
	if _, err := x.twin(op, dst, uint64(width), pe); err != nil {
		return err
	}
	if err := x.canAdd(op, width); err != nil {
		return err
	}
	kind := uint64(aclInt32)
	switch {
	case width == 8:
		kind = aclInt64
	case x.facts.Atomics:
		kind = aclUint32 // adds alike
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
	return x.fetching(ctx, target, op, pe)
}

// fetchingOp is an atomic with an old value as the kernel numbers it. A set whose old value is wanted is a swap.
func fetchingOp(op fabric.AtomicOp) uint64 {
	switch op {
	case fabric.CompareSwap:
		return 2
	case fabric.Add, fabric.Inc:
		return 3
	case fabric.And:
		return 4
	case fabric.Or:
		return 5
	case fabric.Xor:
		return 6
	}
	return 1
}

// fetching is an atomic whose old value is wanted, or that is none of the simple ones: a kernel's, where the chip has it.
func (x *accelerator) fetching(ctx context.Context, target uintptr, op fabric.Atomic, pe int) (old uint64, err error) {
	const name = "atomic"
	switch {
	case x.state == nil:
		return 0, status.New(status.Unsupported, name, "without kernels (%s) the host sets and fetches words on the device; keep the word in symmetric host memory", x.facts.Kernels)
	case !x.facts.Atomics:
		return 0, status.New(status.Unsupported, name, "%s has no atomics that give an old value, swap, or work on bits (a 950 has): words on the device can be set, fetched, and added to without it; keep the word in symmetric host memory", x.facts.Name)
	}
	if _, err := x.twin(name, target, uint64(op.Width), pe); err != nil {
		return 0, err
	}
	operand := op.Operand
	if op.Op == fabric.Inc {
		operand = 1
	}
	err = x.throughBounce(uint64(op.Width), func(_ uint64, mem []byte) error {
		x.note(device.Own, name, false)
		if err := x.launchOn("gshmem_k_atomic", 1, device.Own, uint64(target), fetchingOp(op.Op), uint64(op.Width), operand, op.Compare, uint64(x.bounce), uint64(pe)); err != nil {
			return err
		}
		if err := x.dev.Copy(x.pinned, x.bounce, uint64(op.Width), device.Own); err != nil {
			return err
		}
		err := x.wait(ctx, name, device.Own)
		var b [8]byte
		copy(b[:], mem)
		old = binary.LittleEndian.Uint64(b[:])
		return err
	})
	return old, err
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
