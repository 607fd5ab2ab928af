package world

import (
	"strings"
	"time"

	"goshmem/gocore/device/state"
	"goshmem/gocore/status"
)

// The host-side heap within the device's reach. Each PE registers the part of every PE whose host memory is mapped here, its own first, with
// its device: kernels then reach it, and copies to and from it are queued on streams like those between device memory. Registered memory is
// locked, so the whole heap is made real before, and nothing of it is given back to the system after.

// hostside is where this PE's device finds the host heaps.
type hostside struct {
	bases []uintptr // by PE, 0 where it does not
	why   []string  // by PE: why not, "" where it does
}

// ReachHost lets kernels reach the symmetric host memory of this PE and of all PEs that have it mapped; doing nothing when they do. All
// of SHMEM_SYMMETRIC_SIZE is locked. Collective over the world; no kernel may be running.
func (w *World) ReachHost(timeout int64, slice time.Duration) (*Request, error) {
	const op = "device_reach_host"
	x, err := w.needDevice(op)
	if err != nil {
		return nil, err
	}
	if x.hosted.Load() != nil {
		return Background(nil, func() error { return nil }), nil // all PEs have done it, so all are here
	}
	o := &hosting{x: x, h: &hostside{bases: make([]uintptr, w.n), why: make([]string, w.n)}}
	o.rounds = rounds{w: w, op: op, failed: "could not let its device reach host memory", undo: o.undo, steps: []func() ([]byte, error){o.pinned, o.registered, o.told}}
	return w.world.talk(kindHost, timeout, slice, &talk{first: o.first, next: o.next, undo: o.undo})
}

// hosting is one PE's part in it.
type hosting struct {
	rounds
	x     *accelerator
	h     *hostside
	mine  bool // the own heap was pinned here
	shown bool // kernels were told
}

// first makes all of the own heap real, before a peer's device takes hold of it.
func (o *hosting) first() []byte {
	err := o.w.host.pin()
	o.mine = err == nil
	return o.tell(o.result(err))
}

// pinned registers what is mapped here. The own part must work; peers' may not.
func (o *hosting) pinned() ([]byte, error) {
	if _, err := o.results(); err != nil {
		return nil, err
	}
	err := o.register(o.w.me)
	for pe := 0; pe < o.w.n && err == nil; pe++ {
		switch {
		case pe == o.w.me:
		case o.w.segs[pe] == nil:
			o.h.why[pe] = "its host memory is not mapped here: " + o.w.net.Reason(pe)
		default:
			if trouble := o.register(pe); trouble != nil {
				o.h.why[pe] = trouble.Error()
			}
		}
	}
	return o.tell(o.result(err)), nil
}

func (o *hosting) register(pe int) (err error) {
	at, size := o.w.hostPart(pe)
	o.h.bases[pe], err = o.x.dev.Register(at, size)
	return err
}

// registered tells the kernels.
func (o *hosting) registered() ([]byte, error) {
	if _, err := o.results(); err != nil {
		return nil, err
	}
	o.shown = true
	return o.tell(o.result(o.x.showHost(o.h))), nil
}

func (o *hosting) told() ([]byte, error) {
	if _, err := o.results(); err != nil {
		return nil, err
	}
	o.x.hosted.Store(o.h)
	return nil, nil
}

// undo takes back what was done here. A conversation that is given up may have got to any point.
func (o *hosting) undo() {
	if o.x.hosted.Load() == o.h {
		return
	}
	if o.shown {
		if err := o.x.showHost(nil); err != nil && !contextLost(err) && status.Of(err) != status.Finalized {
			o.w.logf("device: hiding host memory from kernels: %v", err)
		}
	}
	o.x.letGo(o.h)
	if o.mine {
		o.w.host.unpin()
	}
}

// hostPart is a PE's host heap as it is mapped here.
func (w *World) hostPart(pe int) (at uintptr, size uint64) {
	geo := w.seg.Geo
	return baseOf(w.segs[pe].Bytes()) + uintptr(geo.HeapOff), geo.HeapLen
}

// showHost tells kernels where the host-side heaps are; nil: nowhere.
func (x *accelerator) showHost(h *hostside) error {
	s, ok := x.state.(*state.State)
	if !ok || s == nil {
		return nil
	}
	if h == nil {
		return s.SetHostHeap(state.HostHeap{})
	}
	return s.SetHostHeap(state.HostHeap{Low: x.w.heapLow(), Size: x.w.heapBytes(), Bases: h.bases})
}

// letGo ends the registrations. Work that uses them is over.
func (x *accelerator) letGo(h *hostside) {
	for pe, base := range h.bases {
		if base == 0 {
			continue
		}
		h.bases[pe] = 0
		at, _ := x.w.hostPart(pe)
		if err := x.dev.Unregister(at); err != nil && !x.gone && !contextLost(err) {
			x.w.logf("device: host memory of PE %d: %v", pe, err)
		}
	}
}

// hideHost is for the end of the device, when no kernel runs any more and the memory is still mapped.
func (x *accelerator) hideHost() {
	if h := x.hosted.Swap(nil); h != nil {
		x.letGo(h)
	}
}

// kernelsReach says whether kernels find a PE's twin of an own address in the host heap.
func (x *accelerator) kernelsReach(at uintptr, pe int) bool {
	h := x.hosted.Load()
	return h != nil && pe >= 0 && pe < len(h.bases) && h.bases[pe] != 0 && x.w.host.covers(at, 0)
}

// hostTwin is where the device's copies find it, in locked memory, so that they need not wait. false: they would, or it is not within reach.
func (x *accelerator) hostTwin(at uintptr, pe int) (uintptr, bool) {
	if !x.kernelsReach(at, pe) {
		return 0, false
	}
	base, _ := x.w.hostPart(pe)
	there := base + (at - x.w.heapLow())
	return there, x.dev.Locked(there)
}

// DeviceAddress is where kernels of this PE's device find a PE's twin of an own symmetric address, of either heap.
func (w *World) DeviceAddress(at uintptr, pe int) (uintptr, error) {
	const op = "device_address"
	x, done, err := w.onStream(op)
	if err != nil {
		return 0, err
	}
	defer done()
	if x.symmetric(at, 0) {
		return x.twin(op, at, 0, pe)
	}
	if _, err := w.addr(op, at, 1, pe); err != nil {
		return 0, err
	}
	h := x.hosted.Load()
	switch {
	case h == nil:
		return 0, status.At(status.Unsupported, op, pe, "%#x is host memory, which kernels reach after gshmem_device_reach_host; or use memory on the device", at)
	case h.bases[pe] == 0:
		return 0, status.At(status.Unsupported, op, pe, "kernels here do not reach its host memory: %s; put and get do", strings.TrimSuffix(h.why[pe], "."))
	}
	return h.bases[pe] + (at - w.heapLow()), nil
}
