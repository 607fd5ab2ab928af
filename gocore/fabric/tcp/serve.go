package tcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"io"

	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// small is up to which size a payload is stored in one go.
const small = 4096

// target is the serving end of one connection. One goroutine owns all of it.
type target struct {
	pe    int // the initiator
	mem   fabric.Memory
	conn  *tls.Conn
	out   *outbox
	in    *bufio.Reader
	dirty bool // memory changed since the last ring
	bye   bool
	asked bool // a request has come: before that, an end means that the peer chose another of our addresses, or dials anew
	head  [headerSize]byte
}

func newTarget(pe int, mem fabric.Memory, conn *tls.Conn, out *outbox) *target {
	return &target{pe: pe, mem: mem, conn: conn, out: out, in: bufio.NewReaderSize(conn, readAhead)}
}

// serve answers requests until the connection ends; nil after a goodbye.
func (t *target) serve(ctx context.Context) error {
	for {
		if err := t.need(headerSize); err != nil {
			return err
		}
		if _, err := io.ReadFull(t.in, t.head[:]); err != nil {
			return err
		}
		t.asked = true
		h := decodeHeader(t.head[:])
		if h.size > chunk {
			return t.protocol(ctx, fmt.Errorf("a frame of %d bytes, at most %d are allowed", h.size, chunk))
		}
		if err := t.one(ctx, h); err != nil {
			return err
		}
		if t.bye {
			return t.out.empty(ctx)
		}
	}
}

// need is called before a read that may wait: what is done so far becomes visible and replies leave.
func (t *target) need(n int) error {
	if t.in.Buffered() >= n {
		return nil
	}
	t.ring()
	t.out.flush()
	return nil
}

func (t *target) ring() {
	if t.dirty {
		t.dirty = false
		t.mem.Ring()
	}
}

// one serves one request. An error ends the connection; refusals are replies.
func (t *target) one(ctx context.Context, h header) error {
	switch h.kind {
	case reqPut:
		return t.put(ctx, h)
	case reqGet:
		mem, err := t.mem.Span(h.ref, uint64(h.size))
		if err != nil {
			return t.refuse(ctx, h.id, err)
		}
		return t.reply(ctx, header{kind: repData, id: h.id, size: h.size}, mem)
	case reqAtomic:
		return t.atomic(ctx, h)
	case reqSignal:
		return t.signal(ctx, h)
	case reqFlush:
		return t.reply(ctx, header{kind: repAck, id: h.id, operand: h.operand}, nil)
	case reqBye:
		t.bye = true
		return t.reply(ctx, header{kind: repBye}, nil)
	}
	return t.protocol(ctx, fmt.Errorf("a request of unknown kind %d", h.kind))
}

// put reads a payload straight into memory.
func (t *target) put(ctx context.Context, h header) error {
	if err := t.need(int(h.size)); err != nil {
		return err
	}
	mem, err := t.mem.Span(h.ref, uint64(h.size))
	if err != nil {
		if _, lost := t.in.Discard(int(h.size)); lost != nil {
			return lost
		}
		return t.refuse(ctx, 0, err)
	}
	t.dirty = true
	if len(mem) > small {
		fabric.Barrier() // after every earlier put, as the initiator may have fenced
		_, err = io.ReadFull(t.in, mem)
		return err
	}
	part, err := t.in.Peek(len(mem)) // whole: the payload may lie across two reads, and a word must not be torn
	if err != nil {
		return err
	}
	fabric.Store(mem, part)
	_, err = t.in.Discard(len(mem))
	return err
}

func (t *target) atomic(ctx context.Context, h header) error {
	op := fabric.Atomic{Op: fabric.AtomicOp(h.op), Width: int(h.width), Operand: h.operand, Compare: h.compare, NoReply: h.flags&noReply != 0}
	old, err := t.mem.Atomic(h.ref, op)
	if op.Op != fabric.Fetch {
		t.dirty = true
		t.ring()
	}
	switch {
	case err != nil:
		return t.refuse(ctx, h.id, err)
	case op.NoReply:
		return nil
	}
	return t.reply(ctx, header{kind: repValue, id: h.id, operand: old}, nil)
}

func (t *target) signal(ctx context.Context, h header) error {
	op, err := fabric.SignalUpdate(fabric.SignalOp(h.op), h.operand)
	if err == nil {
		_, err = t.mem.Atomic(h.ref, op)
	}
	t.dirty = true
	t.ring()
	if err != nil {
		return t.refuse(ctx, 0, err)
	}
	return nil
}

// reply seals a frame; it leaves when the requests at hand are served.
func (t *target) reply(ctx context.Context, h header, payload []byte) error {
	if err := t.out.wait(ctx); err != nil {
		return err
	}
	var b [headerSize]byte
	h.encode(b[:])
	if _, err := t.conn.Write(b[:]); err != nil || len(payload) == 0 {
		return err
	}
	_, err := t.conn.Write(payload)
	return err
}

// refuse tells the initiator that a request was not done; the connection stays.
func (t *target) refuse(ctx context.Context, id uint64, cause error) error {
	text := []byte(cause.Error())
	text = text[:min(len(text), maxText)]
	code := status.Of(cause)
	return t.reply(ctx, header{kind: repFail, id: id, size: uint32(len(text)), operand: uint64(uint32(code))}, text)
}

// protocol ends a connection whose initiator does not follow the protocol.
func (t *target) protocol(ctx context.Context, cause error) error {
	err := status.At(status.Internal, "tcp", t.pe, "it does not follow the protocol: %v", cause)
	if lost := t.refuse(ctx, 0, err); lost != nil {
		return lost
	}
	_ = t.out.empty(ctx)
	return err
}
