package world

import (
	"context"
	"encoding/binary"
	"math"
	"math/big"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// The one-sided operations as Go does them: for peers that are not mapped, and to word what the hot path refused.
// Addresses are this PE's own; the twin at the peer has the same offset.

// CheckPE refuses a PE that is none of this world, or is dead.
func (w *World) CheckPE(op string, pe int) error {
	if pe < 0 || pe >= w.n {
		return status.New(status.InvalidPE, op, "PE %d does not exist; this world has PEs 0 to %d", pe, w.n-1)
	}
	if err := w.lost(pe); err != nil {
		return status.At(status.PeerDead, op, pe, "%v", err)
	}
	return nil
}

// addr turns an own address into the peer's place.
func (w *World) addr(op string, at uintptr, n uint64, pe int) (fabric.Addr, error) {
	if err := w.usable(op); err != nil {
		return fabric.Addr{}, err
	}
	if err := w.CheckPE(op, pe); err != nil {
		return fabric.Addr{}, err
	}
	low, size := w.heapLow(), w.heapBytes()
	off := uint64(at - low)
	if at < low || off > size || n > size-off {
		if n == 0 {
			return fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, w.seg.Geo.HeapOff)}, nil
		}
		return fabric.Addr{}, status.New(status.NotSymmetric, op, "[%#x, +%d) is not inside this PE's symmetric heap [%#x, +%d): allocate the remote side with shmem.empty, gshmem_alloc, shmem_malloc or aclshmem_malloc",
			at, n, low, size)
	}
	return fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, w.seg.Geo.HeapOff+off)}, nil
}

// Context is what one-sided operations run under when nothing else may call them off: it ends with the world, or an abort.
func (w *World) Context() context.Context { return w.ctx }

// bounded is a context for a one-sided operation that needs the peer's runtime.
func (w *World) bounded(ctx context.Context, timeout int64) (context.Context, context.CancelFunc) {
	if timeout == Default {
		timeout = int64(w.timeout)
	}
	if timeout < 0 {
		return ctx, func() {}
	}
	return context.WithTimeoutCause(ctx, time.Duration(timeout), status.New(status.Timeout, "", "no answer within %v (SHMEM_TIMEOUT, or the call's own timeout)", time.Duration(timeout)))
}

// Put copies src to the peer's twin of dst.
func (w *World) Put(ctx context.Context, dst uintptr, src []byte, pe int) error {
	if err := w.enter("put"); err != nil {
		return err
	}
	defer w.exit()
	at, err := w.addr("put", dst, uint64(len(src)), pe)
	if err != nil || len(src) == 0 {
		return err
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	return w.net.Put(ctx, at, src)
}

// Get fills dst from the peer's twin of src.
func (w *World) Get(ctx context.Context, dst []byte, src uintptr, pe int) error {
	if err := w.enter("get"); err != nil {
		return err
	}
	defer w.exit()
	at, err := w.addr("get", src, uint64(len(dst)), pe)
	if err != nil || len(dst) == 0 {
		return err
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	return w.net.Get(ctx, dst, at)
}

func checkWidth(op string, width int) error {
	switch width {
	case 1, 2, 4, 8:
		return nil
	}
	return status.New(status.InvalidArgument, op, "width %d is none of 1, 2, 4, 8", width)
}

// CheckStrided refuses a strided access that leaves the heap at the peer, or whose numbers leave 64 bits, before anything moves.
// at and stride are of the symmetric side, other is the stride of the caller's memory; both in elements.
func (w *World) CheckStrided(op string, at uintptr, stride, other int64, elem, count uint64, pe int) error {
	if err := w.CheckPE(op, pe); err != nil || elem == 0 || count == 0 {
		return err
	}
	reach := new(big.Int).Mul(big.NewInt(stride), new(big.Int).SetUint64(elem))
	reach.Mul(reach, new(big.Int).SetUint64(count-1))
	far := new(big.Int).Mul(big.NewInt(other), new(big.Int).SetUint64(elem))
	far.Mul(far, new(big.Int).SetUint64(count-1))
	if !reach.IsInt64() || !far.IsInt64() || count > math.MaxInt64 || elem > math.MaxInt64 {
		return status.New(status.NotSymmetric, op, "%d elements of %d bytes with strides %d and %d do not fit any address space", count, elem, stride, other)
	}
	last := uintptr(int64(at) + reach.Int64())
	x := w.device()
	for _, end := range []uintptr{at, last} {
		var err error
		if x.symmetric(at, 0) {
			_, err = x.twin(op, end, elem, pe)
		} else {
			_, err = w.addr(op, end, elem, pe)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// P stores one value at the peer and wakes its waiters. Aligned words of 4 and 8 bytes are never torn.
func (w *World) P(ctx context.Context, dst uintptr, value uint64, width, pe int) error {
	if err := w.enter("p"); err != nil {
		return err
	}
	defer w.exit()
	if err := checkWidth("p", width); err != nil {
		return err
	}
	if x := w.device(); x.symmetric(dst, 0) {
		ctx, cancel := w.bounded(ctx, Default)
		defer cancel()
		return x.putWord(ctx, "p", device.Own, dst, value, width, pe)
	}
	at, err := w.addr("p", dst, uint64(width), pe)
	if err != nil {
		return err
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	if width >= 4 && at.Ref.Off()%uint64(width) == 0 {
		_, err = w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Set, Width: width, Operand: value, NoReply: true})
		return err
	}
	return w.net.Put(ctx, at, binary.LittleEndian.AppendUint64(nil, value)[:width])
}

// G reads one value.
func (w *World) G(ctx context.Context, src uintptr, width, pe int) (uint64, error) {
	if err := w.enter("g"); err != nil {
		return 0, err
	}
	defer w.exit()
	if err := checkWidth("g", width); err != nil {
		return 0, err
	}
	if x := w.device(); x.symmetric(src, 0) {
		ctx, cancel := w.bounded(ctx, Default)
		defer cancel()
		return x.getWord(ctx, "g", src, width, pe)
	}
	at, err := w.addr("g", src, uint64(width), pe)
	if err != nil {
		return 0, err
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	if width >= 4 && at.Ref.Off()%uint64(width) == 0 {
		return w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Fetch, Width: width})
	}
	var b [8]byte
	err = w.net.Get(ctx, b[:width], at)
	return binary.LittleEndian.Uint64(b[:]), err
}

// Atomic updates one word of the peer.
func (w *World) Atomic(ctx context.Context, target uintptr, op fabric.Atomic, pe int) (uint64, error) {
	if err := w.enter("atomic"); err != nil {
		return 0, err
	}
	defer w.exit()
	if op.Op < fabric.Set || op.Op > fabric.Xor {
		return 0, status.New(status.InvalidArgument, "atomic", "operation %d is none of GSHMEM_A_SET to GSHMEM_A_XOR", op.Op)
	}
	if op.Width != 4 && op.Width != 8 {
		return 0, status.New(status.InvalidArgument, "atomic", "width %d is neither 4 nor 8", op.Width)
	}
	if x := w.device(); x.symmetric(target, 0) {
		if target%uintptr(op.Width) != 0 {
			return 0, status.New(status.Misaligned, "atomic", "address %#x is not a multiple of %d", target, op.Width)
		}
		return x.atomic(ctx, target, op, pe)
	}
	at, err := w.addr("atomic", target, uint64(op.Width), pe)
	if err != nil {
		return 0, err
	}
	if target%uintptr(op.Width) != 0 {
		return 0, status.New(status.Misaligned, "atomic", "address %#x is not a multiple of %d", target, op.Width)
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	return w.net.Atomic(ctx, at, op)
}

// PutSignal puts and then updates the signal word at the same peer.
func (w *World) PutSignal(ctx context.Context, dst uintptr, src []byte, sig uintptr, op int, value uint64, pe int) error {
	if err := w.enter("put_signal"); err != nil {
		return err
	}
	defer w.exit()
	if op != int(fabric.SignalSet) && op != int(fabric.SignalAdd) {
		return status.New(status.InvalidArgument, "put_signal", "signal operation %d is neither GSHMEM_SIGNAL_SET nor GSHMEM_SIGNAL_ADD", op)
	}
	at, err := w.addr("put_signal", dst, uint64(len(src)), pe)
	if err != nil {
		return err
	}
	word, err := w.addr("put_signal", sig, 8, pe)
	if err != nil {
		return err
	}
	if sig%8 != 0 {
		return status.New(status.Misaligned, "put_signal", "signal address %#x is not a multiple of 8", sig)
	}
	ctx, cancel := w.bounded(ctx, Default)
	defer cancel()
	return w.net.PutSignal(ctx, at, src, word, fabric.SignalOp(op), value)
}

// Fence orders earlier puts before later ones, for every peer.
func (w *World) Fence() error {
	if err := w.enter("fence"); err != nil {
		return err
	}
	defer w.exit()
	ctx, cancel := w.bounded(w.ctx, Default)
	defer cancel()
	if err := w.quietDevice(ctx, "fence"); err != nil {
		return err
	}
	for pe := range w.n {
		if w.monitor.Dead(pe) != nil {
			continue // nothing can be ordered at a dead PE; its own operations fail by name
		}
		if err := w.net.Fence(ctx, pe); err != nil {
			return err
		}
	}
	return nil
}

// Quiet returns when everything this PE issued has taken effect.
func (w *World) Quiet(ctx context.Context, timeout int64) error {
	if err := w.enter("quiet"); err != nil {
		return err
	}
	defer w.exit()
	ctx, cancel := w.bounded(ctx, timeout)
	defer cancel()
	return w.quietAll(ctx, "quiet")
}

// quietAll waits for what was issued on the library's stream of the device and on the network.
func (w *World) quietAll(ctx context.Context, op string) error {
	if err := w.quietDevice(ctx, op); err != nil {
		return err
	}
	return w.net.Quiet(ctx)
}

func (w *World) quietDevice(ctx context.Context, op string) error {
	if x := w.device(); x.hasWork(device.Own) {
		return x.wait(ctx, op, device.Own)
	}
	return nil
}

// Ptr is where the peer's twin of an own address is mapped here.
func (w *World) Ptr(addr uintptr, pe int) (uintptr, error) {
	if err := w.enter("ptr"); err != nil {
		return 0, err
	}
	defer w.exit()
	if x := w.device(); x.symmetric(addr, 0) {
		return x.twin("ptr", addr, 0, pe)
	}
	at, err := w.addr("ptr", addr, 0, pe)
	if err != nil {
		return 0, err
	}
	low := w.heapLow()
	if addr < low || uint64(addr-low) > w.heapBytes() {
		return 0, status.New(status.NotSymmetric, "ptr", "address %#x is not in the symmetric heap [%#x, +%d)", addr, low, w.heapBytes())
	}
	peer := w.segs[pe]
	if peer == nil {
		return 0, status.At(status.Unsupported, "ptr", pe, "its memory is not mapped here (%s); use put and get", w.net.Reason(pe))
	}
	return baseOf(peer.Bytes()) + uintptr(at.Ref.Off()), nil
}
