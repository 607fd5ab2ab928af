package segment

import (
	"crypto/rand"
	"encoding/hex"
	"errors"
	"net"
	"os"
	"sync"
	"time"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// handshakeTime bounds one conversation on the sharing socket; a stranger or a stopped peer holds it no longer.
const handshakeTime = 5 * time.Second

// maxTalks bounds the conversations served at once, so strangers cannot use up the descriptors.
const maxTalks = 32

// server hands this PE's segment to processes that know the job's secret.
type server struct {
	listener *net.UnixListener
	segment  *Segment
	secret   []byte
	slots    chan struct{}
	talks    sync.WaitGroup // the accept loop and its conversations
	fds      []int          // what is handed out: the segment's, and the pidfd where the kernel has one
	pidfd    int            // of this process, -1 without; the server closes it
}

// Share starts serving the segment to PEs that prove the job's secret, and gives the card to publish. Where the socket is
// refused by the system, the card offers the remaining routes.
func (s *Segment) Share(secret []byte) (*Card, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if !s.own || s.goHeap || s.fd < 0 || s.server != nil {
		return nil, status.At(status.Internal, "share segment", s.Me, "only the owner shares, once, and never Go-heap memory")
	}
	c := &Card{
		PE: int32(s.Me), Pid: int32(os.Getpid()), Fd: int32(s.fd), Nonce: s.Nonce, Size: s.Geo.Size,
		ScratchOff: s.Geo.ScratchOff, ScratchLen: s.Geo.ScratchLen, HeapOff: s.Geo.HeapOff, HeapLen: s.Geo.HeapLen, Path: s.path,
	}
	if s.refuse.Socket {
		return c, nil
	}
	srv, name, err := s.listen(secret)
	if err != nil {
		return c, nil //nolint:nilerr // the routes left are in the card, and Open tells which were tried
	}
	s.server, c.Socket = srv, name
	srv.talks.Add(1)
	go srv.acceptLoop()
	return c, nil
}

// listen opens the socket and the descriptors it hands out; s.mu is held.
func (s *Segment) listen(secret []byte) (*server, string, error) {
	var random [16]byte
	if _, err := rand.Read(random[:]); err != nil {
		return nil, "", err
	}
	name := "goshmem-" + hex.EncodeToString(random[:])
	l, err := net.ListenUnix("unix", &net.UnixAddr{Name: "@" + name, Net: "unix"})
	if err != nil {
		return nil, "", err
	}
	srv := &server{listener: l, segment: s, secret: append([]byte(nil), secret...), slots: make(chan struct{}, maxTalks), pidfd: -1}
	// Not a duplicate: closing any descriptor of the file would drop this process' record lock on it.
	srv.fds = []int{s.fd}
	if !s.refuse.Pidfd {
		if srv.pidfd, err = unix.PidfdOpen(os.Getpid(), 0); err == nil {
			srv.fds = append(srv.fds, srv.pidfd)
		}
	}
	return srv, name, nil
}

func (srv *server) acceptLoop() {
	defer srv.talks.Done()
	for {
		conn, err := srv.listener.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of descriptors: wait for some to come back
			time.Sleep(10 * time.Millisecond)
			continue
		}
		srv.slots <- struct{}{}
		srv.talks.Add(1)
		go srv.serve(conn)
	}
}

// serve runs one conversation. A stranger learns nothing and gets no answer to a wrong proof.
func (srv *server) serve(conn *net.UnixConn) {
	defer srv.talks.Done()
	defer func() { <-srv.slots }()
	defer conn.Close()
	if conn.SetDeadline(time.Now().Add(handshakeTime)) != nil || checkPeerUser(conn) != nil {
		return
	}
	answer, err := serverProof(conn, srv.secret, srv.segment.Nonce)
	if err != nil {
		return
	}
	_, _, _ = conn.WriteMsgUnix(answer, unix.UnixRights(srv.fds...), nil) // the opener reports a broken conversation
}

// stop ends the accept loop and waits for conversations, which are bounded.
func (srv *server) stop() error {
	err := srv.listener.Close()
	srv.talks.Wait()
	closeFd(&srv.pidfd)
	return err
}

// Unshare ends sharing: call it when every peer has opened the segment or given up. The server stops and a named file
// loses its name, so nothing of it can be left behind. Mappings stay. Repeating it is fine.
func (s *Segment) Unshare() error {
	s.mu.Lock()
	srv := s.server
	s.server = nil
	s.removeNameLocked()
	s.mu.Unlock()
	if srv == nil {
		return nil
	}
	return srv.stop()
}
