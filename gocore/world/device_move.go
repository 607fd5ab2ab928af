package world

import (
	"context"

	"goshmem/gocore/device"
)

// One-sided access where a side of it is device memory. The CPU follows no device address: device memory moves by kernels or by the
// device's copies, host memory goes through pinned staging, or straight where the device has it registered (device_host.go). What the
// host starts runs on the library's own stream and in its order.

// move is n bytes between symmetric memory of a PE, at `at` as this PE names it, and memory of this process at `local`.
type move struct {
	op        string
	putting   bool // from local to the PE, else the other way
	at, local uintptr
	n         uint64
	pe        int
}

// piece is a part of it, with the local side elsewhere.
func (m move) piece(off uint64, local uintptr, n uint64) move {
	m.at, m.local, m.n = m.at+uintptr(off), local, n
	return m
}

// ends are where the bytes go and where they come from, when the PE's side is mapped at there.
func (m move) ends(there uintptr) (to, from uintptr) {
	if m.putting {
		return there, m.local
	}
	return m.local, there
}

// PutAny is Put for any mix of memory: the symmetric side and the local side are host or device memory. nbi: the source must stay
// until the next quiet.
func (w *World) PutAny(ctx context.Context, dst, src uintptr, n uint64, pe int, nbi bool) error {
	return w.moveAny(ctx, move{"put", true, dst, src, n, pe}, nbi)
}

// GetAny is Get for any mix of memory. nbi: the data are there after the next quiet.
func (w *World) GetAny(ctx context.Context, dst, src uintptr, n uint64, pe int, nbi bool) error {
	return w.moveAny(ctx, move{"get", false, src, dst, n, pe}, nbi)
}

func (w *World) moveAny(ctx context.Context, m move, nbi bool) error {
	x := w.device()
	if x == nil || m.n == 0 || !x.symmetric(m.at, 0) && !x.holds(m.local) {
		return w.moveHost(ctx, m)
	}
	if err := w.enter(m.op); err != nil {
		return err
	}
	defer w.exit()
	ctx, stop := w.bounded(ctx, Default)
	defer stop()
	if !x.symmetric(m.at, 0) {
		return x.moveToHost(ctx, m)
	}
	if err := x.move(ctx, device.Own, m); err != nil || nbi {
		return err
	}
	return x.wait(ctx, m.op, device.Own)
}

// moveHost is the form without a device.
func (w *World) moveHost(ctx context.Context, m move) error {
	if m.putting {
		return w.Put(ctx, m.at, memoryAt(m.local, m.n), m.pe)
	}
	return w.Get(ctx, memoryAt(m.local, m.n), m.at, m.pe)
}

// moveToHost moves between device memory of this process and a host heap, and waits.
func (x *accelerator) moveToHost(ctx context.Context, m move) error {
	if _, err := x.w.addr(m.op, m.at, m.n, m.pe); err != nil { // before the first piece moves
		return err
	}
	if there, ok := x.hostTwin(m.at, m.pe); ok {
		if err := x.copyAlong(device.Own, m, there); err != nil {
			return err
		}
		return x.wait(ctx, m.op, device.Own)
	}
	mem := make([]byte, min(m.n, bounceBytes))
	for off := uint64(0); off < m.n; off += uint64(len(mem)) {
		part := mem[:min(m.n-off, uint64(len(mem)))]
		if err := x.pieceToHost(ctx, m, off, part); err != nil {
			return err
		}
	}
	return nil
}

func (x *accelerator) pieceToHost(ctx context.Context, m move, off uint64, mem []byte) error {
	here, there := m.local+uintptr(off), m.at+uintptr(off)
	if m.putting {
		if err := x.read(ctx, here, mem); err != nil {
			return err
		}
		return x.w.Put(ctx, there, mem, m.pe)
	}
	if err := x.w.Get(ctx, mem, there, m.pe); err != nil {
		return err
	}
	return x.write(ctx, here, mem)
}

// copyAlong queues the device's copy on a stream.
func (x *accelerator) copyAlong(s device.Stream, m move, there uintptr) error {
	x.note(s, m.op, false)
	to, from := m.ends(there)
	return x.dev.Copy(to, from, m.n, s)
}

// move queues a transfer with symmetric device memory on a stream. With host memory on the local side it waits for the stream and is
// complete on return.
func (x *accelerator) move(ctx context.Context, s device.Stream, m move) error {
	there, err := x.twin(m.op, m.at, m.n, m.pe)
	if err != nil || m.n == 0 {
		return err
	}
	if !x.holds(m.local) {
		return x.moveMemory(ctx, s, m, memoryAt(m.local, m.n))
	}
	x.note(s, m.op, false)
	return x.transfer(s, m, there)
}

// moveMemory moves between host memory and symmetric device memory, after what is queued on a stream.
func (x *accelerator) moveMemory(ctx context.Context, s device.Stream, m move, mem []byte) error {
	there, err := x.twin(m.op, m.at, uint64(len(mem)), m.pe)
	if err == nil {
		err = x.settled(ctx, m.op, s)
	}
	if err != nil {
		return err
	}
	return x.throughBounce(uint64(len(mem)), func(off uint64, pinned []byte) error {
		p := m.piece(off, x.bounce, uint64(len(pinned)))
		if m.putting {
			copy(pinned, mem[off:])
			return x.pushBounce(ctx, p, there+uintptr(off))
		}
		if err := x.pullBounce(ctx, p, there+uintptr(off)); err != nil {
			return err
		}
		copy(mem[off:], pinned)
		return nil
	})
}

// transfer moves device memory: by a kernel with the addresses as this PE knows them, or by the device's copy with the peer's part as it is mapped.
func (x *accelerator) transfer(s device.Stream, m move, there uintptr) error {
	if x.state == nil {
		to, from := m.ends(there)
		return x.dev.Copy(to, from, m.n, s)
	}
	kernel := "gshmem_k_get"
	if m.putting {
		kernel = "gshmem_k_put"
	}
	to, from := m.ends(m.at)
	return x.launch(kernel, s, uint64(to), uint64(from), m.n, uint64(m.pe))
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
func (x *accelerator) pushBounce(ctx context.Context, m move, there uintptr) error {
	to := x.bounce
	if m.pe == x.w.me {
		to = there
	}
	err := x.dev.Copy(to, x.pinned, m.n, device.Own)
	if err == nil && m.pe != x.w.me {
		err = x.transfer(device.Own, m, there)
	}
	if err != nil {
		return err
	}
	return x.wait(ctx, m.op, device.Own)
}

// pullBounce is the other way.
func (x *accelerator) pullBounce(ctx context.Context, m move, there uintptr) error {
	from := there
	if m.pe != x.w.me {
		if err := x.transfer(device.Own, m, there); err != nil {
			return err
		}
		from = x.bounce
	}
	if err := x.dev.Copy(x.pinned, from, m.n, device.Own); err != nil {
		return err
	}
	return x.wait(ctx, m.op, device.Own)
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
