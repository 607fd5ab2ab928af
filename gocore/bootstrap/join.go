package bootstrap

import (
	"context"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"path/filepath"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"goshmem/gocore/status"
)

// filePoll is how often a host looks whether its file was replaced.
const filePoll = 50 * time.Millisecond

// Join brings this PE together with the others of the job. Collective. Blocks until all have come or ctx ends; the error names who
// was missing. Give ctx a deadline. Several joins of one process may run at once.
func Join(ctx context.Context, c Choice) (*Rendezvous, error) {
	if c.N == 1 {
		if o := c.offer(); o != nil {
			o.Close()
		}
		secret := newSecret()
		return &Rendezvous{Me: 0, N: 1, Method: c.Method, Reason: c.Reason, secret: secret, turn: make(chan struct{}, 1)}, nil
	}
	switch c.route {
	case byUID:
		return c.joinUID(ctx)
	case byEndpoint:
		return c.joinEndpoint(ctx)
	case byFile:
		return c.joinFile(ctx)
	}
	return nil, status.New(status.Internal, opJoin, "%d PEs with method %s", c.N, c.Method)
}

func (c Choice) offer() *Offer {
	if c.uid == nil || c.options.FindOffer == nil {
		return nil
	}
	return c.options.FindOffer(c.uid)
}

func (c Choice) joinUID(ctx context.Context) (*Rendezvous, error) {
	t, err := decodeUID(c.uid)
	if err != nil {
		return nil, err
	}
	if o := c.offer(); o != nil {
		listeners, err := o.take()
		if err != nil {
			return nil, err
		}
		return c.serve(ctx, listeners, t.secret, nil)
	}
	return c.reach(ctx, dialer{find: fixed(t), who: c.hello()})
}

func (c Choice) joinEndpoint(ctx context.Context) (*Rendezvous, error) {
	private := ""
	if c.secret == "" {
		var err error
		if private, err = secretPath(c.endpoint); err != nil {
			return nil, status.Wrap(status.Rendezvous, opJoin, err, "no place for the job's secret; set SHMEM_SECRET instead")
		}
	}
	l, err := c.inheritedSocket()
	if err != nil {
		return nil, err
	}
	if l == nil {
		d := dialer{find: c.findEndpoint(private), who: c.hello(), patient: private != "" && c.Me != 0}
		if c.Me == 0 {
			d.find = c.bindOr(ctx, d.find)
			d.hint = portTaken
		}
		r, err := c.reach(ctx, d)
		var bound *boundError
		if !errors.As(err, &bound) {
			return r, err
		}
		l = bound.l
	}
	secret := []byte(c.secret)
	var file *privateFile
	if private != "" {
		secret = newSecret()
		if file, err = publish(private, secret); err != nil {
			_ = l.Close()
			return nil, status.Wrap(status.Rendezvous, opJoin, err, "cannot leave the job's secret; set SHMEM_SECRET instead")
		}
	}
	return c.serve(ctx, []net.Listener{l}, secret, file)
}

func (c Choice) findEndpoint(private string) finder {
	if private == "" {
		return fixed(ticket{[]string{c.endpoint}, []byte(c.secret)})
	}
	return func() (ticket, error) {
		secret, err := readPrivate(private)
		if err == nil && len(secret) < MinSecret {
			err = errors.New(private + " is too short")
		}
		return ticket{[]string{c.endpoint}, secret}, err
	}
}

// boundError carries the endpoint's listener out of a search for the host: the search ends because this PE is the host.
type boundError struct{ l net.Listener }

func (b *boundError) Error() string { return "bound " + b.l.Addr().String() }

// portTaken is why PE 0 may find neither a free port nor its job there.
const portTaken = "; PE 0 could not listen there itself, since the port is in use: by another program, or by a connection that got it as its own" +
	" (Linux takes those from /proc/sys/net/ipv4/ip_local_port_range); choose a port that is free and outside that range"

// bindOr binds the endpoint for PE 0. While something else holds it, PE 0 looks for its host there: a process that inherited the
// launcher's socket and is another PE this time. A job that is ending, or a second PE 0, shows itself that way as well.
func (c Choice) bindOr(ctx context.Context, find finder) finder {
	return func() (ticket, error) {
		l, err := (&net.ListenConfig{}).Listen(ctx, "tcp", c.endpoint)
		switch {
		case err == nil:
			return ticket{}, &boundError{l}
		case errors.Is(err, unix.EADDRINUSE):
			return find()
		case errors.Is(err, unix.EADDRNOTAVAIL):
			return ticket{}, status.Wrap(status.Rendezvous, opJoin, err, "%s is not an address of this host, where PE 0 runs; SHMEM_RENDEZVOUS must be PE 0's", c.endpoint)
		case ctx.Err() != nil:
			return ticket{}, err
		}
		return ticket{}, status.Wrap(status.Rendezvous, opJoin, err, "PE 0 cannot listen on %s; choose another port in SHMEM_RENDEZVOUS", c.endpoint)
	}
}

// inheritedSocket is the launcher's listening socket, nil when this process has none.
func (c Choice) inheritedSocket() (net.Listener, error) {
	if c.listenFD < 0 {
		return nil, nil
	}
	return inherited(c.listenFD, c.endpoint)
}

// inherited wraps the launcher's listening socket. The descriptor itself stays open, so that the process can join again later.
func inherited(fd int, endpoint string) (net.Listener, error) {
	unix.CloseOnExec(fd)
	dup, err := unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0)
	if err != nil {
		return nil, status.Wrap(status.BadConfig, opJoin, err, "SHMEM_LISTEN_FD=%d is not open here; unset it in processes the launcher did not start", fd)
	}
	f := os.NewFile(uintptr(dup), "SHMEM_LISTEN_FD")
	defer f.Close()
	if on, err := unix.GetsockoptInt(dup, unix.SOL_SOCKET, unix.SO_ACCEPTCONN); err != nil || on == 0 {
		return nil, status.New(status.BadConfig, opJoin, "SHMEM_LISTEN_FD=%d is not a listening socket", fd)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, status.Wrap(status.BadConfig, opJoin, err, "SHMEM_LISTEN_FD=%d", fd)
	}
	_, want, _ := net.SplitHostPort(endpoint)
	if _, port, _ := net.SplitHostPort(l.Addr().String()); port != want {
		_ = l.Close()
		return nil, status.New(status.BadConfig, opJoin, "SHMEM_LISTEN_FD=%d listens on %s, but SHMEM_RENDEZVOUS is %s", fd, l.Addr(), endpoint)
	}
	return l, nil
}

func (c Choice) joinFile(ctx context.Context) (*Rendezvous, error) {
	path, err := filepath.Abs(c.endpoint)
	if err != nil {
		return nil, status.Wrap(status.Rendezvous, opJoin, err, "%s", c.endpoint)
	}
	if c.Me != 0 {
		return c.reach(ctx, dialer{find: func() (ticket, error) { return readTicket(path) }, who: c.hello(), patient: true})
	}
	o, err := NewOffer(first(c.options.Interface, c.options.env("SHMEM_INTERFACE")))
	if err != nil {
		return nil, err
	}
	t, err := decodeUID(o.UID)
	if err != nil {
		return nil, err
	}
	file, err := publish(path, []byte(hex.EncodeToString(o.UID)+"\n"))
	if err != nil {
		o.Close()
		return nil, status.Wrap(status.Rendezvous, opJoin, err, "PE 0 cannot write the rendezvous file")
	}
	listeners, err := o.take()
	if err != nil {
		return nil, err
	}
	return c.serve(ctx, listeners, t.secret, file)
}

func readTicket(path string) (ticket, error) {
	text, err := readPrivate(path)
	if err != nil {
		return ticket{}, err
	}
	uid, err := hex.DecodeString(strings.TrimSpace(string(text)))
	if err != nil {
		return ticket{}, errors.New(path + " does not hold a unique id")
	}
	t, err := decodeUID(uid)
	if status.Of(err) == status.InvalidArgument {
		return t, errors.New(path + ": " + err.Error())
	}
	return t, err
}

// serve joins as the host, which owns the listeners and the file.
func (c Choice) serve(ctx context.Context, listeners []net.Listener, secret []byte, file *privateFile) (*Rendezvous, error) {
	h, err := newHost(listeners, secret, c.N, c.options.Version, c.options.Layout, file)
	if err != nil {
		for _, l := range listeners {
			_ = l.Close()
		}
		file.remove()
		return nil, err
	}
	if file != nil {
		h.wg.Add(1)
		go h.watch(file)
	}
	member := h.local(c.hello())
	f, err := member.await(ctx, opJoin, frameWelcome)
	file.remove()
	if err == nil {
		return newRendezvous(c, member, h, secret, f.body)
	}
	var e *status.Error
	if errors.As(err, &e) {
		if e.Code == retry {
			e.Code = status.Rendezvous
		}
		e.Detail += h.strangers()
	}
	member.close()
	h.close()
	return nil, err
}

// watch looks whether another job took the host's file, which would send latecomers there.
func (h *host) watch(file *privateFile) {
	defer h.wg.Done()
	for !h.pause(filePoll) {
		h.mu.Lock()
		done := h.up || h.failure != nil
		h.mu.Unlock()
		if done {
			return
		}
		if file.replaced() {
			h.fail(superseded(file.path))
			return
		}
	}
}

// reach joins as a member of a host elsewhere.
func (c Choice) reach(ctx context.Context, d dialer) (*Rendezvous, error) {
	member, session, secret, err := d.dial(ctx)
	if err != nil {
		return nil, err
	}
	return newRendezvous(c, member, nil, secret, session)
}

func (c Choice) hello() hello {
	return hello{layout: c.options.Layout, me: c.Me, n: c.N, version: c.options.Version, process: c.options.process}
}
