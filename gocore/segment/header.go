package segment

import (
	"encoding/binary"
	"fmt"

	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// NonceSize is the length of the number that proves a mapped segment is the one its owner spoke of.
const NonceSize = 16

// writeHeader fills a fresh header. The magic goes last, with release; checkHeader loads it with acquire, so a mapper
// sees a complete header or none.
func writeHeader(b []byte, g Geometry, me, n int, nonce [NonceSize]byte) {
	le := binary.LittleEndian
	le.PutUint32(b[layout.HdrVersion:], layout.Version)
	le.PutUint32(b[layout.HdrMe:], uint32(int32(me)))
	le.PutUint32(b[layout.HdrN:], uint32(int32(n)))
	le.PutUint32(b[layout.HdrLine:], layout.Line)
	copy(b[layout.HdrNonce:layout.HdrNonce+NonceSize], nonce[:])
	for off, v := range map[int]uint64{
		layout.HdrSize: g.Size, layout.HdrPage: g.Page,
		layout.HdrScratchOff: g.ScratchOff, layout.HdrScratchLen: g.ScratchLen,
		layout.HdrHeapOff: g.HeapOff, layout.HdrHeapLen: g.HeapLen,
	} {
		le.PutUint64(b[off:], v)
	}
	storeWord(b, layout.HdrMagic, layout.Magic)
}

// checkHeader says whether the mapped bytes are the segment the card speaks of. It proves locality: only memory this
// process shares with the owner holds the owner's nonce.
func checkHeader(b []byte, c *Card) error {
	le := binary.LittleEndian
	if m := loadWord(b, layout.HdrMagic); m != layout.Magic {
		return fmt.Errorf("the mapped memory is no segment (magic %#x, want %#x)", m, layout.Magic)
	}
	if v := le.Uint32(b[layout.HdrVersion:]); v != layout.Version {
		return status.At(status.VersionSkew, "map segment", int(c.PE), "its layout has version %d, this library's has %d: install the same release everywhere", v, layout.Version)
	}
	if [NonceSize]byte(b[layout.HdrNonce:layout.HdrNonce+NonceSize]) != c.Nonce {
		return fmt.Errorf("the mapped memory is another segment (nonce differs)")
	}
	if pe := int32(le.Uint32(b[layout.HdrMe:])); pe != c.PE {
		return fmt.Errorf("the mapped memory belongs to PE %d", pe)
	}
	for off, want := range map[int]uint64{
		layout.HdrSize: c.Size, layout.HdrScratchOff: c.ScratchOff, layout.HdrScratchLen: c.ScratchLen,
		layout.HdrHeapOff: c.HeapOff, layout.HdrHeapLen: c.HeapLen,
	} {
		if got := le.Uint64(b[off:]); got != want {
			return fmt.Errorf("header word at %d is %d, the card says %d", off, got, want)
		}
	}
	return nil
}

// headerN is the number of PEs in a checked header.
func headerN(b []byte) int { return int(int32(binary.LittleEndian.Uint32(b[layout.HdrN:]))) }
