package bootstrap

import (
	"encoding/binary"
	"fmt"
	"io"
	"strings"

	"goshmem/gocore/status"
)

// MaxBlob is the most one PE may contribute to an Allgather.
const MaxBlob = 1 << 20

// MaxRound is the most that all PEs together may contribute to one Allgather.
const MaxRound = 1 << 30

// Kinds of frames. A frame is length (4 bytes, of what follows), kind (1 byte), body. All numbers are big endian. The hello and its
// refusal must keep their form for ever: versions that differ have to understand at least these two.
const (
	frameHello      = 1 // member: who I am
	frameWelcome    = 2 // host: all have come; body is the session's nonce
	frameRefuse     = 3 // host: it failed; body is a status
	frameContribute = 4 // member: round, kind, blob
	frameResult     = 5 // host: round, all blobs
	frameWho        = 6 // member: for whom are we waiting?
	frameMissing    = 7 // host: for these
	frameGiveUp     = 8 // member: I stopped waiting; body is a status
	frameBye        = 9 // member: I leave, all is well
)

const (
	helloMagic  = 0x47534831 // "GSH1"
	memberFrame = MaxBlob + 64
	maxText     = 4096
)

type frame struct {
	kind byte
	body []byte
}

func (f frame) encode() []byte {
	b := make([]byte, 5, 5+len(f.body))
	binary.BigEndian.PutUint32(b, uint32(1+len(f.body)))
	b[4] = f.kind
	return append(b, f.body...)
}

// readFrame reads one frame of at most max bytes. It runs on authenticated connections only, and still believes no length.
func readFrame(r io.Reader, max int) (frame, error) {
	var head [5]byte
	if _, err := io.ReadFull(r, head[:]); err != nil {
		return frame{}, err
	}
	size := int64(binary.BigEndian.Uint32(head[:])) - 1
	if size < 0 || size > int64(max) {
		return frame{}, fmt.Errorf("a frame claims %d bytes, at most %d are allowed", size, max)
	}
	body := make([]byte, size)
	if _, err := io.ReadFull(r, body); err != nil {
		return frame{}, err
	}
	return frame{head[4], body}, nil
}

// reader takes values off a body and remembers the first that was not there.
type reader struct {
	b   []byte
	bad bool
}

func (r *reader) take(n int) []byte {
	if r.bad || n < 0 || n > len(r.b) {
		r.bad = true
		return make([]byte, min(max(n, 0), 64))
	}
	out := r.b[:n:n]
	r.b = r.b[n:]
	return out
}

func (r *reader) u32() uint32 { return binary.BigEndian.Uint32(r.take(4)) }

func (r *reader) text() string {
	n := r.u32()
	if n > maxText {
		r.bad = true
		return ""
	}
	return string(r.take(int(n)))
}

func appendText(b []byte, s string) []byte {
	if len(s) > maxText {
		s = s[:maxText]
	}
	return append(binary.BigEndian.AppendUint32(b, uint32(len(s))), s...)
}

// hello is how a member introduces itself.
type hello struct {
	layout  uint32
	me, n   int
	version string
	process string // "pid 123 on host", for words only
}

func (h hello) encode() frame {
	b := binary.BigEndian.AppendUint32(nil, helloMagic)
	b = binary.BigEndian.AppendUint32(b, h.layout)
	b = binary.BigEndian.AppendUint32(b, uint32(h.me))
	b = binary.BigEndian.AppendUint32(b, uint32(h.n))
	return frame{frameHello, appendText(appendText(b, h.version), h.process)}
}

func decodeHello(f frame) (hello, error) {
	r := reader{b: f.body}
	magic := r.u32()
	h := hello{layout: r.u32(), me: int(int32(r.u32())), n: int(int32(r.u32()))}
	h.version, h.process = r.text(), r.text()
	if f.kind != frameHello || magic != helloMagic || r.bad {
		return hello{}, fmt.Errorf("the first frame is not a hello")
	}
	return h, nil
}

func encodeStatus(kind byte, e *status.Error) frame {
	b := binary.BigEndian.AppendUint32(nil, uint32(e.Code))
	b = binary.BigEndian.AppendUint32(b, uint32(int32(e.PE)))
	text := e.Detail
	if e.Err != nil {
		text = strings.TrimPrefix(text+": "+e.Err.Error(), ": ")
	}
	return frame{kind, appendText(b, text)}
}

func decodeStatus(f frame, op string) *status.Error {
	r := reader{b: f.body}
	e := &status.Error{Code: status.Code(int32(r.u32())), Op: op, PE: int(int32(r.u32()))}
	e.Detail = r.text()
	if r.bad || e.Code == status.OK {
		return status.New(status.Rendezvous, op, "the host reported a failure that cannot be read")
	}
	return e
}

func encodePEs(kind byte, pes []int) frame {
	var b []byte
	for _, p := range pes {
		b = binary.BigEndian.AppendUint32(b, uint32(p))
	}
	return frame{kind, b}
}

func decodePEs(f frame) []int {
	var pes []int
	for r := (reader{b: f.body}); len(r.b) >= 4; {
		pes = append(pes, int(r.u32()))
	}
	return pes
}

// encodeResult joins the blobs of a round.
func encodeResult(round uint32, blobs [][]byte) frame {
	size := 4
	for _, b := range blobs {
		size += 4 + len(b)
	}
	out := binary.BigEndian.AppendUint32(make([]byte, 0, size), round)
	for _, b := range blobs {
		out = append(binary.BigEndian.AppendUint32(out, uint32(len(b))), b...)
	}
	return frame{frameResult, out}
}

func decodeResult(f frame, n int) (round uint32, blobs [][]byte, err error) {
	r := reader{b: f.body}
	round = r.u32()
	blobs = make([][]byte, n)
	for i := range blobs {
		blobs[i] = r.take(int(r.u32()))
	}
	if r.bad || len(r.b) != 0 {
		return 0, nil, fmt.Errorf("a result of round %d does not hold %d contributions", round, n)
	}
	return round, blobs, nil
}

// listPEs words a set of PEs, shortened when it is long.
func listPEs(pes []int) string {
	const show = 16
	var s strings.Builder
	for i, p := range pes {
		if i == show {
			fmt.Fprintf(&s, " and %d more", len(pes)-show)
			break
		}
		if i > 0 {
			s.WriteString(", ")
		}
		fmt.Fprintf(&s, "%d", p)
	}
	return s.String()
}
