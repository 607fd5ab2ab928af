package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"time"

	"goshmem/gocore/status"
)

const (
	candidateStagger = 20 * time.Millisecond // head start of a candidate address over the next
	retryMost        = 50 * time.Millisecond // longest pause between attempts to reach the host
	strangerPatience = 2 * time.Second       // how long another job may answer at our address before that is an error
	attemptLimit     = 2 * time.Second       // one connection attempt, handshake included
)

// finder says where the host is now; an error means it is not known yet. It is asked again before every attempt, since files change.
type finder func() (ticket, error)

// fixed finds what never changes.
func fixed(t ticket) finder { return func() (ticket, error) { return t, nil } }

// dialer reaches the host of a job.
type dialer struct {
	find    finder
	who     hello
	patient bool   // the ticket may be of an earlier run: keep trying although another job answers
	hint    string // what a PE that never got there is told besides
}

// dial connects, says hello and waits until all have come. It tries until ctx ends.
func (d *dialer) dial(ctx context.Context) (*client, []byte, []byte, error) {
	pause := time.Millisecond
	var last error
	var strange time.Time
	for {
		c, session, t, err := d.once(ctx)
		if err == nil {
			return c, session, t.secret, nil
		}
		if final(err) {
			return nil, nil, nil, err
		}
		switch {
		case !foreign(err):
			strange = time.Time{}
		case strange.IsZero():
			strange = time.Now()
		case !d.patient && time.Since(strange) > strangerPatience:
			return nil, nil, nil, status.Wrap(status.Unauthenticated, opJoin, err, "who answers at %v belongs to another job; compare SHMEM_SECRET and SHMEM_RENDEZVOUS of the PEs", t.addrs)
		}
		if ctx.Err() == nil {
			last = err
		}
		select {
		case <-time.After(pause):
			pause = min(2*pause, retryMost)
		case <-ctx.Done():
			e := waitError(ctx, opJoin, nil)
			e.Detail = fmt.Sprintf("PE %d cannot reach the host of the rendezvous (PE 0) at %v: %v%s", d.who.me, t.addrs, last, d.hint)
			return nil, nil, nil, e
		}
	}
}

// once looks where the host is and makes one attempt there.
func (d *dialer) once(ctx context.Context) (*client, []byte, ticket, error) {
	t, err := d.find()
	if err != nil {
		return nil, nil, t, err
	}
	c, session, err := d.attempt(ctx, t)
	return c, session, t, err
}

// final says that another attempt cannot help: the host, or our own deadline, has spoken.
func final(err error) bool {
	var e *status.Error
	var bound *boundError
	return errors.As(err, &bound) || errors.As(err, &e) && e.Code != retry
}

// foreign says that something answered which is not of this job: another job, or no shmem at all.
func foreign(err error) bool {
	var noTLS tls.RecordHeaderError
	return errors.Is(err, ErrNotAuthenticated) || errors.As(err, &noTLS)
}

// attempt connects once and waits for the welcome.
func (d *dialer) attempt(ctx context.Context, t ticket) (*client, []byte, error) {
	id, err := NewIdentity(t.secret, "member", d.who.me)
	if err != nil {
		return nil, nil, status.Wrap(status.BadConfig, opJoin, err, "SHMEM_SECRET")
	}
	conn, err := connect(ctx, t.addrs, id.Dialer("host", 0))
	if err != nil {
		return nil, nil, err
	}
	c := remote(conn, d.who.n)
	if err := c.write(ctx, d.who.encode()); err != nil {
		c.close()
		return nil, nil, err
	}
	f, err := c.await(ctx, opJoin, frameWelcome)
	if err != nil {
		c.close()
		return nil, nil, err
	}
	return c, f.body, nil
}

// connect reaches the first of the addresses that authenticates.
func connect(ctx context.Context, addrs []string, config *tls.Config) (*tls.Conn, error) {
	return Reach(ctx, addrs, func(ctx context.Context, raw net.Conn) (*tls.Conn, error) {
		conn := tls.Client(raw, config)
		return conn, conn.HandshakeContext(ctx)
	})
}

// Reach connects to one of several candidate addresses of the same peer: it tries them in order, each with a small head start over the
// next, and keeps the first that authenticates. The handshake runs under a limit of its own; when it fails, its
// connection is closed. The error joins those of all candidates.
func Reach[C io.Closer](ctx context.Context, addrs []string, handshake func(context.Context, net.Conn) (C, error)) (C, error) {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	results := make(chan reached[C], len(addrs))
	started, ended := 0, 0
	errs := []error{}
	for ended < len(addrs) {
		var stagger <-chan time.Time
		if started < len(addrs) {
			go func(addr string) { results <- attempt(ctx, addr, handshake) }(addrs[started])
			if started++; started < len(addrs) {
				stagger = time.After(candidateStagger)
			}
		}
		select {
		case r := <-results:
			ended++
			if r.err != nil {
				errs = append(errs, r.err)
				continue
			}
			cancel()
			for range started - ended { // the others end at once now; one may have won as well
				if late := <-results; late.err == nil {
					_ = late.conn.Close()
				}
			}
			return r.conn, nil
		case <-stagger:
		}
	}
	var none C
	return none, errors.Join(append(errs, fmt.Errorf("none of %d addresses could be reached", len(addrs)))...)
}

// reached is what became of one address.
type reached[C any] struct {
	conn C
	err  error
}

func attempt[C io.Closer](ctx context.Context, addr string, handshake func(context.Context, net.Conn) (C, error)) reached[C] {
	ctx, cancel := context.WithTimeout(ctx, attemptLimit)
	defer cancel()
	raw, err := (&net.Dialer{}).DialContext(ctx, "tcp", addr)
	if err != nil {
		return reached[C]{err: err}
	}
	conn, err := handshake(ctx, raw)
	if err != nil {
		_ = raw.Close()
		return reached[C]{err: fmt.Errorf("%s: %w", addr, err)}
	}
	return reached[C]{conn: conn}
}

// processName tells people which process this is.
func processName() string {
	host, err := os.Hostname()
	if err != nil {
		host = "unknown host"
	}
	return fmt.Sprintf("pid %d on %s", os.Getpid(), host)
}
