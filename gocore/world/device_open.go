package world

import (
	"context"
	"fmt"
	"time"

	"goshmem/gocore/device/acl"
	"goshmem/gocore/status"
)

// How a world gets its device. All PEs do it together, in the lane of the world team: each opens its own device, all tell each
// other how that went and how their heap is mapped, each maps the peers', and all tell each other again. Every PE sees the same
// words, so all get a device or none does, with the same reason.

// hello is what a PE tells first.
type hello struct {
	Kind    string `json:"kind"`
	Auto    bool   `json:"auto"`
	Bytes   uint64 `json:"bytes"`
	Host    string `json:"host"` // SHMEM_DEVICE_HOST
	Card    []byte `json:"card,omitempty"`
	Trouble string `json:"trouble,omitempty"`
	Code    int32  `json:"code,omitempty"`
	Absent  bool   `json:"absent,omitempty"` // there is no device here
}

// OpenDevice gives the world a device: "npu", "npu:2", "auto", "host", or "none", which does nothing. bytes is the size of the symmetric
// heap on each device (0: SHMEM_DEVICE_SIZE); at is what [Here] found on the caller's thread. Collective over the world. With "auto" it succeeds without a device when some PE has none.
func (w *World) OpenDevice(text string, at *acl.Place, bytes uint64, timeout int64, slice time.Duration) (*Request, error) {
	const op = "device_open"
	s, err := parseSpec(text)
	if err != nil {
		return nil, err
	}
	if x := w.device(); x != nil && (x.kind == s.kind || s.kind == "none") {
		return Background(nil, func() error { return nil }), nil // all PEs have it, so all are here
	} else if x != nil {
		return nil, status.New(status.InvalidArgument, op, "this world has %s already, and a world has one device", x)
	}
	if s.kind == "none" {
		return Background(nil, func() error { return nil }), nil
	}
	if bytes == 0 {
		bytes = w.cfg.DeviceSize
	}
	o := &opening{spec: s, at: at, bytes: bytes}
	o.rounds = rounds{w: w, op: op, failed: "could not open its device", undo: o.undo, steps: []func() ([]byte, error){o.introduced, o.admitted, o.connected, o.complete}}
	return w.world.talk(kindDevice, timeout, slice, &talk{first: o.first, next: o.next, undo: o.undo})
}

// opening is one PE's part in it.
type opening struct {
	rounds
	spec  spec
	at    *acl.Place
	bytes uint64
	x     *accelerator
	cards [][]byte
}

func (o *opening) first() []byte {
	h := hello{Kind: o.spec.kind, Auto: o.spec.auto, Bytes: o.bytes, Host: o.w.cfg.DeviceHost}
	if o.x, h.Absent, o.own = o.w.openAccelerator(o.spec, o.at, o.bytes); o.own != nil {
		h.Trouble, h.Code = o.own.Error(), int32(status.Of(o.own))
	} else {
		h.Card = o.x.heap.Card()
	}
	return o.tell(h)
}

// introduced looks at what all have, and lets the peers map the own heap.
func (o *opening) introduced() ([]byte, error) {
	all := make([]hello, o.w.n)
	for pe := range all {
		if err := o.post.read(pe, &all[pe]); err != nil {
			return nil, err
		}
	}
	if err := sameWish(all); err != nil {
		return nil, err
	}
	for pe, h := range all {
		if h.Trouble == "" {
			o.cards = append(o.cards, h.Card)
			continue
		}
		if h.Auto && h.Absent { // one that is in trouble is not passed over
			o.without(pe, h.Trouble)
			return nil, nil
		}
		return nil, o.word(pe, h.Code, h.Trouble)
	}
	return o.tell(o.result(o.x.admitPeers(o.cards))), nil
}

// admitted maps the peers, now that all have let all.
func (o *opening) admitted() ([]byte, error) {
	if _, err := o.results(); err != nil {
		return nil, err
	}
	o.x.mapPeers(o.cards)
	m := o.result(o.x.settle())
	m.Kernels = o.x.hasKernels()
	for pe := range o.w.n {
		m.Near = append(m.Near, o.x.far[pe] == "")
	}
	return o.tell(m), nil
}

// connected tells kernels of the teams there are. Without kernels on some PE, all do without.
func (o *opening) connected() ([]byte, error) {
	all, err := o.results()
	if err != nil {
		return nil, err
	}
	for pe, m := range all {
		o.x.near = append(o.x.near, m.Near)
		if !m.Kernels {
			o.x.withoutKernels(pe)
		}
	}
	return o.tell(o.result(o.w.placeTeams(o.x))), nil
}

// complete opens the device to everybody here.
func (o *opening) complete() ([]byte, error) {
	if _, err := o.results(); err != nil {
		return nil, err
	}
	low, span := o.x.window()
	if err := o.w.hot.OpenDevice(o.x.arena.low, o.x.arena.size, low, span); err != nil {
		return nil, err // the table of this world is as full on every PE
	}
	o.w.accel.Store(o.x)
	for pe := range o.w.n {
		if err := o.w.monitor.Dead(pe); err != nil && !o.w.left(pe) {
			o.x.fail(err) // it died while this went on
		}
	}
	o.x = nil
	return nil, nil
}

// without ends the opening without a device, as "auto" allows.
func (o *opening) without(pe int, why string) {
	if pe != o.w.me {
		why = fmt.Sprintf("PE %d has none: %s", pe, why)
	}
	o.w.noDev.Store(&why)
	o.undo()
}

func (o *opening) undo() {
	if o.x != nil {
		o.x.close()
		o.x = nil
	}
}

// sameWish refuses PEs that ask for different devices or sizes.
func sameWish(all []hello) error {
	for pe, h := range all {
		if h.Kind != all[0].Kind || h.Auto != all[0].Auto || h.Bytes != all[0].Bytes {
			return status.At(status.Mismatch, "device_open", pe, "it asks for device %s with a heap of %d bytes, PE 0 for %s with %d; give every PE the same SHMEM_DEVICE and SHMEM_DEVICE_SIZE",
				h.wish(), h.Bytes, all[0].wish(), all[0].Bytes)
		}
		if h.Host != all[0].Host {
			return status.At(status.Mismatch, "device_open", pe, "its SHMEM_DEVICE_HOST is %s, PE 0's %s; give every PE the same", h.Host, all[0].Host)
		}
	}
	return nil
}

func (h hello) wish() string {
	if h.Auto {
		return "auto"
	}
	return h.Kind
}

// openWithWorld is OpenDevice, and ReachHost where that is wanted, as the last steps of coming up. ctx can call them off.
func (w *World) openWithWorld(ctx context.Context, at *acl.Place) error {
	r, err := w.OpenDevice(w.cfg.Device, at, 0, -1, 0)
	if err == nil {
		err = awaited(ctx, r)
	}
	if err != nil || w.device() == nil || w.cfg.DeviceHost != "yes" {
		return err
	}
	if r, err = w.ReachHost(-1, 0); err != nil {
		return err
	}
	return awaited(ctx, r)
}

// awaited waits for a request, unless ctx ends before.
func awaited(ctx context.Context, r *Request) error {
	for {
		if done, err := r.Wait(50 * time.Millisecond); done {
			return err
		}
		if ctx.Err() != nil {
			r.Release()
			return context.Cause(ctx)
		}
	}
}
