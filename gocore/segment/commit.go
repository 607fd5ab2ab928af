package segment

import (
	"errors"
	"fmt"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// commitPiece is how much is committed between two looks at free memory: other PEs of this host commit at the same time.
const commitPiece = 64 << 20

// Commit makes the pages that hold [off, off+n) really there. Only the owner can. On failure nothing has changed
// and the error gives the bytes needed, what is free, and the limit that was hit. Committing what is committed costs nothing.
func (s *Segment) Commit(off, n uint64) error {
	if err := s.checkRange("commit memory", off, n); err != nil || n == 0 {
		return err
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.goHeap {
		return nil
	}
	if !s.own || s.fd < 0 {
		return status.At(status.Finalized, "commit memory", s.Me, "only the segment's owner commits, and not after it has closed")
	}
	lo, hi := off/s.Geo.Page, (off+n+s.Geo.Page-1)/s.Geo.Page
	need := s.committed.missing(lo, hi) * s.Geo.Page
	if need == 0 {
		return nil
	}
	var done [][2]uint64
	err := s.committed.gaps(lo, hi, func(a, b uint64) error { return s.commitRun(a, b, &need, &done) })
	for _, r := range done {
		if err != nil {
			_ = s.punch(r[0]*s.Geo.Page, (r[1]-r[0])*s.Geo.Page) // pages were fresh: giving them back restores what was
		} else {
			s.committed.add(r[0], r[1])
		}
	}
	return err
}

// commitRun commits pages [lo, hi) piece by piece and lists the pieces it has begun. need is what the whole call still wants.
func (s *Segment) commitRun(lo, hi uint64, need *uint64, done *[][2]uint64) error {
	for lo < hi {
		end := min(hi, lo+max(1, commitPiece/s.Geo.Page))
		if err := s.afford(*need); err != nil {
			return err
		}
		*done = append(*done, [2]uint64{lo, end})
		if err := s.allocate(lo*s.Geo.Page, (end-lo)*s.Geo.Page); err != nil {
			return err
		}
		*need -= (end - lo) * s.Geo.Page
		lo = end
	}
	return nil
}

// allocate reserves the pages in the file and faults them in.
func (s *Segment) allocate(off, n uint64) error {
	err := retry(func() error { return unix.Fallocate(s.fd, 0, int64(off), int64(n)) })
	switch {
	case errors.Is(err, unix.EOPNOTSUPP):
		return status.At(status.System, "commit memory", s.Me, "the file system of %s cannot reserve space (fallocate), so running out would kill the process; point SHMEM_DIR at a tmpfs", s.how)
	case err != nil:
		e := status.At(status.NoMemory, "commit memory", s.Me, "%s cannot give %s: %s", s.how, bytesText(n), describeBudget(s.budget))
		e.Err = err
		return e
	}
	return populate(s.mem[off : off+n : off+n])
}

// populate faults the pages in: one system call where the kernel has it (Linux 5.14), else one read per page. The pages exist
// already, so reading maps them; a store could hit data that a peer is putting.
func populate(b []byte) error {
	err := retry(func() error { return unix.Madvise(b, unix.MADV_POPULATE_WRITE) })
	if err == nil || !errors.Is(err, unix.EINVAL) {
		if err != nil {
			return status.Wrap(status.NoMemory, "commit memory", err, "faulting in %s", bytesText(uint64(len(b))))
		}
		return nil
	}
	touch(b)
	return nil
}

// retry repeats f while a signal interrupts it: the Go runtime and Python both send some.
func retry(f func() error) error {
	for {
		if err := f(); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// Decommit gives back the pages that lie wholly inside [off, off+n), on every PE's mapping; they read as zero
// afterwards and must be committed before they are used again.
func (s *Segment) Decommit(off, n uint64) error {
	if err := s.checkRange("decommit memory", off, n); err != nil {
		return err
	}
	lo, hi := (off+s.Geo.Page-1)/s.Geo.Page, (off+n)/s.Geo.Page
	if hi <= lo {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.goHeap {
		clear(s.mem[lo*s.Geo.Page : hi*s.Geo.Page])
		return nil
	}
	if !s.own || s.fd < 0 {
		return status.At(status.Finalized, "decommit memory", s.Me, "only the segment's owner decommits, and not after it has closed")
	}
	if err := s.punch(lo*s.Geo.Page, (hi-lo)*s.Geo.Page); err != nil {
		return status.Wrap(status.System, "decommit memory", err, "%s at offset %d", bytesText(n), off)
	}
	s.committed.remove(lo, hi)
	return nil
}

func (s *Segment) punch(off, n uint64) error {
	return retry(func() error {
		return unix.Fallocate(s.fd, unix.FALLOC_FL_PUNCH_HOLE|unix.FALLOC_FL_KEEP_SIZE, int64(off), int64(n))
	})
}

func (s *Segment) checkRange(op string, off, n uint64) error {
	if off > s.Geo.Size || n > s.Geo.Size-off {
		return status.At(status.Internal, op, s.Me, "[%d, +%d) is not inside the segment of %d bytes", off, n, s.Geo.Size)
	}
	return nil
}

// bytesText words a size: exact, and rounded for people when large.
func bytesText(n uint64) string {
	units := []string{"KiB", "MiB", "GiB", "TiB"}
	if n < 1024 {
		return fmt.Sprintf("%d bytes", n)
	}
	v, u := float64(n)/1024, 0
	for v >= 1024 && u < len(units)-1 {
		v, u = v/1024, u+1
	}
	return fmt.Sprintf("%d bytes (%.1f %s)", n, v, units[u])
}
