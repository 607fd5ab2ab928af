package segment

import (
	"context"
	"errors"
	"fmt"
	"os"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// OpenOptions say how to prove oneself and which routes to leave out.
type OpenOptions struct {
	Secret []byte
	Refuse Refuse
}

// route is one way to get a descriptor of a peer's segment. The second descriptor is the owner's pidfd, -1 when there is none.
type route struct {
	name    string
	refused bool
	get     func(ctx context.Context, c *Card, o OpenOptions) (fd, pidfd int, err error)
}

// Open maps the segment a card speaks of. Success proves that owner and caller share a host; `how` names the route. Failure is
// PeerUnreachable with every route tried and why it failed: reach the peer by a network transport then. ctx bounds it.
func Open(ctx context.Context, c *Card, o OpenOptions) (s *Segment, how string, err error) {
	var tried []error
	for _, r := range []route{
		{"socket", o.Refuse.Socket || c.Socket == "", bySocket},
		{"proc", o.Refuse.Proc, byProc},
		{"file", c.Path == "", byPath},
	} {
		if r.refused {
			tried = append(tried, fmt.Errorf("%s: not offered or refused", r.name))
			continue
		}
		s, err := openBy(ctx, r, c, o)
		if err == nil {
			return s, s.how, nil
		}
		if status.Of(err) == status.VersionSkew {
			return nil, "", err
		}
		tried = append(tried, fmt.Errorf("%s: %w", r.name, err))
	}
	e := status.At(status.PeerUnreachable, "map segment", int(c.PE), "its memory cannot be mapped here (another host, or isolated from this process; set SHMEM_DIR to a directory both see)")
	e.Err = errors.Join(tried...)
	return nil, "", e
}

func openBy(ctx context.Context, r route, c *Card, o OpenOptions) (*Segment, error) {
	fd, pidfd, err := r.get(ctx, c, o)
	if err != nil {
		return nil, err
	}
	s, err := mapPeer(fd, c)
	if err != nil {
		closeFd(&fd)
		closeFd(&pidfd)
		return nil, err
	}
	s.pidfd = pidfd
	if pidfd < 0 {
		s.lockFd = fd // kept: the owner's record lock is the only sign of life
	} else {
		closeFd(&fd)
	}
	s.how = "shared memory by " + r.name
	return s, nil
}

// mapPeer checks the descriptor before it is mapped, and the header after.
func mapPeer(fd int, c *Card) (*Segment, error) {
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return nil, err
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG || uint64(st.Size) != c.Size || c.Size < uint64(os.Getpagesize()) {
		return nil, fmt.Errorf("not the segment: mode %o and %d bytes, expected a file of %d", st.Mode, st.Size, c.Size)
	}
	if c.Path == "" {
		seals, err := unix.FcntlInt(uintptr(fd), unix.F_GET_SEALS, 0)
		if err != nil || seals&unix.F_SEAL_SHRINK == 0 {
			return nil, fmt.Errorf("not sealed against shrinking (seals %#x, %v)", seals, err)
		}
	}
	mem, err := mapShared(fd, c.Size)
	if err != nil {
		return nil, mapError(err, int(c.PE), c.Size)
	}
	if err := checkHeader(mem, c); err != nil {
		return nil, errors.Join(err, unmap(mem))
	}
	s := newSegment(c.geometry(uint64(os.Getpagesize())), int(c.PE), headerN(mem))
	s.Nonce, s.mem = c.Nonce, mem
	return s, nil
}

// TakePidfd gives the owner's pidfd to the caller, who closes it; -1 when the owner could not send one, or it was taken.
func (s *Segment) TakePidfd() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.pidfd
	s.pidfd = -1
	return fd
}

// TakeProbe gives a probe of the owner's record lock, for peers without a pidfd: alive says whether the owner lives, close ends it.
// Both are nil when a pidfd came or the probe was taken.
func (s *Segment) TakeProbe() (alive func() bool, close func()) {
	s.mu.Lock()
	defer s.mu.Unlock()
	fd := s.lockFd
	s.lockFd = -1
	if fd < 0 {
		return nil, nil
	}
	return func() bool { return ownerAlive(fd) }, func() { closeFd(&fd) }
}
