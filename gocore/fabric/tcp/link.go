package tcp

import (
	"bufio"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"sync"
	"sync/atomic"

	"goshmem/gocore/status"
)

const (
	joint     = 16 << 10 // payload that is sealed together with its header
	readAhead = 32 << 10
)

// link is the initiator's end of one connection: requests out, replies in. Its life: open -> lost. lost is final and has a reason.
type link struct {
	pe     int
	conn   *tls.Conn
	out    *outbox
	done   chan struct{} // closed when lost
	onLost func(*link, error)

	slot    chan struct{} // held while sealing: a lock that a context can give up
	queued  atomic.Int32  // senders before or at the slot; the last one flushes
	scratch []byte        // guarded by slot
	issued  atomic.Uint64 // requests without a reply of their own
	adopted atomic.Bool   // its target has let us in: from now on its end is the peer's
	bye     atomic.Bool   // the peer said goodbye, here or on its own connection to us

	mu        sync.Mutex
	next      uint64
	pending   map[uint64]*reply
	confirmed uint64 // value of issued that a flush has confirmed
	refused   error  // of a request without reply; told once
	err       error  // why it is lost
}

// reply is where the answer to one request goes.
type reply struct {
	id    uint64
	done  chan error // one value
	value uint64     // of an atomic; set before done

	mu        sync.Mutex
	dst       []byte // of a get, in order of arrival
	abandoned bool   // the caller has gone: dst must not be touched
}

func newLink(pe int, conn *tls.Conn, out *outbox, onLost func(*link, error)) *link {
	return &link{pe: pe, conn: conn, out: out, onLost: onLost, done: make(chan struct{}), slot: make(chan struct{}, 1),
		scratch: make([]byte, headerSize+joint), pending: map[uint64]*reply{}}
}

// send seals one frame and sees to it that it is written. The payload may be reused when it returns.
func (l *link) send(ctx context.Context, h header, payload []byte) error {
	h.size = max(h.size, uint32(len(payload)))
	l.queued.Add(1)
	last := func() bool { return l.queued.Add(-1) == 0 }
	select {
	case l.slot <- struct{}{}:
	case <-ctx.Done():
		if last() {
			l.out.flush()
		}
		return giveUp(ctx, l.pe)
	case <-l.done:
		last()
		return l.failure()
	}
	err := l.out.wait(ctx)
	if err == nil {
		err = l.seal(h, payload)
	}
	flush := last()
	<-l.slot
	if flush {
		l.out.flush()
	}
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return giveUp(ctx, l.pe)
	}
	l.fail(err)
	return l.failure()
}

// seal hands a frame to TLS; the slot is held.
func (l *link) seal(h header, payload []byte) error {
	h.encode(l.scratch)
	n := copy(l.scratch[headerSize:], payload)
	if _, err := l.conn.Write(l.scratch[:headerSize+n]); err != nil {
		return err
	}
	if n == len(payload) {
		return nil
	}
	_, err := l.conn.Write(payload[n:])
	return err
}

// ask sends a request that will be answered.
func (l *link) ask(ctx context.Context, h header, dst []byte) (*reply, error) {
	r := &reply{done: make(chan error, 1), dst: dst}
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return nil, l.failure()
	}
	l.next++
	h.id, r.id = l.next, l.next
	l.pending[h.id] = r
	l.mu.Unlock()
	if err := l.send(ctx, h, nil); err != nil {
		l.drop(h.id)
		return nil, err
	}
	return r, nil
}

// answer waits for the reply to a request. When ctx ends first, the reply will be thrown away.
func (l *link) answer(ctx context.Context, r *reply) (uint64, error) {
	select {
	case err := <-r.done:
		if err == errLost {
			<-l.done
			err = l.failure()
		}
		return r.value, err
	case <-ctx.Done():
		l.drop(r.id)
		r.mu.Lock()
		r.abandoned = true
		r.mu.Unlock()
		return 0, giveUp(ctx, l.pe)
	}
}

func (l *link) drop(id uint64) {
	l.mu.Lock()
	delete(l.pending, id)
	l.mu.Unlock()
}

// read serves the replies until the connection ends.
func (l *link) read() {
	in := bufio.NewReaderSize(l.conn, readAhead)
	var b [headerSize]byte
	for {
		if _, err := io.ReadFull(in, b[:]); err != nil {
			l.fail(err)
			return
		}
		if err := l.take(in, decodeHeader(b[:])); err != nil {
			l.fail(err)
			return
		}
	}
}

func (l *link) take(in *bufio.Reader, h header) error {
	if h.kind == repBye {
		l.bye.Store(true)
		return nil
	}
	l.mu.Lock()
	r := l.pending[h.id]
	delete(l.pending, h.id)
	l.mu.Unlock()
	switch h.kind {
	case repData:
		return fill(in, r, h)
	case repValue, repAck:
		if r != nil {
			r.value = h.operand
			r.done <- nil
		}
		return nil
	case repFail:
		return l.refusal(in, r, h)
	}
	return ended(r, fmt.Errorf("it sent a frame of unknown kind %d", h.kind))
}

// fill copies a payload into its destination, or throws it away when nobody wants it any more.
func fill(in *bufio.Reader, r *reply, h header) error {
	if h.size > chunk || r != nil && int(h.size) != len(r.dst) {
		return ended(r, fmt.Errorf("it answered a get with %d bytes", h.size))
	}
	for off, size := 0, int(h.size); off < size; {
		if _, err := in.Peek(1); err != nil {
			return ended(r, err)
		}
		part, err := in.Peek(min(in.Buffered(), size-off))
		if err != nil {
			return ended(r, err)
		}
		if r != nil {
			r.mu.Lock()
			if !r.abandoned {
				copy(r.dst[off:], part)
			}
			r.mu.Unlock()
		}
		off += len(part)
		if _, err := in.Discard(len(part)); err != nil {
			return ended(r, err)
		}
	}
	if r != nil {
		r.done <- nil
	}
	return nil
}

// errLost tells a waiter that its link is being lost; the reason is the link's.
var errLost = errors.New("lost")

// ended gives a reply that is not in the pending table any more its share of a lost connection.
func ended(r *reply, err error) error {
	if r != nil {
		r.done <- errLost
	}
	return err
}

// refusal takes the words of a refused request to whoever asked, or keeps them for the next call that waits.
func (l *link) refusal(in *bufio.Reader, r *reply, h header) error {
	if h.size > maxText {
		return ended(r, fmt.Errorf("it sent a text of %d bytes", h.size))
	}
	text := make([]byte, h.size)
	if _, err := io.ReadFull(in, text); err != nil {
		return ended(r, err)
	}
	err := &status.Error{Code: status.Code(int32(h.operand)), Op: "tcp", PE: l.pe, Detail: string(text)}
	if r != nil {
		r.done <- err
		return nil
	}
	l.mu.Lock()
	if l.refused == nil && h.id == 0 {
		l.refused = err
	}
	l.mu.Unlock()
	return nil
}

// takeRefusal gives what a request without reply failed with, once.
func (l *link) takeRefusal() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	err := l.refused
	l.refused = nil
	return err
}

// fail makes the link lost, once.
func (l *link) fail(cause error) {
	l.mu.Lock()
	if l.err != nil {
		l.mu.Unlock()
		return
	}
	l.err = lossOf(l.pe, cause, l.bye.Load())
	err, pending := l.err, l.pending
	l.pending = map[uint64]*reply{}
	l.mu.Unlock()
	close(l.done)
	_ = l.out.Conn.Close()
	for _, r := range pending {
		r.done <- err
	}
	l.onLost(l, err)
}

func (l *link) failure() error {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.err
}
