package acl

import (
	"sync"

	"goshmem/gocore/device"
	"goshmem/gocore/memory"
	"goshmem/gocore/status"
)

// Heap is the symmetric heap of n PEs, on this device and its peers'.
type Heap struct {
	d    *Device
	me   int
	size uint64
	card card

	mu     sync.Mutex // guards what follows
	parts  []portion  // of each PE, zero where it is not mapped
	closed bool
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
	if bytes == 0 || n <= 0 || me < 0 || me >= n {
		return nil, status.New(status.InvalidArgument, op, "%d bytes, PE %d of %d", bytes, me, n)
	}
	h := &Heap{d: d, me: me, size: d.pages(bytes), parts: make([]portion, n)}
	h.card = d.newCard(me, h.size)
	how, err := h.make()
	if err != nil {
		return nil, err
	}
	d.places.Add(h.parts[me].at, h.size, place{kind: part})
	d.mu.Lock()
	defer d.mu.Unlock()
	d.facts.Sharing = how
	d.heaps[h] = struct{}{}
	return h, nil
}

// make tries the ways of sharing, the best first, and says which it is and why not a better one.
func (h *Heap) make() (string, error) {
	how := ""
	for _, w := range h.d.ways() {
		p, f := h.d.makePortion(w, h.size)
		if f == nil {
			h.parts[h.me] = p
			h.card.Way, h.card.Shared = w, p.key
			return w.String() + how, nil
		}
		if !f.unsupported() {
			return "", f.as("device heap", h.me)
		}
		how += "; not " + w.String() + ": " + f.words()
	}
	return "", status.At(status.Unsupported, "device heap", h.me, "%s (%s) shares device memory in no way that is known here%s", h.d.facts.Name, h.d.facts.Runtime, how)
}

// Kind implements [memory.Region].
func (h *Heap) Kind() memory.Kind { return memory.Device }

// Size implements [memory.Region].
func (h *Heap) Size() uint64 { return h.size }

// Page implements [memory.Region].
func (h *Heap) Page() uint64 { return hugePage }

// Bytes is nil: the CPU does not reach device memory.
func (h *Heap) Bytes() []byte { return nil }

// Commit checks bounds only: the memory is there from the start.
func (h *Heap) Commit(off, n uint64) error { return h.within("commit", off, n) }

// Decommit checks bounds only: the memory stays, with what is in it.
func (h *Heap) Decommit(off, n uint64) error { return h.within("decommit", off, n) }

func (h *Heap) within(op string, off, n uint64) error {
	if off > h.size || n > h.size-off {
		return status.New(status.NotSymmetric, op, "%d bytes at offset %d of a device heap of %d", n, off, h.size)
	}
	return nil
}

// Base implements [device.Heap].
func (h *Heap) Base(pe int) uintptr {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pe < 0 || pe >= len(h.parts) {
		return 0
	}
	return h.parts[pe].at
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
	if c.Size != h.size {
		return status.At(status.Asymmetric, op, pe, "its heap has %d bytes, here are %d; give all PEs the same SHMEM_DEVICE_SIZE", c.Size, h.size)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || pe < 0 || pe >= len(h.parts) || pe == h.me || h.parts[pe].at != 0 {
		return status.At(status.InvalidArgument, op, pe, "a heap of %d PEs, closed %v; a peer's part is mapped once", len(h.parts), h.closed)
	}
	if err := h.d.reach(pe, c, &h.card); err != nil {
		return err
	}
	p, f := h.d.takePortion(c, h.size)
	if f != nil {
		return f.as(op, pe)
	}
	h.parts[pe] = p
	kind := part
	if p.way == byKey {
		kind = keyed
	}
	h.d.places.Add(p.at, h.size, place{kind: kind})
	return nil
}

// Unmap implements [device.Heap]. Unmapping what is not mapped does nothing.
func (h *Heap) Unmap(pe int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pe < 0 || pe >= len(h.parts) || pe == h.me {
		return status.At(status.InvalidPE, "unmap device heap", pe, "a peer of %d PEs is wanted", len(h.parts))
	}
	return h.endLocked(pe)
}

// endLocked ends one portion. Needs mu.
func (h *Heap) endLocked(pe int) error {
	p := h.parts[pe]
	if p.at == 0 {
		return nil
	}
	h.parts[pe] = portion{}
	h.d.places.Remove(p.at)
	if f := h.d.endPortion(p, pe == h.me); f != nil {
		return f.as("unmap device heap", pe)
	}
	return nil
}

// Close unmaps the peers, then this PE's own part, and frees it. Work that uses them must be over, here and on the peers.
func (h *Heap) Close() error {
	h.d.mu.Lock()
	delete(h.d.heaps, h)
	h.d.mu.Unlock()
	return h.closeNow()
}

func (h *Heap) closeNow() error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil
	}
	h.closed = true
	var first error
	end := func(pe int) {
		if err := h.endLocked(pe); err != nil && first == nil {
			first = err
		}
	}
	for pe := range h.parts {
		if pe != h.me {
			end(pe)
		}
	}
	end(h.me)
	return first
}
