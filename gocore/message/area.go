package message

import (
	"encoding/binary"

	"goshmem/gocore/layout"
)

// slots is the length of each ring in a team of n: it bounds what all rings and arenas of a member take.
func slots(n int) uint64 {
	switch {
	case n <= 4:
		return 32
	case n <= 16:
		return 16
	}
	return 8
}

// AreaSize is the bytes of scratch each member of a team of n gives to messages. They must be zero at first.
func AreaSize(n int) uint64 { return uint64(n) * (1 + slots(n)) * layout.Line }

// Offsets in a member's area. A line holds what its peer writes: how many slots it has put here, and how many of mine it has taken.
func tailAt(peer int) uint64   { return uint64(peer) * layout.Line }
func creditAt(peer int) uint64 { return uint64(peer)*layout.Line + 8 }

func slotAt(n, src int, seq uint64) uint64 {
	s := slots(n)
	return (uint64(n) + uint64(src)*s + seq%s) * layout.Line
}

// kind is what a slot says.
type kind uint8

const (
	kindInline   kind = iota + 1 // a message in the slot
	kindEager                    // a message in the sender's arena
	kindOffer                    // a large message waits with its sender
	kindGo                       // receiver to sender: stage it
	kindChunk                    // sender to receiver: a part is staged
	kindTaken                    // receiver to sender: the part was copied out
	kindFin                      // receiver to sender: all was taken, or it was thrown away
	kindWithdraw                 // sender to receiver: the offer is void
)

const (
	slotHeader = 48
	// InlineBytes is the largest message that travels in a slot.
	InlineBytes = layout.Line - slotHeader
)

// slot is one descriptor. Which fields mean something depends on the kind.
type slot struct {
	kind   kind
	epoch  uint32 // of a staged transfer: it rises when a receive gives the message back
	tag    int64
	bytes  uint64 // of the message; of the part for chunk and taken
	id     uint64 // the sender's number of a large message
	ref    uint64 // where the bytes lie with the sender
	off    uint64 // of the part within the message
	inline []byte
}

// encode writes the slot into b and gives the part that has to travel.
func (s *slot) encode(b *[layout.Line]byte) []byte {
	b[0] = byte(s.kind)
	le := binary.LittleEndian
	le.PutUint32(b[4:], s.epoch)
	le.PutUint64(b[8:], uint64(s.tag))
	le.PutUint64(b[16:], s.bytes)
	le.PutUint64(b[24:], s.id)
	le.PutUint64(b[32:], s.ref)
	le.PutUint64(b[40:], s.off)
	return b[:slotHeader+copy(b[slotHeader:], s.inline)]
}

// decodeSlot reads a slot in place; inline aliases b.
func decodeSlot(b []byte) (s slot, ok bool) {
	le := binary.LittleEndian
	s = slot{
		kind: kind(b[0]), epoch: le.Uint32(b[4:]), tag: int64(le.Uint64(b[8:])),
		bytes: le.Uint64(b[16:]), id: le.Uint64(b[24:]), ref: le.Uint64(b[32:]), off: le.Uint64(b[40:]),
	}
	if s.kind == kindInline {
		if s.bytes > InlineBytes {
			return s, false
		}
		s.inline = b[slotHeader : slotHeader+s.bytes]
	}
	return s, s.kind >= kindInline && s.kind <= kindWithdraw
}
