package acl

import (
	"sync"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// kind is what an address range of this device is.
type kind uint8

const (
	plain      kind = iota // Alloc
	pinned                 // AllocHost: not device memory
	fixed                  // AllocAt
	part                   // of a heap, mapped
	keyed                  // a peer's part that came by a key: copies between it and the host go round
	registered             // host memory of Register
	window                 // where kernels find such memory: nobody else may use the address
)

// onDevice says whether copies take it as memory of the device.
func (k kind) onDevice() bool { return k != pinned && k != registered && k != window }

// place is an address range of this device.
type place struct {
	kind   kind
	handle uintptr // fixed: its physical memory
	window uintptr // registered: where kernels find it; window: where the host does
	locked bool    // registered: for copies too
}

// Device is one NPU.
//
// States: open -> closed. Closed stays closed; every other call then fails. Nothing may run while Close does.
type Device struct {
	b       *binding
	id      int
	count   int     // of the devices that this process sees
	own     uintptr // the stream that Own stands for
	reset   bool    // the device was set here, so it is reset here
	kernels kernels
	places  device.Ranges[place]
	ending  chan struct{} // closed by Close

	mu      sync.Mutex // guards what follows
	closed  bool
	facts   device.Facts
	streams map[device.Stream]bool // that NewStream made
	retired []uintptr              // events that were freed while a stream may still wait for them
	heaps   map[*Heap]struct{}
	peers   map[int]bool // devices to which access was enabled
	calls   callSet
}

var _ device.Device = (*Device)(nil)

// Facts implements [device.Device].
func (d *Device) Facts() device.Facts {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.facts
}

func (d *Device) usable(op string) error {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		return status.New(status.StaleHandle, op, "device %d is closed", d.id)
	}
	return nil
}

// Alloc implements [device.Device].
func (d *Device) Alloc(bytes uint64) (uintptr, error) {
	const op = "device alloc"
	if err := d.sized(op, bytes); err != nil {
		return 0, err
	}
	at, f := d.b.malloc(bytes, false)
	if f != nil {
		return 0, f.as(op, -1)
	}
	if f := d.b.clearNow(at, bytes); f != nil {
		_ = d.b.freeMemory(at) // the first failure is the one to report
		return 0, f.as(op, -1)
	}
	d.places.Add(at, bytes, place{kind: plain})
	return at, nil
}

func (d *Device) sized(op string, bytes uint64) error {
	if err := d.usable(op); err != nil {
		return err
	}
	if bytes == 0 {
		return status.New(status.InvalidArgument, op, "0 bytes")
	}
	return nil
}

// AllocHost implements [device.Device].
func (d *Device) AllocHost(bytes uint64) (uintptr, error) {
	const op = "pinned alloc"
	if err := d.sized(op, bytes); err != nil {
		return 0, err
	}
	at, f := d.b.mallocHost(bytes)
	if f != nil {
		return 0, f.as(op, -1)
	}
	zeroHost(at, bytes)
	d.places.Add(at, bytes, place{kind: pinned})
	return at, nil
}

// AllocAt implements [device.Device].
func (d *Device) AllocAt(bytes uint64, want uintptr) (uintptr, error) {
	const op = "device alloc at an address"
	if err := d.sized(op, bytes); err != nil {
		return 0, err
	}
	m, f := d.mapNew(d.pages(bytes), want)
	d.mu.Lock()
	defer d.mu.Unlock()
	if f != nil {
		d.facts.Fixed = "no: " + f.words()
		return 0, f.as(op, -1)
	}
	d.facts.Fixed = "yes"
	d.places.Add(m.at, bytes, place{kind: fixed, handle: m.handle})
	return m.at, nil
}

// Free implements [device.Device].
func (d *Device) Free(at uintptr) error { return d.free("device free", at, plain, fixed) }

// FreeHost implements [device.Device].
func (d *Device) FreeHost(at uintptr) error { return d.free("pinned free", at, pinned, pinned) }

func (d *Device) free(op string, at uintptr, one, other kind) error {
	if at == 0 {
		return nil
	}
	base, _, p, ok := d.places.Find(at)
	if ok = ok && base == at && (p.kind == one || p.kind == other); ok {
		p, ok = d.places.Remove(at) // false when another thread freed it meanwhile
	}
	if !ok {
		return status.New(status.InvalidArgument, op, "%#x is not the start of such an allocation", at)
	}
	if f := d.giveBack(at, p); f != nil {
		return f.as(op, -1)
	}
	return nil
}

func (d *Device) giveBack(at uintptr, p place) *failure {
	switch p.kind {
	case pinned:
		return d.b.freeHost(at)
	case registered:
		return d.b.unregisterHost(at)
	case window:
		return nil // went with what it shows
	case fixed:
		return d.unmapAll(mapped{at: at, handle: p.handle})
	}
	return d.b.freeMemory(at)
}

// Holds implements [device.Device].
func (d *Device) Holds(at uintptr) bool {
	if _, _, p, ok := d.places.Find(at); ok {
		return p.kind.onDevice()
	}
	return at != 0 && d.usable("") == nil && d.b.onDevice(at)
}

// Locked implements [device.Device].
func (d *Device) Locked(at uintptr) bool {
	_, _, p, ok := d.places.Find(at)
	return ok && (p.kind == pinned || p.kind == registered && p.locked)
}

// patience is how long Close lets the work of streams run on, and longPatience how long FreeStream does.
const (
	patience     = 2 * time.Second
	longPatience = time.Minute
)

// Close implements [device.Device]. Work that has not ended after two seconds (a kernel that waits and was not aborted) is
// dropped. The runtime stays initialised: others may use it.
func (d *Device) Close() error {
	d.mu.Lock()
	if d.closed {
		d.mu.Unlock()
		return nil
	}
	d.closed = true
	heaps, streams := d.heaps, d.streams
	d.heaps, d.streams = nil, nil
	d.mu.Unlock()
	close(d.ending)
	var first error
	note := func(f *failure) {
		if f != nil && first == nil {
			first = f.as("close device", -1)
		}
	}
	end := time.Now().Add(patience)
	for s := range streams {
		note(d.endStream(uintptr(s), end))
	}
	note(d.endStream(d.own, end))
	d.calls.drop()
	for h := range heaps {
		if err := h.End(); err != nil && first == nil {
			first = err
		}
	}
	d.sweepEvents(true)
	for at, p := range d.all() {
		d.places.Remove(at)
		note(d.giveBack(at, p))
	}
	note(d.kernels.unload(d.b))
	d.letGo()
	return first
}

// all is what was allocated and not freed.
func (d *Device) all() map[uintptr]place {
	all := map[uintptr]place{}
	d.places.Each(func(at uintptr, _ uint64, p place) { all[at] = p })
	return all
}

// abandon undoes a failed Open.
func (d *Device) abandon() {
	if d.own != 0 {
		_ = d.b.destroyStream(d.own) // the failure that brought us here is the one to report
	}
	d.letGo()
}

// letGo resets the device when it was set here.
func (d *Device) letGo() {
	if d.reset {
		d.b.use(0)
		_ = d.b.resetDevice(d.id) // it was set, and whoever reset it more often than they set it has had it gone already
	}
}
