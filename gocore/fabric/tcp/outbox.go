package tcp

import (
	"context"
	"errors"
	"net"
	"sync"
	"syscall"
)

// outboxLimit is how many sealed bytes may wait for the socket before senders wait for room.
const outboxLimit = 1 << 20

// outbox is the connection under TLS. TLS seals into it without ever blocking; flush writes as much as the socket takes at once, and
// a goroutine, which lives only as long as the socket is full, writes the rest. So a sender can stop waiting at any time without leaving half a record behind.
type outbox struct {
	net.Conn
	rc      syscall.RawConn
	collect bool // false during the handshake, when writes go straight through; set before the connection is shared

	mu      sync.Mutex
	buf     []byte        // sealed, not yet given to the socket
	spare   []byte        // an empty buffer to swap with
	left    int           // bytes in buf and in the hands of the writer
	writing bool          // somebody is at the socket
	err     error         // why nothing can be written any more
	room    chan struct{} // nil unless somebody waits; closed when left falls below the limit
}

func newOutbox(c net.Conn) (*outbox, error) {
	sc, ok := c.(syscall.Conn)
	if !ok {
		return nil, errors.New("not a socket")
	}
	rc, err := sc.SyscallConn()
	if err != nil {
		return nil, err
	}
	return &outbox{Conn: c, rc: rc}, nil
}

// Write is called by TLS with sealed records.
func (o *outbox) Write(p []byte) (int, error) {
	if !o.collect {
		return o.Conn.Write(p)
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.err != nil {
		return 0, o.err
	}
	o.buf = append(o.buf, p...)
	o.left += len(p)
	return len(p), nil
}

// flush writes what has been sealed, as far as the socket takes it now.
func (o *outbox) flush() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.writing {
		return // whoever writes looks again before it stops
	}
	o.writing = true
	for len(o.buf) > 0 && o.err == nil {
		b := o.takeLocked()
		o.mu.Unlock()
		n, err := o.try(b)
		o.mu.Lock()
		o.wroteLocked(n, err)
		if err == nil && n < len(b) {
			go o.drain(b, n)
			return
		}
		o.spare = b[:0]
	}
	o.writing = false
}

// drain writes the rest of b, and whatever is sealed meanwhile, waiting for the socket.
func (o *outbox) drain(b []byte, done int) {
	for {
		n, err := o.Conn.Write(b[done:])
		o.mu.Lock()
		o.wroteLocked(n, err)
		o.spare = b[:0]
		if o.err != nil || len(o.buf) == 0 {
			o.writing = false
			o.mu.Unlock()
			return
		}
		b, done = o.takeLocked(), 0
		o.mu.Unlock()
	}
}

func (o *outbox) takeLocked() []byte {
	b := o.buf
	o.buf, o.spare = o.spare[:0], nil
	return b
}

func (o *outbox) wroteLocked(n int, err error) {
	o.left -= n
	if err != nil && o.err == nil {
		o.err = err
	}
	if o.room != nil && (o.err != nil || o.left < outboxLimit) {
		close(o.room)
		o.room = nil
	}
}

// state is how many bytes are left, and a channel that is closed when that has changed for the better.
func (o *outbox) state() (left int, room chan struct{}, err error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.room == nil && o.left > 0 {
		o.room = make(chan struct{})
	}
	return o.left, o.room, o.err
}

// try makes one attempt that does not wait.
func (o *outbox) try(b []byte) (n int, err error) {
	werr := o.rc.Write(func(fd uintptr) bool {
		for {
			n, err = syscall.Write(int(fd), b) // not unix.Write: this one tells the race detector that bytes carry order
			if err != syscall.EINTR {
				return true
			}
		}
	})
	if n < 0 || err == syscall.EAGAIN {
		n = 0
	}
	if err == syscall.EAGAIN {
		err = nil
	}
	if werr != nil {
		err = werr
	}
	return n, err
}

// wait returns when there is room for another frame, or the connection failed, or ctx ended.
func (o *outbox) wait(ctx context.Context) error {
	for {
		left, room, err := o.state()
		if err != nil || left < outboxLimit {
			return err
		}
		o.flush()
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}

// empty waits until everything has been given to the socket.
func (o *outbox) empty(ctx context.Context) error {
	for {
		o.flush()
		left, room, err := o.state()
		if err != nil || left == 0 {
			return err
		}
		select {
		case <-room:
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
}
