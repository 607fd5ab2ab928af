package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"net/netip"
	"sync"
	"sync/atomic"
	"time"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

const (
	role            = "fabric"
	handshakeLimit  = 1500 * time.Millisecond
	handshakesAtMax = 64
	lingerLimit     = time.Second
	dialsAtOnce     = 16
	dialPause       = 50 * time.Millisecond
	dialTries       = 40
)

// Config is what a transport needs. Secret is the world's (bootstrap.Rendezvous.Secret); Memory serves the requests of peers.
type Config struct {
	Me, N     int
	Secret    []byte
	Memory    fabric.Memory
	Interface string                  // see bootstrap.Candidates; "": loopback and every other usable one
	Lost      func(pe int, err error) // told once per peer whose connection ended; may be nil; must not block
}

// Transport is the fabric over TLS. Its life: listening (New) -> connected (Connect) -> closed. It implements fabric.Transport.
type Transport struct {
	c         Config
	id        *bootstrap.Identity
	accepts   *tls.Config
	listeners []net.Listener
	gate      chan struct{} // connections that have not proved themselves yet
	links     []atomic.Pointer[link]
	wg        sync.WaitGroup
	tries     uint8           // unanswered tries after which a host is taken for gone; tests lower it
	ctx       context.Context // ends when the transport is closed
	cancel    context.CancelFunc

	mu     sync.Mutex
	raw    map[net.Conn]bool // accepted connections; true: serving
	lost   map[int]error
	closed bool

	shut  atomic.Bool // set with closed; read by every operation
	watch sync.Once
}

// New starts listening. The caller closes the transport.
func New(c Config) (*Transport, error) {
	id, err := bootstrap.NewIdentity(c.Secret, role, c.Me)
	if err != nil {
		return nil, status.Wrap(status.BadConfig, "tcp", err, "the world's secret")
	}
	ips, err := bootstrap.Candidates(c.Interface)
	if err != nil {
		return nil, err
	}
	t := &Transport{c: c, id: id, accepts: id.Acceptor(role, c.N), gate: make(chan struct{}, handshakesAtMax),
		links: make([]atomic.Pointer[link], c.N), raw: map[net.Conn]bool{}, lost: map[int]error{}, tries: silenceTries}
	t.ctx, t.cancel = context.WithCancel(context.Background())
	var last error
	for _, ip := range ips {
		l, err := net.Listen("tcp", netip.AddrPortFrom(ip, 0).String())
		if err != nil {
			last = err // an address that cannot be bound is no candidate
			continue
		}
		t.listeners = append(t.listeners, l)
	}
	if len(t.listeners) == 0 {
		return nil, status.Wrap(status.System, "tcp", last, "cannot listen on any of %v; choose with SHMEM_INTERFACE", ips)
	}
	for _, l := range t.listeners {
		t.wg.Add(1)
		go t.accept(l)
	}
	return t, nil
}

// Addresses is where this PE listens, best first, for the others' Connect.
func (t *Transport) Addresses() []string {
	var out []string
	for _, l := range t.listeners {
		out = append(out, l.Addr().String())
	}
	return out
}

// Name is "tcp".
func (t *Transport) Name() string { return "tcp" }

// Abilities: it moves bytes and updates words through the target's runtime, encrypted and authenticated.
func (t *Transport) Abilities() fabric.Abilities {
	return fabric.Abilities{Encrypted: true, Authenticated: true}
}

// Connect connects to these peers, given by their Addresses. It returns when each has accepted, or with the error that names the first that
// has not. Blocks until ctx ends at the latest.
func (t *Transport) Connect(ctx context.Context, peers map[int][]string) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	gate := make(chan struct{}, dialsAtOnce)
	results := make(chan error, len(peers))
	for pe, addrs := range peers {
		go func() {
			gate <- struct{}{}
			defer func() { <-gate }()
			if pe == t.c.Me {
				results <- nil
				return
			}
			results <- t.connect(ctx, pe, addrs)
		}()
	}
	var first error
	for range peers {
		if err := <-results; err != nil && first == nil {
			first = err
			cancel() // the others need not go on
		}
	}
	if first == nil && len(peers) > 0 {
		t.watchSilence()
	}
	return first
}

func (t *Transport) connect(ctx context.Context, pe int, addrs []string) error {
	var err error
	for range dialTries {
		if ctx.Err() != nil {
			return giveUp(ctx, pe)
		}
		var l *link
		if l, err = t.dial(ctx, pe, addrs); err == nil {
			err = t.adopt(ctx, l)
		}
		if err == nil || errors.Is(err, errClosed) {
			return err
		}
		if errors.Is(err, bootstrap.ErrNotAuthenticated) {
			break
		}
		select {
		case <-time.After(dialPause):
		case <-ctx.Done():
		}
	}
	code := status.PeerUnreachable
	if errors.Is(err, bootstrap.ErrNotAuthenticated) {
		code = status.Unauthenticated
	}
	return &status.Error{Code: code, Op: "tcp", PE: pe, Detail: "cannot connect to it; are all hosts on one network? choose with SHMEM_INTERFACE", Err: err}
}

// dial makes one authenticated connection to a peer.
func (t *Transport) dial(ctx context.Context, pe int, addrs []string) (*link, error) {
	type opened struct {
		*tls.Conn
		out *outbox
	}
	o, err := bootstrap.Reach(ctx, addrs, func(ctx context.Context, raw net.Conn) (opened, error) {
		keepAlive(raw)
		out, err := newOutbox(raw)
		if err != nil {
			return opened{}, err
		}
		conn := tls.Client(out, t.id.Dialer(role, pe))
		return opened{conn, out}, conn.HandshakeContext(ctx)
	})
	if err != nil {
		return nil, err
	}
	o.out.collect = true
	return newLink(pe, o.Conn, o.out, t.linkLost), nil
}

// adopt starts a link and waits until its target has answered: a handshake alone does not say that it let us in. A busy
// target may have given up on a slow handshake after ours was done; the link is then dropped, and the caller dials again.
func (t *Transport) adopt(ctx context.Context, l *link) error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		_ = l.conn.NetConn().Close()
		return errClosed
	}
	t.wg.Add(1)
	t.mu.Unlock()
	go func() {
		defer t.wg.Done()
		l.read()
	}()
	r, err := l.ask(ctx, header{kind: reqFlush}, nil)
	if err == nil {
		_, err = l.answer(ctx, r)
	}
	if err != nil {
		l.fail(err)
		return err
	}
	t.links[l.pe].Store(l)
	l.adopted.Store(true)
	if err := l.failure(); err != nil {
		t.report(l.pe, err)
	}
	return nil
}

func (t *Transport) linkLost(l *link, err error) {
	if l.adopted.Load() {
		t.report(l.pe, err)
	}
}

// report records that a peer is lost and tells the owner once. A peer that left properly is no loss.
func (t *Transport) report(pe int, err error) {
	t.mu.Lock()
	first := t.lost[pe] == nil && !t.closed
	if first {
		t.lost[pe] = err
	}
	t.mu.Unlock()
	left := status.Of(err) == status.PeerLeft
	if l := t.links[pe].Load(); l != nil && left {
		l.bye.Store(true) // what is under way may still be served
	} else if l != nil {
		l.fail(err) // the other direction, when this one was the first to notice
	}
	if first && !left && t.c.Lost != nil {
		t.c.Lost(pe, err)
	}
}

// link finds the connection to a peer.
func (t *Transport) link(pe int) (*link, error) {
	if pe < 0 || pe >= t.c.N {
		return nil, status.At(status.InvalidPE, "tcp", pe, "PEs are 0 to %d", t.c.N-1)
	}
	if t.shut.Load() {
		return nil, errClosed
	}
	if l := t.links[pe].Load(); l != nil {
		if l.bye.Load() {
			return nil, lossOf(pe, nil, true)
		}
		select {
		case <-l.done:
			return nil, l.failure()
		default:
			return l, nil
		}
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if err := t.lost[pe]; err != nil {
		return nil, err
	}
	return nil, status.At(status.PeerUnreachable, "tcp", pe, "no connection was made to it")
}

// keepAlive lets the kernel find a peer's host that vanished while nothing is under way. A stopped process does not matter: its kernel answers.
func keepAlive(c net.Conn) {
	if tcp, ok := c.(*net.TCPConn); ok {
		_ = tcp.SetKeepAliveConfig(net.KeepAliveConfig{Enable: true, Idle: 5 * time.Second, Interval: 2 * time.Second, Count: 5})
		_ = tcp.SetNoDelay(true)
	}
}
