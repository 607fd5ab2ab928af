package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"time"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/status"
)

func (t *Transport) accept(l net.Listener) {
	defer t.wg.Done()
	for {
		select {
		case t.gate <- struct{}{}:
		case <-t.ctx.Done():
			return
		}
		c, err := l.Accept()
		if err != nil {
			<-t.gate
			if errors.Is(err, net.ErrClosed) {
				return
			}
			select {
			case <-time.After(10 * time.Millisecond): // out of descriptors, or the peer was gone already
			case <-t.ctx.Done():
				return
			}
			continue
		}
		t.wg.Add(1)
		go t.welcome(c)
	}
}

// welcome takes an accepted connection from the handshake to its end.
func (t *Transport) welcome(c net.Conn) {
	defer t.wg.Done()
	defer t.forget(c)
	s, err := t.greet(c)
	<-t.gate
	if err != nil {
		return // a stranger, or a peer that chose another of our addresses
	}
	err = s.serve(t.ctx)
	t.mu.Lock()
	closed := t.closed
	t.mu.Unlock()
	switch {
	case closed, !s.asked:
	case err != nil:
		t.report(s.pe, lossOf(s.pe, err, false))
	default:
		t.report(s.pe, status.At(status.PeerLeft, "tcp", s.pe, "it closed its end"))
	}
}

// greet authenticates a connection, within handshakeLimit.
func (t *Transport) greet(c net.Conn) (*target, error) {
	if !t.remember(c, false) {
		return nil, errClosed
	}
	keepAlive(c)
	out, err := newOutbox(c)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(t.ctx, handshakeLimit)
	defer cancel()
	conn := tls.Server(out, t.accepts)
	if err := conn.HandshakeContext(ctx); err != nil {
		return nil, err
	}
	out.collect = true
	if !t.remember(c, true) {
		return nil, errClosed
	}
	return newTarget(bootstrap.PeerOf(conn.ConnectionState()), t.c.Memory, conn, out), nil
}

func (t *Transport) remember(c net.Conn, serving bool) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.closed && !serving {
		_ = c.Close()
		return false
	}
	t.raw[c] = serving
	return true
}

func (t *Transport) forget(c net.Conn) {
	_ = c.Close()
	t.mu.Lock()
	delete(t.raw, c)
	t.mu.Unlock()
}

// Close says goodbye to all peers, gives what is under way a second to arrive, and closes everything. Peers' operations on this PE fail from now
// on, and this PE's own. Closing twice is fine.
func (t *Transport) Close() error {
	t.mu.Lock()
	if t.closed {
		t.mu.Unlock()
		t.wg.Wait()
		return nil
	}
	t.closed = true
	t.shut.Store(true)
	for c, serving := range t.raw {
		if !serving {
			_ = c.Close()
		}
	}
	t.mu.Unlock()
	for _, l := range t.listeners {
		_ = l.Close()
	}
	t.sayGoodbye()
	t.cancel()
	t.mu.Lock()
	for c := range t.raw {
		_ = c.Close()
	}
	t.mu.Unlock()
	t.wg.Wait()
	return nil
}

// sayGoodbye ends the links: each peer serves what came before the goodbye and answers it.
func (t *Transport) sayGoodbye() {
	ctx, cancel := context.WithTimeout(context.Background(), lingerLimit)
	defer cancel()
	var open []*link
	for i := range t.links {
		l := t.links[i].Load()
		if l == nil {
			continue
		}
		if err := l.send(ctx, header{kind: reqBye}, nil); err == nil {
			open = append(open, l)
		}
	}
	for _, l := range open {
		select {
		case <-l.done: // its target has answered and closed
		case <-ctx.Done():
			l.fail(errClosed)
		}
	}
	for i := range t.links {
		if l := t.links[i].Load(); l != nil {
			l.fail(errClosed)
		}
	}
}
