package world

import (
	"context"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// Operations in the order of a stream. They return when they are queued; how they went is told by the next wait for the stream. A
// side in host memory makes a call wait for the stream instead.

// waits refuses operations that would wait on a broken device.
func (x *accelerator) waits(op string) error {
	if err := x.w.usable(op); err != nil {
		return err
	}
	x.hearVerdict()
	if err := x.health(); err != nil {
		return status.Wrap(status.Of(err), op, err, "operations of this world that wait on the device are over; copies go on")
	}
	return nil
}

// onStream begins a call of this file.
func (w *World) onStream(op string) (*accelerator, func(), error) {
	x, err := w.needDevice(op)
	if err == nil {
		err = w.enter(op)
	}
	if err != nil {
		return nil, nil, err
	}
	return x, w.exit, nil
}

// PutOnStream is put in the order of a stream.
func (w *World) PutOnStream(dst, src uintptr, n uint64, pe int, s device.Stream) error {
	return w.moveOnStream(s, move{"put_on_stream", true, dst, src, n, pe})
}

// GetOnStream is get in the order of a stream.
func (w *World) GetOnStream(dst, src uintptr, n uint64, pe int, s device.Stream) error {
	return w.moveOnStream(s, move{"get_on_stream", false, src, dst, n, pe})
}

func (w *World) moveOnStream(s device.Stream, m move) error {
	x, done, err := w.onStream(m.op)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := w.bounded(w.ctx, Default)
	defer stop()
	if x.symmetric(m.at, 0) {
		return x.move(ctx, s, m)
	}
	if _, err := w.addr(m.op, m.at, m.n, m.pe); err != nil { // in a host heap
		return err
	}
	if there, ok := x.hostTwin(m.at, m.pe); ok && m.n > 0 && x.holds(m.local) {
		return x.copyAlong(s, m, there)
	}
	if err := x.settled(ctx, m.op, s); err != nil {
		return err
	}
	return w.moveAny(ctx, m, false)
}

// oneBlock is up to how many bytes one block puts and signals in one launch.
const oneBlock = 64 << 10

// PutSignalOnStream puts and then updates a signal word of 4 bytes at the same PE, in the order of a stream.
func (w *World) PutSignalOnStream(dst, src uintptr, n uint64, sig uintptr, value int32, op, pe int, s device.Stream) error {
	const name = "put_signal_on_stream"
	x, done, err := w.onStream(name)
	if err != nil {
		return err
	}
	defer done()
	if err := x.checkSignal(name, sig, op, pe); err != nil {
		return err
	}
	if x.state != nil && x.symmetric(sig, 4) && x.symmetric(dst, n) && n > 0 && n <= oneBlock && x.holds(src) {
		if _, err := x.twin(name, dst, n, pe); err != nil {
			return err
		}
		x.note(s, name, false)
		return x.launchOn("gshmem_k_put_signal", 1, s, uint64(dst), uint64(src), n, uint64(sig), uint64(int64(value)), uint64(op), uint64(pe), 0)
	}
	if n > 0 {
		if err := w.PutOnStream(dst, src, n, pe, s); err != nil {
			return err
		}
	}
	return w.SignalOnStream(sig, value, op, pe, s)
}

// checkSignal refuses a signal that cannot be updated, before anything moves.
func (x *accelerator) checkSignal(name string, sig uintptr, op, pe int) error {
	if op != int(fabric.SignalSet) && op != int(fabric.SignalAdd) {
		return status.New(status.InvalidArgument, name, "signal operation %d is neither GSHMEM_SIGNAL_SET nor GSHMEM_SIGNAL_ADD", op)
	}
	if sig%4 != 0 {
		return status.New(status.Misaligned, name, "signal address %#x is not a multiple of 4", sig)
	}
	if !x.symmetric(sig, 0) {
		_, err := x.w.addr(name, sig, 4, pe)
		return err
	}
	if _, err := x.twin(name, sig, 4, pe); err != nil {
		return err
	}
	if op == int(fabric.SignalAdd) {
		return x.canAdd(name, 4)
	}
	return nil
}

// SignalOnStream updates a signal word of 4 bytes at a PE, in the order of a stream.
func (w *World) SignalOnStream(sig uintptr, value int32, op, pe int, s device.Stream) error {
	const name = "signal_on_stream"
	x, done, err := w.onStream(name)
	if err != nil {
		return err
	}
	defer done()
	if err := x.checkSignal(name, sig, op, pe); err != nil {
		return err
	}
	if !x.symmetric(sig, 0) {
		kind := fabric.Set
		if op == int(fabric.SignalAdd) {
			kind = fabric.Add
		}
		return x.call(name, s, false, func() error {
			_, err := w.Atomic(w.ctx, sig, fabric.Atomic{Op: kind, Width: 4, Operand: uint64(uint32(value)), NoReply: true}, pe)
			return err
		})
	}
	if x.state != nil {
		x.note(s, name, false)
		return x.launchOn("gshmem_k_signal", 1, s, uint64(sig), uint64(int64(value)), uint64(op), uint64(pe))
	}
	ctx, stop := w.bounded(w.ctx, Default)
	defer stop()
	return x.putWord(ctx, name, s, sig, uint64(uint32(value)), 4, pe)
}

// SignalWaitOnStream makes a stream wait until a signal word of this PE compares; what is queued after it comes after the signal.
func (w *World) SignalWaitOnStream(sig uintptr, cmp int, value int32, s device.Stream) error {
	const name = "signal_wait_on_stream"
	x, done, err := w.onStream(name)
	if err != nil {
		return err
	}
	defer done()
	if err := w.CheckWord(name, sig, 4, cmp); err != nil {
		return err
	}
	if err := x.waits(name); err != nil {
		return err
	}
	if x.state != nil && x.symmetric(sig, 4) {
		return x.waitsForSignal(name, sig, cmp, value, s)
	}
	if x.symmetric(sig, 4) {
		return status.New(status.Unsupported, name, "a stream waits for device words by a kernel, and there are none (%s); wait with gshmem_wait_until, or for a word in symmetric host memory", x.facts.Kernels)
	}
	return x.call(name, s, true, func() error { return ended(w.WaitUntil(sig, 4, true, cmp, uint64(int64(value)), Default, -1)) })
}

// ended waits for a request to its end.
func ended(r *Request, err error) error {
	if err == nil {
		_, err = r.Wait(-1)
	}
	return err
}

// call queues a host function whose failure is told by the next wait for the stream.
func (x *accelerator) call(op string, s device.Stream, waits bool, f func() error) error {
	x.note(s, op, waits)
	return x.dev.Call(s, func() {
		if err := f(); err != nil {
			x.noteError(s, err)
		}
	})
}

// QuietOnStream completes, at every target, what was queued on a stream before.
func (w *World) QuietOnStream(s device.Stream) error {
	x, done, err := w.onStream("quiet_on_stream")
	if err != nil {
		return err
	}
	defer done()
	x.note(s, "quiet_on_stream", false)
	if x.state != nil {
		return x.launchOn("gshmem_k_quiet", 1, s)
	}
	return nil // copies are complete in the order of their stream
}

// CopyOnStream copies memory of this process, of either kind, in the order of a stream. Host memory must stay until the stream was waited
// for; where the runtime does not know it as pinned, the call waits.
func (w *World) CopyOnStream(dst, src uintptr, n uint64, s device.Stream) error {
	x, done, err := w.onStream("copy_on_stream")
	if err != nil {
		return err
	}
	defer done()
	if n == 0 {
		return nil
	}
	if !x.holds(dst) && !x.holds(src) {
		return x.call("copy_on_stream", s, false, func() error {
			hot.Copy(memoryAt(dst, n), memoryAt(src, n))
			return nil
		})
	}
	x.note(s, "copy_on_stream", false)
	return x.dev.Copy(dst, src, n, s)
}

// NewStream makes a stream of the device. FreeStream ends it; work that is queued still runs.
func (w *World) NewStream() (device.Stream, error) {
	x, done, err := w.onStream("stream_create")
	if err != nil {
		return 0, err
	}
	defer done()
	s, err := x.dev.NewStream()
	if err != nil {
		return 0, err
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.made[s] = true
	return s, nil
}

// FreeStream ends a stream of NewStream.
func (w *World) FreeStream(s device.Stream) error {
	x, done, err := w.onStream("stream_destroy")
	if err != nil {
		return err
	}
	defer done()
	x.watch.orphan(x, s)
	x.mu.Lock()
	delete(x.tails, s)
	delete(x.made, s)
	x.mu.Unlock()
	return x.dev.FreeStream(s)
}

// JoinStreams makes a stream wait for what is queued on another now.
func (w *World) JoinStreams(s, other device.Stream) error {
	x, done, err := w.onStream("stream_join")
	if err != nil {
		return err
	}
	defer done()
	return x.join(s, other)
}

func (x *accelerator) join(s, other device.Stream) error {
	if s == other {
		return nil
	}
	m, err := x.dev.Record(other)
	if err != nil {
		return err
	}
	err = x.dev.WaitFor(s, m)
	if free := x.dev.FreeMark(m); err == nil {
		err = free
	}
	return err
}

// WaitStream waits for a stream and says how what was queued there went.
func (w *World) WaitStream(s device.Stream, timeout int64, slice time.Duration) (*Request, error) {
	const op = "stream_wait"
	x, err := w.needDevice(op)
	if err != nil {
		return nil, err
	}
	if err := w.enter(op); err != nil {
		return nil, err
	}
	ctx, stop := w.bounded(w.ctx, timeout)
	ctx, cancel := context.WithCancelCause(ctx)
	r := Background(func(why error) { cancel(why) }, func() error {
		defer w.exit()
		defer stop()
		defer cancel(nil)
		return x.wait(ctx, op, s)
	})
	r.Wait(slice)
	return r, nil
}
