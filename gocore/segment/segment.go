package segment

import (
	"crypto/rand"
	"os"
	"sync"

	"goshmem/gocore/memory"
	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// Options say what to create. The zero value of each optional field is the default.
type Options struct {
	Me, N   int
	Scratch uint64 // bytes of [scratch], rounded up to pages
	Heap    uint64 // bytes of [heap], rounded up to pages
	// Dir is a directory that PEs share (SHMEM_DIR). When set, the segment is a named file there instead of a memfd.
	Dir string
	// Refuse switches routes off, for tests and for SHMEM_REFUSE.
	Refuse Refuse
	// Budget is where free memory and limits are read from; nil is this machine.
	Budget Budget
}

// Refuse switches single mechanisms off so that their fallbacks can be tested.
type Refuse struct {
	Memfd, Socket, Proc, Pidfd bool
}

// Segment is one PE's memory as mapped in this process: the owner's, or a peer's.
//
// States: mapped -> (Close by the opener) -> unmapped when the last reference is released. Closed stays closed.
type Segment struct {
	Geo   Geometry
	Me    int // the owner
	N     int
	Nonce [NonceSize]byte

	own    bool
	goHeap bool
	how    string // what it is, for info()
	path   string // named file, "" otherwise
	budget Budget
	refuse Refuse

	mu        sync.Mutex // guards what follows
	mem       []byte     // nil once unmapped
	fd        int        // the owner's descriptor, -1 when closed; peers close theirs after mapping
	pidfd     int        // peer: the owner's pidfd until taken, -1 otherwise
	lockFd    int        // peer: descriptor kept to probe the owner's record lock where it has no pidfd, -1 otherwise
	refs      int
	closed    bool
	committed pageSet
	look      allowance
	server    *server
}

var _ memory.Region = (*Segment)(nil)

// Create makes this PE's own segment: a sealed memfd, or a file in Dir. Nothing is committed but the header's page.
func Create(o Options) (*Segment, error) {
	g, err := Plan(uint64(os.Getpagesize()), o.Scratch, o.Heap)
	if err != nil {
		return nil, err
	}
	s := newSegment(g, o.Me, o.N)
	s.own, s.refuse, s.budget = true, o.Refuse, o.Budget
	if s.budget == nil {
		s.budget = NewMachine("")
	}
	if _, err := rand.Read(s.Nonce[:]); err != nil {
		return nil, status.Wrap(status.System, "create segment", err, "no random numbers")
	}
	if err := s.createBacking(o); err != nil {
		return nil, err
	}
	if err := s.mapOwn(); err != nil {
		s.discard()
		return nil, err
	}
	return s, nil
}

func newSegment(g Geometry, me, n int) *Segment {
	return &Segment{Geo: g, Me: me, N: n, fd: -1, pidfd: -1, lockFd: -1, refs: 1, committed: newPageSet()}
}

// mapOwn maps the fresh segment and writes its header.
func (s *Segment) mapOwn() error {
	mem, err := mapShared(s.fd, s.Geo.Size)
	if err != nil {
		return mapError(err, s.Me, s.Geo.Size)
	}
	s.mem = mem
	if err := s.Commit(0, s.Geo.ScratchOff); err != nil {
		return err
	}
	writeHeader(s.mem, s.Geo, s.Me, s.N, s.Nonce)
	return nil
}

func mapError(err error, pe int, size uint64) error {
	e := status.At(status.NoMemory, "map segment", pe, "%d bytes of addresses are refused; lower SHMEM_SYMMETRIC_SIZE, or raise the address-space limit (ulimit -v)", size)
	e.Err = err
	return e
}

// discard undoes a failed Create.
func (s *Segment) discard() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.mem != nil {
		_ = unmap(s.mem) // the failure that brought us here is the one to report
		s.mem = nil
	}
	closeFd(&s.fd)
	s.removeNameLocked()
}

func closeFd(fd *int) {
	if *fd >= 0 {
		_ = unix.Close(*fd) // a descriptor is gone after close whatever it returns
		*fd = -1
	}
}

// Kind is memory.Host.
func (s *Segment) Kind() memory.Kind { return memory.Host }

// Size is the length of the whole segment.
func (s *Segment) Size() uint64 { return s.Geo.Size }

// Page is the granularity of Commit and Decommit.
func (s *Segment) Page() uint64 { return s.Geo.Page }

// How says what the segment is made of and by which route it was mapped.
func (s *Segment) How() string { return s.how }

// Own reports whether this process created it.
func (s *Segment) Own() bool { return s.own }

// Bytes is the whole mapped segment; nil once unmapped.
func (s *Segment) Bytes() []byte {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.mem
}
