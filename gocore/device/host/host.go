// Package host is a device made of host memory and goroutines, for tests of everything above devices without a runtime
// of any accelerator.
//
// It is strict where a real device is: its memory is reserved without access, so that a program that follows a device address
// faults, and the device works through a second mapping. Its streams run on goroutines of their own, so work that nobody
// waited for is usually not done yet. It has no kernels: Launch says so, and callers take their way without kernels.
package host

import (
	"fmt"
	"math/rand/v2"
	"os"
	"runtime"
	"sync"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// Options say how the device behaves.
type Options struct {
	// ID is what Facts shows.
	ID int
	// Late is the most that a piece of work is put off by, at random. 0 runs it as soon as the goroutine is there.
	Late time.Duration
}

// place is what an address range of this device is.
type place struct {
	shadow uintptr // where the device reads and writes it
	pinned bool    // AllocHost or Register: not device memory
	lent   bool    // Register: somebody else's
	mapped mapping
}

// Device is one such device.
//
// States: open -> closed. Closed stays closed; everything but Close then fails.
type Device struct {
	options Options
	places  device.Ranges[place]
	ending  chan struct{} // closed by Close: what waits inside a stream gives up

	mu      sync.Mutex // guards what follows
	closed  bool
	next    uintptr // the last handle given out; handles are not used twice
	streams map[device.Stream]*stream
	marks   map[device.Mark]*mark
	heaps   map[*Heap]struct{}
}

var _ device.Device = (*Device)(nil)

// Open makes a device.
func Open(o Options) (*Device, error) {
	d := &Device{
		options: o, ending: make(chan struct{}), streams: map[device.Stream]*stream{}, marks: map[device.Mark]*mark{},
		heaps: map[*Heap]struct{}{},
	}
	d.streams[device.Own] = d.startStream()
	return d, nil
}

// Facts implements [device.Device].
func (d *Device) Facts() device.Facts {
	return device.Facts{
		Name: "host", ID: d.options.ID, Runtime: runtime.Version(), Cores: 1, Emulated: true,
		Kernels: noKernels, Sharing: "memfd through /proc", Fixed: "no: a device of host memory chooses its addresses",
	}
}

const noKernels = "none: a device of host memory runs copies and host functions only"

// Alloc implements [device.Device].
func (d *Device) Alloc(bytes uint64) (uintptr, error) {
	if err := d.usable("device alloc"); err != nil {
		return 0, err
	}
	if bytes == 0 {
		return 0, status.New(status.InvalidArgument, "device alloc", "0 bytes")
	}
	fd, err := newFile(bytes)
	if err != nil {
		return 0, err
	}
	defer closeFile(fd)
	m, err := mapTwice(fd, bytes)
	if err != nil {
		return 0, err
	}
	d.places.Add(m.at, bytes, place{shadow: m.shadow, mapped: m})
	return m.at, nil
}

// Free implements [device.Device].
func (d *Device) Free(at uintptr) error { return d.free("device free", at, false) }

// AllocHost implements [device.Device].
func (d *Device) AllocHost(bytes uint64) (uintptr, error) {
	if err := d.usable("pinned alloc"); err != nil {
		return 0, err
	}
	if bytes == 0 {
		return 0, status.New(status.InvalidArgument, "pinned alloc", "0 bytes")
	}
	m, err := mapPlain(bytes)
	if err != nil {
		return 0, err
	}
	d.places.Add(m.at, bytes, place{shadow: m.at, pinned: true, mapped: m})
	return m.at, nil
}

// FreeHost implements [device.Device].
func (d *Device) FreeHost(at uintptr) error { return d.free("pinned free", at, true) }

func (d *Device) free(op string, at uintptr, pinned bool) error {
	if at == 0 {
		return nil
	}
	base, _, p, ok := d.places.Find(at)
	if ok = ok && base == at && p.pinned == pinned && !p.mapped.heap && !p.lent; ok {
		p, ok = d.places.Remove(at) // false when another thread freed it meanwhile
	}
	if !ok {
		return status.New(status.InvalidArgument, op, "%#x is not the start of such an allocation", at)
	}
	return p.mapped.unmap()
}

// Register implements [device.Device]: the goroutines of this device reach all host memory where it is.
func (d *Device) Register(at uintptr, bytes uint64) (uintptr, error) {
	const op = "register host memory"
	if err := d.usable(op); err != nil {
		return 0, err
	}
	size := uint64(os.Getpagesize())
	if bytes == 0 || uint64(at)%size != 0 || bytes%size != 0 {
		return 0, status.New(status.Misaligned, op, "[%#x, +%d) is not whole pages of %d bytes", at, bytes, size)
	}
	if _, _, _, taken := d.places.Find(at); taken {
		return 0, status.New(status.InvalidArgument, op, "%#x is registered or the device's already", at)
	}
	d.places.Add(at, bytes, place{shadow: at, pinned: true, lent: true, mapped: mapping{at: at}})
	return at, nil
}

// Unregister implements [device.Device].
func (d *Device) Unregister(at uintptr) error {
	if base, _, p, ok := d.places.Find(at); !ok || base != at || !p.lent {
		return status.New(status.InvalidArgument, "unregister host memory", "%#x is not the start of registered memory", at)
	}
	d.places.Remove(at)
	return nil
}

// AllocAt always fails: there are no kernels that know an address.
func (d *Device) AllocAt(bytes uint64, at uintptr) (uintptr, error) {
	return 0, status.New(status.Unsupported, "device alloc", "%d bytes at %#x: a device of host memory chooses its addresses", bytes, at)
}

// Locked implements [device.Device].
func (d *Device) Locked(at uintptr) bool {
	_, _, p, ok := d.places.Find(at)
	return ok && p.pinned
}

// Holds implements [device.Device].
func (d *Device) Holds(at uintptr) bool {
	_, _, p, ok := d.places.Find(at)
	return ok && !p.pinned
}

// reach gives the accessible address of [at, at+n), and whether the runtime may read it later (device or pinned memory).
func (d *Device) reach(op string, at uintptr, n uint64) (uintptr, bool, error) {
	base, left, p, ok := d.places.Find(at)
	if !ok {
		if at == 0 && n > 0 {
			return 0, false, status.New(status.InvalidArgument, op, "address 0")
		}
		return at, false, nil
	}
	if n > left {
		return 0, false, status.New(status.InvalidArgument, op, "%d bytes from %#x run over the end of the memory there, %d bytes on", n, at, left)
	}
	return p.shadow + (at - base), true, nil
}

// Copy implements [device.Device].
func (d *Device) Copy(dst, src uintptr, n uint64, s device.Stream) error {
	to, later, err := d.reach("device copy", dst, n)
	if err != nil {
		return err
	}
	from, too, err := d.reach("device copy", src, n)
	if err != nil {
		return err
	}
	done, err := d.give("device copy", s, func() error { moveBytes(to, from, n); return nil })
	if err != nil || later && too {
		return err
	}
	select { // pageable memory belongs to the caller again when this returns
	case <-done:
	case <-d.ending:
	}
	return nil
}

// Clear implements [device.Device].
func (d *Device) Clear(dst uintptr, n uint64, s device.Stream) error {
	to, known, err := d.reach("device clear", dst, n)
	if err != nil {
		return err
	}
	if !known && n > 0 {
		return status.New(status.InvalidArgument, "device clear", "%#x is not memory of the device", dst)
	}
	_, err = d.give("device clear", s, func() error { clearBytes(to, n); return nil })
	return err
}

// Launch always fails: there are no kernels.
func (d *Device) Launch(kernel string, _ int, _ device.Stream, _ ...uint64) error {
	return status.New(status.Unsupported, "launch "+kernel, "kernels: %s", noKernels)
}

// usable says whether the device is open.
func (d *Device) usable(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return status.New(status.StaleHandle, op, "the device is closed")
	}
	return nil
}

// Close implements [device.Device]. It ends the streams after what runs, drops what is queued, and unmaps all memory.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	streams, heaps := d.streams, d.heaps
	d.streams, d.heaps, d.marks = nil, nil, nil
	d.mu.Unlock()
	for _, s := range streams {
		s.end(true)
	}
	close(d.ending) // after the streams know, so that what stands behind a wait does not run
	for _, s := range streams {
		<-s.exited
	}
	for h := range heaps {
		_ = h.End() // unmapping what was mapped here cannot fail
	}
	var rest []mapping
	d.places.Each(func(_ uintptr, _ uint64, p place) {
		if !p.lent {
			rest = append(rest, p.mapped)
		}
	})
	for _, m := range rest {
		d.places.Remove(m.at)
		_ = m.unmap() // as above
	}
	return nil
}

// delay puts a piece of work off.
func (d *Device) delay() {
	if d.options.Late > 0 {
		time.Sleep(rand.N(d.options.Late))
	}
}

// procPath is where a descriptor of a process can be opened.
func procPath(pid, fd uint32) string {
	if int(pid) == os.Getpid() {
		return fmt.Sprintf("/proc/self/fd/%d", fd)
	}
	return fmt.Sprintf("/proc/%d/fd/%d", pid, fd)
}
