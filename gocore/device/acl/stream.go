package acl

import (
	"context"
	"errors"
	"runtime/cgo"
	"sync"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// slice is the longest time that a thread stays in the runtime.
const slice = 50 * time.Millisecond

func (d *Device) stream(s device.Stream) uintptr {
	if s == device.Own {
		return d.own
	}
	return uintptr(s)
}

// Copy implements [device.Device].
func (d *Device) Copy(dst, src uintptr, n uint64, s device.Stream) error {
	const op = "device copy"
	if err := d.usable(op); err != nil || n == 0 {
		return err
	}
	to, toKind, err := d.side(op, dst, n)
	if err != nil {
		return err
	}
	from, fromKind, err := d.side(op, src, n)
	if err != nil {
		return err
	}
	switch {
	case !to && !from:
		return d.hostCopy(dst, src, n, s)
	case toKind == keyed && !from, fromKind == keyed && !to:
		return d.roundabout(dst, src, n, to, s)
	}
	if f := d.b.copy(dst, src, n, to, from, d.stream(s)); f != nil {
		return f.as(op, -1)
	}
	return nil
}

// side says whether an end of a copy is device memory, and checks that it does not run over the memory that is known there.
func (d *Device) side(op string, at uintptr, n uint64) (bool, kind, error) {
	base, left, p, ok := d.places.Find(at)
	if !ok {
		if at == 0 {
			return false, plain, status.New(status.InvalidArgument, op, "address 0")
		}
		return d.b.onDevice(at), plain, nil
	}
	if n > left {
		return false, plain, status.New(status.InvalidArgument, op, "%d bytes from %#x run over the end of the memory there, %d bytes on", n, at, left)
	}
	if p.kind == window {
		return false, plain, status.New(status.InvalidArgument, op, "%#x is where kernels find host memory; copies take the host's address, %#x", at, p.window+(at-base))
	}
	return p.kind.onDevice(), p.kind, nil
}

// hostCopy copies between host addresses when the stream comes to it; where there are no host functions, it waits for that.
func (d *Device) hostCopy(dst, src uintptr, n uint64, s device.Stream) error {
	err := d.Call(s, func() { moveHost(dst, src, n) })
	if !errors.Is(err, status.Unsupported) {
		return err
	}
	if err := d.Wait(context.Background(), s); err != nil {
		return err
	}
	moveHost(dst, src, n)
	return nil
}

// detour is the most that [Device.roundabout] moves at once.
const detour = 4 << 20

// roundabout copies between the host and memory that came by a key, which the runtime does not do in one step: through memory
// of this device. It returns when the copy is done.
func (d *Device) roundabout(dst, src uintptr, n uint64, toDevice bool, s device.Stream) error {
	const op = "device copy"
	room := min(n, detour)
	middle, f := d.b.malloc(room, false)
	if f != nil {
		return f.as(op, -1)
	}
	var err error
	for off := uint64(0); off < n && err == nil; off += room {
		part, stream := min(room, n-off), d.stream(s)
		if f = d.b.copy(middle, src+uintptr(off), part, true, !toDevice, stream); f == nil {
			f = d.b.copy(dst+uintptr(off), middle, part, toDevice, true, stream)
		}
		if err = d.Wait(context.Background(), s); f != nil {
			err = f.as(op, -1)
		}
	}
	_ = d.b.freeMemory(middle) // nothing uses it: the stream was waited for
	return err
}

// Clear implements [device.Device].
func (d *Device) Clear(dst uintptr, n uint64, s device.Stream) error {
	const op = "device clear"
	if err := d.usable(op); err != nil || n == 0 {
		return err
	}
	to, _, err := d.side(op, dst, n)
	if err != nil {
		return err
	}
	if !to {
		return status.New(status.InvalidArgument, op, "%#x is not memory of the device", dst)
	}
	if f := d.b.clear(dst, n, d.stream(s)); f != nil {
		return f.as(op, -1)
	}
	return nil
}

// Wait implements [device.Device].
func (d *Device) Wait(ctx context.Context, s device.Stream) error {
	const op = "stream wait"
	if err := d.usable(op); err != nil {
		return err
	}
	for {
		f := d.b.synchronize(d.stream(s), milliseconds(ctx))
		if f == nil {
			return nil
		}
		if f.code != codeSyncTimeout {
			return f.as(op, -1)
		}
		select {
		case <-d.ending:
			return status.New(status.StaleHandle, op, "device %d was closed meanwhile", d.id)
		case <-ctx.Done():
			return device.GaveUp(ctx, op)
		default:
		}
	}
}

// milliseconds is how long the next question may take: a slice, or what is left of the deadline.
func milliseconds(ctx context.Context) int {
	left := slice
	if end, ok := ctx.Deadline(); ok {
		left = min(left, time.Until(end))
	}
	return int(max(left, time.Millisecond) / time.Millisecond)
}

// NewStream implements [device.Device].
func (d *Device) NewStream() (device.Stream, error) {
	const op = "new stream"
	if err := d.usable(op); err != nil {
		return 0, err
	}
	s, f := d.b.createStream()
	if f != nil {
		return 0, f.as(op, -1)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = d.b.destroyStream(s) // nothing was given to it
		return 0, status.New(status.StaleHandle, op, "device %d is closed", d.id)
	}
	d.streams[device.Stream(s)] = true
	return device.Stream(s), nil
}

// FreeStream implements [device.Device]. It takes streams of NewStream only, and waits for their work; what has not ended after a
// minute is dropped, which is an error.
func (d *Device) FreeStream(s device.Stream) error {
	const op = "free stream"
	d.mu.Lock()
	known := d.streams[s]
	delete(d.streams, s)
	d.mu.Unlock()
	if !known {
		return status.New(status.StaleHandle, op, "%#x is not a stream that NewStream gave", s)
	}
	ctx, cancel := context.WithTimeout(context.Background(), longPatience)
	defer cancel()
	err := d.Wait(ctx, s)
	if f := d.b.destroyStream(uintptr(s)); f != nil && err == nil {
		err = f.as(op, -1)
	}
	return err
}

// endStream destroys a stream, after its work, or at end when that goes on.
func (d *Device) endStream(s uintptr, end time.Time) *failure {
	for time.Now().Before(end) {
		if f := d.b.synchronize(s, int(slice/time.Millisecond)); f == nil || f.code != codeSyncTimeout {
			break // done, or failed: whoever cared for it has waited
		}
	}
	return d.b.destroyStream(s)
}

// Record implements [device.Device].
func (d *Device) Record(s device.Stream) (device.Mark, error) {
	const op = "record"
	if err := d.usable(op); err != nil {
		return 0, err
	}
	d.sweepEvents(false)
	v, f := d.b.createEvent()
	if f != nil {
		return 0, f.as(op, -1)
	}
	if f := d.b.record(v, d.stream(s)); f != nil {
		_ = d.b.destroyEvent(v) // the first failure is the one to report
		return 0, f.as(op, -1)
	}
	return device.Mark(v), nil
}

// WaitFor implements [device.Device].
func (d *Device) WaitFor(s device.Stream, m device.Mark) error {
	if err := d.usable("stream waits for mark"); err != nil {
		return err
	}
	if f := d.b.streamWait(d.stream(s), uintptr(m)); f != nil {
		return f.as("stream waits for mark", -1)
	}
	return nil
}

// FreeMark implements [device.Device]. The event goes when it was reached, so that streams which wait for it still do.
func (d *Device) FreeMark(m device.Mark) error {
	if err := d.usable("free mark"); err != nil {
		return err
	}
	if m == 0 {
		return status.New(status.InvalidArgument, "free mark", "mark 0")
	}
	d.mu.Lock()
	d.retired = append(d.retired, uintptr(m))
	d.mu.Unlock()
	d.sweepEvents(false)
	return nil
}

// sweepEvents destroys the freed events that were reached, or all.
func (d *Device) sweepEvents(all bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	kept := d.retired[:0]
	for _, v := range d.retired {
		if !all && !d.b.reached(v) {
			kept = append(kept, v)
			continue
		}
		_ = d.b.destroyEvent(v) // it was ours, and nobody asks for it any more
	}
	d.retired = kept
}

// hostCall is a host function on its way through a stream.
type hostCall struct {
	set    *callSet
	handle cgo.Handle
	f      func()
}

// callSet is the host functions that have not run. The zero value is empty.
type callSet struct {
	mu      sync.Mutex // guards waiting
	waiting map[*hostCall]struct{}
}

func (c *callSet) add(f func()) *hostCall {
	h := &hostCall{set: c, f: f}
	h.handle = cgo.NewHandle(h)
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.waiting == nil {
		c.waiting = map[*hostCall]struct{}{}
	}
	c.waiting[h] = struct{}{}
	return h
}

// take ends the wait of a host function; false when that has happened already.
func (c *callSet) take(h *hostCall) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.waiting[h]
	delete(c.waiting, h)
	return ok
}

// drop forgets what will not run any more. Its handles stay: a thread that is stuck in the runtime may yet come back.
func (c *callSet) drop() {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.waiting = nil
}

// Call implements [device.Device]. A panic of f ends the process, as it does on any thread.
func (d *Device) Call(s device.Stream, f func()) error {
	if err := d.usable("stream call"); err != nil {
		return err
	}
	h := d.calls.add(f)
	if failed := d.b.call(d.stream(s), h.handle); failed != nil {
		d.calls.take(h)
		h.handle.Delete()
		return failed.as("stream call", -1)
	}
	return nil
}

// runCall runs a host function, on a thread of the runtime.
func runCall(handle cgo.Handle) {
	h := handle.Value().(*hostCall)
	handle.Delete()
	if h.set.take(h) {
		h.f()
	}
}
