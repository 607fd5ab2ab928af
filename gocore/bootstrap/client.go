package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"sync"
	"time"

	"goshmem/gocore/status"
)

// client is a PE's end of the star: over a connection, or directly for the host's own PE.
type client struct {
	n     int
	inbox chan frame // closed after the last frame
	quit  chan struct{}
	close func()
	write func(context.Context, frame) error

	mu   sync.Mutex
	gone error // why the inbox was closed
}

// local connects the host's own PE without a connection.
func (h *host) local(who hello) *client {
	c := &client{n: h.n, inbox: make(chan frame, 32), quit: make(chan struct{})}
	m := &member{pe: who.me, who: who, from: "the host itself", send: offer(c.inbox), end: sync.OnceFunc(func() { close(c.inbox) })}
	c.gone = errors.New("the host was closed")
	c.write = func(_ context.Context, f frame) error { h.handle(m, f); return nil }
	c.close = sync.OnceFunc(func() { close(c.quit); h.handle(m, frame{kind: frameBye}) })
	h.join(m, nil)
	return c
}

// remote runs the client's end of an authenticated connection.
func remote(conn *tls.Conn, n int) *client {
	c := &client{n: n, inbox: make(chan frame, 4), quit: make(chan struct{})}
	done := make(chan struct{})
	go func() {
		defer close(done)
		c.read(conn)
	}()
	c.write = func(ctx context.Context, f frame) error { return writeFrame(ctx, conn, f) }
	c.close = sync.OnceFunc(func() {
		close(c.quit)
		_ = conn.SetWriteDeadline(time.Now().Add(lingerLimit))
		_, _ = conn.Write(frame{kind: frameBye}.encode())
		_ = conn.Close()
		<-done
	})
	return c
}

// read feeds the inbox. At the end of the stream it closes the connection at once, which lets the host's Close return.
func (c *client) read(conn *tls.Conn) {
	defer close(c.inbox)
	defer conn.Close()
	for {
		f, err := readFrame(conn, min(4+c.n*(4+MaxBlob), 4+4*MaxPEs+MaxRound))
		if err != nil {
			c.mu.Lock()
			c.gone = err
			c.mu.Unlock()
			return
		}
		select {
		case c.inbox <- f:
		case <-c.quit:
			return
		}
	}
}

func (c *client) whyGone() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.gone
}

// writeFrame writes one frame, or fails when ctx ends; the connection is useless after a failure.
func writeFrame(ctx context.Context, conn net.Conn, f frame) error {
	stop := context.AfterFunc(ctx, func() { _ = conn.SetWriteDeadline(time.Unix(1, 0)) })
	defer stop()
	_, err := conn.Write(f.encode())
	if err != nil && ctx.Err() != nil {
		return context.Cause(ctx)
	}
	return err
}

// await waits for a frame of the wanted kind. When ctx has a deadline it asks, half-way and shortly before it, who is missing, so that
// the error can name them. Refusals, and the end of the connection, are errors.
func (c *client) await(ctx context.Context, op string, want byte) (frame, error) {
	missing := []int(nil)
	ask := newAsking(ctx)
	defer ask.timer.Stop()
	for {
		select {
		case f, ok := <-c.inbox:
			done, err := c.look(f, ok, op, want, &missing)
			if done || err != nil {
				return f, err
			}
		case <-ask.timer.C:
			ask.again()
			if err := c.write(ctx, frame{kind: frameWho}); err != nil && ctx.Err() != nil {
				return frame{}, waitError(ctx, op, missing)
			}
		case <-ctx.Done():
			if len(c.inbox) == 0 {
				return frame{}, c.giveUp(ctx, op, missing)
			}
		}
	}
}

// look judges one frame from the inbox: whether it is the wanted one.
func (c *client) look(f frame, ok bool, op string, want byte, missing *[]int) (bool, error) {
	switch {
	case !ok:
		return false, status.At(status.PeerDead, op, 0, "the host of the rendezvous is gone: %v", c.whyGone())
	case f.kind == frameRefuse:
		return false, decodeStatus(f, op)
	case f.kind == frameMissing:
		*missing = decodePEs(f)
		return false, nil
	case f.kind == want:
		return true, nil
	}
	return false, status.New(status.Internal, op, "the host sent a frame of kind %d", f.kind)
}

// asking is when to ask who is missing: at half of the time to the deadline and at nine tenths; never without a deadline.
type asking struct {
	timer *time.Timer
	last  time.Time
}

func newAsking(ctx context.Context) asking {
	deadline, ok := ctx.Deadline()
	if !ok {
		t := time.NewTimer(time.Hour)
		t.Stop()
		return asking{timer: t}
	}
	wait := time.Until(deadline)
	return asking{timer: time.NewTimer(wait / 2), last: deadline.Add(-wait / 10)}
}

func (a *asking) again() {
	if wait := time.Until(a.last); wait > 0 {
		a.timer.Reset(wait)
	}
}

// giveUp tells the host, and so everybody, that this PE stopped waiting.
func (c *client) giveUp(ctx context.Context, op string, missing []int) error {
	err := waitError(ctx, op, missing)
	limited, cancel := context.WithTimeout(context.WithoutCancel(ctx), 100*time.Millisecond)
	defer cancel()
	_ = c.write(limited, encodeStatus(frameGiveUp, err)) // the host may be the one that is gone
	return err
}

// waitError words the end of a wait: a timeout or a cancellation, with its cause, and who was missing.
func waitError(ctx context.Context, op string, missing []int) *status.Error {
	e := &status.Error{Code: status.Canceled, Op: op, PE: -1, Err: context.Cause(ctx)}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) {
		e.Code = status.Timeout
	}
	if code := status.Of(e.Err); code != status.Internal && code != status.OK {
		e.Code = code // the cause says better what ended it
	}
	switch len(missing) {
	case 0:
		e.Detail = "waiting for the other PEs"
	case 1:
		e.PE = missing[0]
		e.Detail = fmt.Sprintf("PE %d is missing (raise SHMEM_TIMEOUT if it is only slow)", missing[0])
	default:
		e.PE = missing[0]
		e.Detail = fmt.Sprintf("PEs %s are missing (raise SHMEM_TIMEOUT if they are only slow)", listPEs(missing))
	}
	return e
}
