package host

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"os"

	"goshmem/gocore/device"
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
	*device.Parts[mapping]
	device *Device
	card   card
	fd     int
}

var _ device.Heap = (*Heap)(nil)

// NewHeap implements [device.Device]. bytes is rounded up to 2 MiB.
func (d *Device) NewHeap(bytes uint64, me, n int) (device.Heap, error) {
	if err := d.usable("device heap"); err != nil {
		return nil, err
	}
	h := &Heap{device: d}
	var err error
	if h.Parts, err = device.NewParts(bytes, page, me, n, h.endPart); err != nil {
		return nil, err
	}
	h.card = card{Magic: cardMagic, PE: uint32(me), PID: uint32(os.Getpid()), Size: h.Size()}
	if _, err := rand.Read(h.card.Nonce[:]); err != nil {
		return nil, status.Wrap(status.System, "device heap", err, "no random numbers")
	}
	if err := h.make(); err != nil {
		return nil, err
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.closed {
		_ = h.End() // what was just mapped can be unmapped
		return nil, status.New(status.StaleHandle, "device heap", "the device is closed")
	}
	d.heaps[h] = struct{}{}
	return h, nil
}

// make makes this PE's part and its file, with the nonce behind it.
func (h *Heap) make() (err error) {
	if h.fd, err = newFile(h.Size() + uint64(len(h.card.Nonce))); err != nil {
		return err
	}
	h.card.FD = uint32(h.fd)
	if _, err := unix.Pwrite(h.fd, h.card.Nonce[:], int64(h.Size())); err != nil {
		closeFile(h.fd)
		return status.Wrap(status.NoMemory, "device heap", err, "PE %d", h.Me())
	}
	m, err := h.mapPart(h.fd)
	if err != nil {
		closeFile(h.fd)
		return err
	}
	h.Own(m.at, m)
	return nil
}

func (h *Heap) mapPart(fd int) (mapping, error) {
	m, err := mapTwice(fd, h.Size())
	if err != nil {
		return mapping{}, err
	}
	m.heap = true
	h.device.places.Add(m.at, h.Size(), place{shadow: m.shadow, mapped: m})
	return m, nil
}

// endPart gives one part back; the file goes with the own one.
func (h *Heap) endPart(pe int, at uintptr, m mapping) error {
	h.device.places.Remove(at)
	if pe == h.Me() {
		closeFile(h.fd)
	}
	return m.unmap()
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
	if int(c.PE) != pe || c.Size != h.Size() {
		return refuse(status.Asymmetric, "its card is of PE %d with a heap of %d bytes, here are %d; give all PEs the same size", c.PE, c.Size, h.Size())
	}
	return h.Take(pe, func() (uintptr, mapping, error) {
		fd, err := unix.Open(procPath(c.PID, c.FD), unix.O_RDWR|unix.O_CLOEXEC, 0)
		if err != nil {
			return 0, mapping{}, refuse(status.PeerUnreachable, "%s: %v", procPath(c.PID, c.FD), err)
		}
		defer closeFile(fd)
		seen := make([]byte, len(c.Nonce))
		if _, err := unix.Pread(fd, seen, int64(h.Size())); err != nil || !bytes.Equal(seen, c.Nonce[:]) {
			return 0, mapping{}, refuse(status.PeerUnreachable, "%s is not its heap any more", procPath(c.PID, c.FD))
		}
		m, err := h.mapPart(fd)
		return m.at, m, err
	})
}

// Close unmaps all parts. Work that uses them must be over.
func (h *Heap) Close() error {
	h.device.mu.Lock()
	delete(h.device.heaps, h)
	h.device.mu.Unlock()
	return h.End()
}
