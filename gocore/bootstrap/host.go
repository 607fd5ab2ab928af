package bootstrap

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"goshmem/gocore/status"
)

const (
	handshakeLimit  = 1500 * time.Millisecond // a stranger is gone after this; a slow member tries again
	handshakesAtMax = 64                      // connections that have not proved themselves yet
	lingerLimit     = time.Second             // how long Close waits for members to take what was sent
)

// host is the centre of the star. Its life:
//
//	joining --(all n came)--> up --(close)--> closed
//	    \---------(failure)-----/----> failed --(close)--> closed
//
// While joining it listens; when all have come it stops listening. In failed, members are told why.
type host struct {
	n         int
	version   string
	layout    uint32
	tls       *tls.Config
	session   []byte
	listeners []net.Listener
	gate      chan struct{}
	file      *privateFile // by which members find it, nil without; gone when all have come
	wg        sync.WaitGroup
	stop      chan struct{}

	mu       sync.Mutex
	members  []*member // by PE, nil while it has not come
	came     int
	up       bool
	closed   bool
	failure  *status.Error
	round    uint32
	kind     byte
	blobs    [][]byte
	gave     []bool
	given    int
	total    int               // bytes contributed to this round
	refused  int               // connections that did not prove themselves
	lastFrom string            // where the last of those came from
	raw      map[net.Conn]bool // open connections; true: authenticated, so it gets our last words
}

// member is one PE as its host sees it.
type member struct {
	pe   int
	who  hello
	from string
	send func(frame) bool // queues a frame, never blocks; false when the member does not take frames any more
	end  func()           // no more frames will be sent
	left bool             // said goodbye
}

// newHost starts serving on the listeners, which it owns from now on.
func newHost(listeners []net.Listener, secret []byte, n int, version string, layout uint32, file *privateFile) (*host, error) {
	id, err := NewIdentity(secret, "host", 0)
	if err != nil {
		return nil, status.Wrap(status.BadConfig, "rendezvous", err, "SHMEM_SECRET")
	}
	h := &host{n: n, version: version, layout: layout, tls: id.Acceptor("member", MaxPEs), session: newSecret(),
		listeners: listeners, gate: make(chan struct{}, handshakesAtMax), stop: make(chan struct{}),
		members: make([]*member, n), file: file, raw: map[net.Conn]bool{}}
	h.resetRoundLocked()
	for _, l := range listeners {
		h.wg.Add(1)
		go h.accept(l)
	}
	return h, nil
}

func (h *host) accept(l net.Listener) {
	defer h.wg.Done()
	for {
		select {
		case h.gate <- struct{}{}:
		case <-h.stop:
			return
		}
		c, err := l.Accept()
		if err != nil {
			<-h.gate
			if errors.Is(err, net.ErrClosed) || h.pause(10*time.Millisecond) {
				return
			}
			continue // out of descriptors, or the peer was gone already: the listener itself is fine
		}
		h.wg.Add(1)
		go h.serve(c)
	}
}

// pause sleeps, and reports whether the host was closed meanwhile.
func (h *host) pause(d time.Duration) bool {
	select {
	case <-time.After(d):
		return false
	case <-h.stop:
		return true
	}
}

// serve takes one connection from the handshake to its end.
func (h *host) serve(c net.Conn) {
	defer h.wg.Done()
	defer h.untrack(c)
	who, conn, err := h.greet(c)
	<-h.gate
	if err != nil {
		return
	}
	out := make(chan frame, 32)
	m := &member{pe: who.me, who: who, from: c.RemoteAddr().String(), send: offer(out), end: sync.OnceFunc(func() { close(out) })}
	h.wg.Add(1)
	go h.write(c, conn, out)
	if !h.join(m, c) {
		h.mu.Lock()
		m.end()
		h.mu.Unlock()
		drain(conn)
		return
	}
	for {
		f, err := readFrame(conn, memberFrame)
		if err != nil {
			h.lost(m, err)
			return
		}
		h.handle(m, f)
	}
}

// greet authenticates a connection and reads its hello, all within handshakeLimit.
func (h *host) greet(c net.Conn) (hello, *tls.Conn, error) {
	if !h.track(c) {
		return hello{}, nil, net.ErrClosed
	}
	_ = c.SetDeadline(time.Now().Add(handshakeLimit))
	conn := tls.Server(c, h.tls)
	if err := conn.Handshake(); err != nil {
		h.countRefused(c)
		return hello{}, nil, err
	}
	f, err := readFrame(conn, 2*maxText+64)
	if err != nil {
		return hello{}, nil, err // a member that tried several of our addresses drops all but one
	}
	who, err := decodeHello(f)
	if err != nil || who.me != PeerOf(conn.ConnectionState()) {
		h.countRefused(c)
		return hello{}, nil, ErrNotAuthenticated
	}
	_ = c.SetDeadline(time.Time{})
	return who, conn, nil
}

// write sends queued frames until the queue is closed, then says that no more will come. A member that cannot be written to is
// noticed by its reader.
func (h *host) write(c net.Conn, conn *tls.Conn, out <-chan frame) {
	defer h.wg.Done()
	for f := range out {
		if _, err := conn.Write(f.encode()); err != nil {
			_ = c.Close()
			for range out { // the queue is closed by whoever removes the member
			}
			return
		}
	}
	_ = conn.CloseWrite()
}

// offer makes a send function over a queue. It may only be called with host.mu held, and not after the queue was closed.
func offer(out chan frame) func(frame) bool {
	return func(f frame) bool {
		select {
		case out <- f:
			return true
		default:
			return false // 32 unread frames: it is not following the protocol
		}
	}
}

func drain(conn *tls.Conn) {
	_ = conn.SetReadDeadline(time.Now().Add(lingerLimit))
	var b [512]byte
	for {
		if _, err := conn.Read(b[:]); err != nil {
			return
		}
	}
}

func (h *host) track(c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		_ = c.Close()
		return false
	}
	h.raw[c] = false
	return true
}

func (h *host) untrack(c net.Conn) {
	_ = c.Close()
	h.mu.Lock()
	delete(h.raw, c)
	h.mu.Unlock()
}

func (h *host) countRefused(c net.Conn) {
	h.mu.Lock()
	h.refused++
	h.lastFrom = c.RemoteAddr().String()
	h.mu.Unlock()
}

// strangers words the connections that were refused, "" when there were none.
func (h *host) strangers() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.refused == 0 {
		return ""
	}
	return fmt.Sprintf("; %d connections were refused because they did not prove this job's secret, the last from %s", h.refused, h.lastFrom)
}

// close ends the host. Members get what was already sent to them; those who do not take it within lingerLimit are cut off.
func (h *host) close() {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		h.wg.Wait()
		return
	}
	h.closed = true
	for _, m := range h.members {
		if m != nil {
			m.end()
		}
	}
	for c, authenticated := range h.raw {
		if !authenticated {
			_ = c.Close()
		}
	}
	h.mu.Unlock()
	close(h.stop)
	h.stopListening()
	done := make(chan struct{})
	go func() { h.wg.Wait(); close(done) }()
	select {
	case <-done:
	case <-time.After(lingerLimit):
		h.mu.Lock()
		for c := range h.raw {
			_ = c.Close()
		}
		h.mu.Unlock()
		<-done
	}
}

func (h *host) stopListening() {
	for _, l := range h.listeners {
		_ = l.Close()
	}
}
