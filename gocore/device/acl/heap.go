package acl

import (
	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// Heap is the symmetric heap of n PEs, on this device and its peers'.
type Heap struct {
	*device.Parts[portion]
	d    *Device
	card card
}

// portion is one PE's memory as it is mapped here.
type portion struct {
	mapped
	way way
	key shared // of a way by keys
}

var _ device.Heap = (*Heap)(nil)

// NewHeap implements [device.Device]. bytes is rounded up to the device's large pages (2 MiB).
func (d *Device) NewHeap(bytes uint64, me, n int) (device.Heap, error) {
	const op = "device heap"
	if err := d.usable(op); err != nil {
		return nil, err
	}
	h := &Heap{d: d}
	var err error
	if h.Parts, err = device.NewParts(bytes, d.page(), me, n, h.endPart); err != nil {
		return nil, err
	}
	h.card = d.newCard(me, h.Size())
	how, err := h.make()
	if err != nil {
		return nil, err
	}
	d.places.Add(h.Base(me), h.Size(), place{kind: part})
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = h.End() // the device was closed meanwhile, which is what to report
		return nil, status.New(status.StaleHandle, op, "device %d is closed", d.id)
	}
	d.facts.Sharing = how
	d.heaps[h] = struct{}{}
	return h, nil
}

// make tries the ways of sharing, the best first, and says which it is and why not a better one.
func (h *Heap) make() (string, error) {
	how := ""
	for _, w := range h.d.ways() {
		p, f := h.d.makePortion(w, h.Size())
		if f == nil {
			h.Own(p.at, p)
			h.card.Way, h.card.Shared = w, p.key
			return w.String() + how, nil
		}
		if !f.unsupported() {
			return "", f.as("device heap", h.Me())
		}
		how += "; not " + w.String() + ": " + f.words()
	}
	return "", status.At(status.Unsupported, "device heap", h.Me(), "%s (%s) shares device memory in no way that is known here%s", h.d.facts.Name, h.d.facts.Runtime, how)
}

// Card implements [device.Heap].
func (h *Heap) Card() []byte { return h.card.bytes() }

// Admit implements [device.Heap].
func (h *Heap) Admit(pe int, text []byte) error {
	c, err := readCard(pe, text)
	if err != nil || h.card.Way != byList {
		return err
	}
	if f := h.d.b.list(h.card.Shared.word(), c.PID); f != nil {
		return f.as("admit to device heap", pe)
	}
	return nil
}

// Map implements [device.Heap].
func (h *Heap) Map(pe int, text []byte) error {
	const op = "map device heap"
	c, err := readCard(pe, text)
	if err != nil {
		return err
	}
	if c.Size != h.Size() {
		return status.At(status.Asymmetric, op, pe, "its heap has %d bytes, here are %d; give all PEs the same SHMEM_DEVICE_SIZE", c.Size, h.Size())
	}
	return h.Take(pe, func() (uintptr, portion, error) {
		if err := h.d.reach(pe, c, &h.card); err != nil {
			return 0, portion{}, err
		}
		p, f := h.d.takePortion(c, h.Size())
		if f != nil {
			return 0, portion{}, f.as(op, pe)
		}
		kind := part
		if p.way == byKey {
			kind = keyed
		}
		h.d.places.Add(p.at, h.Size(), place{kind: kind})
		return p.at, p, nil
	})
}

// endPart gives one part back.
func (h *Heap) endPart(pe int, at uintptr, p portion) error {
	h.d.places.Remove(at)
	if f := h.d.endPortion(p, pe == h.Me()); f != nil {
		return f.as("unmap device heap", pe)
	}
	return nil
}

// Close unmaps the peers, then this PE's own part, and frees it. Work that uses them must be over, here and on the peers.
func (h *Heap) Close() error {
	h.d.mu.Lock()
	delete(h.d.heaps, h)
	h.d.mu.Unlock()
	return h.End()
}
