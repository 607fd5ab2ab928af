package segment

import (
	"encoding/binary"

	"goshmem/gocore/status"
)

// Card is what a PE publishes so that others can map its segment. It travels through the authenticated rendezvous
// exchange; it holds no secret that would be enough to map the memory.
type Card struct {
	PE         int32
	Pid        int32 // in the owner's PID namespace; only a hint for the proc route
	Fd         int32 // the owner's descriptor number, a hint likewise
	Nonce      [NonceSize]byte
	Size       uint64
	ScratchOff uint64
	ScratchLen uint64
	HeapOff    uint64
	HeapLen    uint64
	Socket     string // abstract UNIX socket name without the leading zero byte; "" when not served
	Path       string // named file; "" for a memfd
}

const (
	cardVersion  = 1
	cardFixed    = 4 + 12 + NonceSize + 5*8
	cardMaxNames = 4096 + 108
)

// Encode packs the card for the exchange.
func (c *Card) Encode() []byte {
	le := binary.LittleEndian
	b := le.AppendUint32(nil, cardVersion)
	for _, v := range []int32{c.PE, c.Pid, c.Fd} {
		b = le.AppendUint32(b, uint32(v))
	}
	b = append(b, c.Nonce[:]...)
	for _, v := range []uint64{c.Size, c.ScratchOff, c.ScratchLen, c.HeapOff, c.HeapLen} {
		b = le.AppendUint64(b, v)
	}
	for _, s := range []string{c.Socket, c.Path} {
		b = le.AppendUint16(b, uint16(len(s)))
		b = append(b, s...)
	}
	return b
}

// DecodeCard unpacks what Encode packed.
func DecodeCard(b []byte) (*Card, error) {
	bad := func() (*Card, error) {
		return nil, status.New(status.VersionSkew, "map segment", "a segment card of %d bytes cannot be read: install the same release on every PE", len(b))
	}
	le := binary.LittleEndian
	if len(b) < cardFixed || len(b) > cardFixed+4+cardMaxNames || le.Uint32(b) != cardVersion {
		return bad()
	}
	c := &Card{PE: int32(le.Uint32(b[4:])), Pid: int32(le.Uint32(b[8:])), Fd: int32(le.Uint32(b[12:]))}
	b = b[16:]
	copy(c.Nonce[:], b)
	b = b[NonceSize:]
	for _, v := range []*uint64{&c.Size, &c.ScratchOff, &c.ScratchLen, &c.HeapOff, &c.HeapLen} {
		*v = le.Uint64(b)
		b = b[8:]
	}
	for _, s := range []*string{&c.Socket, &c.Path} {
		if len(b) < 2 || len(b)-2 < int(le.Uint16(b)) {
			return bad()
		}
		n := int(le.Uint16(b))
		*s, b = string(b[2:2+n]), b[2+n:]
	}
	if len(b) != 0 {
		return bad()
	}
	return c, nil
}

// geometry is the layout the card announces; the header of the mapped memory must agree.
func (c *Card) geometry(page uint64) Geometry {
	return Geometry{Page: page, ScratchOff: c.ScratchOff, ScratchLen: c.ScratchLen, HeapOff: c.HeapOff, HeapLen: c.HeapLen, Size: c.Size}
}
