package host

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"
	"sync"

	"goshmem/gocore/device"
	"goshmem/gocore/memory"
	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// page is the granularity of a heap and the alignment of its base: that of a real device's memory.
const page = 2 << 20

// card is what a peer needs. The nonce is also in the file, behind the heap: it proves that the descriptor is still that one.
type card struct {
	Magic   uint32
	PE      uint32
	PID, FD uint32
	Size    uint64
	Nonce   [16]byte
}

const cardMagic = 0x48534731 // "1GSH"

// Heap is the symmetric heap of n PEs on this device.
type Heap struct {
	device *Device
	me     int
	size   uint64
	card   card

	mu     sync.Mutex // guards what follows
	fd     int
	parts  []mapping // of each PE, zero where it is not mapped
	closed bool
}

var _ device.Heap = (*Heap)(nil)

// NewHeap implements [device.Device]. bytes is rounded up to 2 MiB.
func (d *Device) NewHeap(bytes uint64, me, n int) (device.Heap, error) {
	if err := d.usable("device heap"); err != nil {
		return nil, err
	}
	if bytes == 0 || n <= 0 || me < 0 || me >= n {
		return nil, status.New(status.InvalidArgument, "device heap", "%d bytes, PE %d of %d", bytes, me, n)
	}
	size := (bytes + page - 1) / page * page
	h := &Heap{device: d, me: me, size: size, parts: make([]mapping, n)}
	h.card = card{Magic: cardMagic, PE: uint32(me), PID: uint32(os.Getpid()), Size: size}
	if _, err := rand.Read(h.card.Nonce[:]); err != nil {
		return nil, status.Wrap(status.System, "device heap", err, "no random numbers")
	}
	var err error
	if h.fd, err = newFile(size + uint64(len(h.card.Nonce))); err != nil {
		return nil, err
	}
	h.card.FD = uint32(h.fd)
	if _, err := unix.Pwrite(h.fd, h.card.Nonce[:], int64(size)); err != nil {
		closeFile(h.fd)
		return nil, status.Wrap(status.NoMemory, "device heap", err, "PE %d", me)
	}
	if err := h.mapPart(me, h.fd); err != nil {
		closeFile(h.fd)
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = h.closeNow() // what was just mapped can be unmapped
		return nil, status.New(status.StaleHandle, "device heap", "the device is closed")
	}
	d.heaps[h] = struct{}{}
	return h, nil
}

func (h *Heap) mapPart(pe, fd int) error {
	m, err := mapTwice(fd, h.size)
	if err != nil {
		return err
	}
	m.heap = true
	h.parts[pe] = m
	h.device.places.Add(m.at, h.size, place{shadow: m.shadow, mapped: m})
	return nil
}

// Kind implements [memory.Region].
func (h *Heap) Kind() memory.Kind { return memory.Device }

// Size implements [memory.Region].
func (h *Heap) Size() uint64 { return h.size }

// Page implements [memory.Region].
func (h *Heap) Page() uint64 { return page }

// Bytes is nil: the CPU does not reach device memory.
func (h *Heap) Bytes() []byte { return nil }

// Commit checks bounds only.
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
func (h *Heap) Card() []byte {
	b, err := binary.Append(nil, binary.LittleEndian, h.card)
	if err != nil {
		panic(err) // a struct of fixed-size fields
	}
	return b
}

// Admit does nothing: whoever runs as the same user may map.
func (h *Heap) Admit(int, []byte) error { return nil }

// Map implements [device.Heap].
func (h *Heap) Map(pe int, text []byte) error {
	refuse := func(code status.Code, format string, args ...any) error {
		return status.At(code, "map device heap", pe, format, args...)
	}
	var c card
	if n, err := binary.Decode(text, binary.LittleEndian, &c); err != nil || n != len(text) || c.Magic != cardMagic {
		return refuse(status.InvalidArgument, "the card of %d bytes is not of a device of host memory", len(text))
	}
	if int(c.PE) != pe || c.Size != h.size {
		return refuse(status.Asymmetric, "its card is of PE %d with a heap of %d bytes, here are %d; give all PEs the same size", c.PE, c.Size, h.size)
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || pe < 0 || pe >= len(h.parts) || pe == h.me || h.parts[pe].at != 0 {
		return refuse(status.InvalidArgument, "a heap of %d PEs, closed %v; a peer's part is mapped once", len(h.parts), h.closed)
	}
	fd, err := unix.Open(procPath(c.PID, c.FD), unix.O_RDWR|unix.O_CLOEXEC, 0)
	if err != nil {
		return refuse(status.PeerUnreachable, "%s: %v", procPath(c.PID, c.FD), err)
	}
	defer closeFile(fd)
	seen := make([]byte, len(c.Nonce))
	if _, err := unix.Pread(fd, seen, int64(h.size)); err != nil || !bytes.Equal(seen, c.Nonce[:]) {
		return refuse(status.PeerUnreachable, "%s is not its heap any more", procPath(c.PID, c.FD))
	}
	return h.mapPart(pe, fd)
}

// Unmap implements [device.Heap]. Unmapping what is not mapped does nothing.
func (h *Heap) Unmap(pe int) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if pe < 0 || pe >= len(h.parts) || pe == h.me {
		return status.At(status.InvalidPE, "unmap device heap", pe, "a peer of %d PEs is wanted", len(h.parts))
	}
	return h.unmapLocked(pe)
}

func (h *Heap) unmapLocked(pe int) error {
	m := h.parts[pe]
	if m.at == 0 {
		return nil
	}
	h.parts[pe] = mapping{}
	h.device.places.Remove(m.at)
	return m.unmap()
}

// Close unmaps all parts. Work that uses them must be over.
func (h *Heap) Close() error {
	h.device.mu.Lock()
	delete(h.device.heaps, h)
	h.device.mu.Unlock()
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
	for pe := range h.parts {
		if err := h.unmapLocked(pe); err != nil && first == nil {
			first = err
		}
	}
	closeFile(h.fd)
	return first
}
