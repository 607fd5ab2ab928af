package tcp

import (
	"encoding/binary"

	"goshmem/gocore/fabric"
)

// Kinds of frames. Requests go from the initiator to the target, replies back; a frame is a header and `size` bytes of payload.
const (
	reqPut    byte = 1 + iota // payload to ref
	reqGet                    // size bytes from ref; answered by repData
	reqAtomic                 // update at ref; answered by repValue unless noReply
	reqSignal                 // signal update at ref, op is a fabric.SignalOp
	reqFlush                  // answered by repAck when everything before it has taken effect
	reqBye                    // the initiator leaves; answered by repBye
	repData
	repValue
	repAck
	repFail // the request with this id was refused; code in operand, payload is the text. id 0: a request without reply
	repBye
)

const (
	headerSize = 40
	chunk      = 256 << 10 // most payload of a frame; larger transfers are cut
	maxText    = 4096
	noReply    = 1
)

// header is the fixed part of every frame. All numbers are little endian.
type header struct {
	kind, op, width, flags byte
	size                   uint32
	id                     uint64
	ref                    fabric.Ref
	operand, compare       uint64
}

func (h header) encode(b []byte) {
	b[0], b[1], b[2], b[3] = h.kind, h.op, h.width, h.flags
	binary.LittleEndian.PutUint32(b[4:], h.size)
	binary.LittleEndian.PutUint64(b[8:], h.id)
	binary.LittleEndian.PutUint64(b[16:], uint64(h.ref))
	binary.LittleEndian.PutUint64(b[24:], h.operand)
	binary.LittleEndian.PutUint64(b[32:], h.compare)
}

func decodeHeader(b []byte) header {
	return header{
		kind: b[0], op: b[1], width: b[2], flags: b[3],
		size:    binary.LittleEndian.Uint32(b[4:]),
		id:      binary.LittleEndian.Uint64(b[8:]),
		ref:     fabric.Ref(binary.LittleEndian.Uint64(b[16:])),
		operand: binary.LittleEndian.Uint64(b[24:]),
		compare: binary.LittleEndian.Uint64(b[32:]),
	}
}
