package segment

import (
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// ownerLockAt is the byte whose record lock the owner holds while it lives; far beyond any segment's end.
const ownerLockAt = int64(1) << 61

// createBacking makes the descriptor behind the segment: a memfd, else a named file. It sizes, seals and locks it.
func (s *Segment) createBacking(o Options) error {
	var err error
	switch {
	case o.Dir != "":
		err = s.createFile(o.Dir)
	case o.Refuse.Memfd:
		err = s.createFileInstead(status.New(status.System, "create segment", "memfd refused by SHMEM_REFUSE"))
	default:
		if err = s.createMemfd(); errors.Is(err, unix.ENOSYS) || errors.Is(err, unix.EPERM) || errors.Is(err, unix.EACCES) {
			err = s.createFileInstead(err)
		}
	}
	if err != nil {
		return err
	}
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: ownerLockAt, Len: 1}
	if err := unix.FcntlFlock(uintptr(s.fd), unix.F_SETLK, &lock); err != nil && s.path != "" {
		s.discard()
		return status.Wrap(status.System, "create segment", err, "no record lock on %s; point SHMEM_DIR at a local file system", s.path)
	}
	return nil
}

// memfdName is the visible name (/proc/<pid>/fd, maps) of the memfd with this nonce; the proc route checks it before opening.
func memfdName(nonce [NonceSize]byte) string { return "goshmem-" + hex.EncodeToString(nonce[:4]) }

func (s *Segment) createMemfd() error {
	fd, err := unix.MemfdCreate(memfdName(s.Nonce), unix.MFD_CLOEXEC|unix.MFD_ALLOW_SEALING)
	if err != nil {
		return status.Wrap(status.System, "create segment", err, "memfd_create")
	}
	s.fd, s.how = fd, "memfd"
	if err := unix.Fchmod(fd, 0o600); err != nil {
		s.discard()
		return status.Wrap(status.System, "create segment", err, "mode 0600 of the memfd")
	}
	if err := s.resize(); err != nil {
		return err
	}
	seals := unix.F_SEAL_SHRINK | unix.F_SEAL_GROW | unix.F_SEAL_SEAL
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_ADD_SEALS, seals); err != nil {
		s.discard()
		return status.Wrap(status.System, "create segment", err, "sealing the memfd against shrinking")
	}
	return nil
}

func (s *Segment) resize() error {
	if err := unix.Ftruncate(s.fd, int64(s.Geo.Size)); err != nil {
		s.discard()
		return status.Wrap(status.System, "create segment", err, "%d bytes; lower SHMEM_SYMMETRIC_SIZE, or raise the file-size limit (ulimit -f)", s.Geo.Size)
	}
	return nil
}

// createFileInstead falls back to a file in the machine's shared-memory or temporary directory, and says both reasons when that fails too.
func (s *Segment) createFileInstead(why error) error {
	tried := []error{why}
	for _, dir := range []string{"/dev/shm", os.TempDir()} {
		err := s.createFile(dir)
		if err == nil {
			return nil
		}
		tried = append(tried, err)
	}
	return status.Wrap(status.System, "create segment", errors.Join(tried...), "neither a memfd nor a file could be made; set SHMEM_DIR to a writable directory on tmpfs")
}

// createFile makes a named file with an unguessable name, readable by this user alone.
func (s *Segment) createFile(dir string) error {
	sweep(dir)
	path := filepath.Join(dir, fileName(os.Getpid(), s.Nonce))
	fd, err := unix.Open(path, unix.O_RDWR|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return status.Wrap(status.System, "create segment", err, "file %s; set SHMEM_DIR to a writable directory on tmpfs", path)
	}
	s.fd, s.path, s.how = fd, path, "file in "+dir
	return s.resize()
}

const filePrefix, fileSuffix = "goshmem-", ".segment"

// fileName is unguessable, and names the owner so that a process leaves its own files alone when it sweeps.
func fileName(pid int, nonce [NonceSize]byte) string {
	return fmt.Sprintf("%s%d-%x%s", filePrefix, pid, nonce, fileSuffix)
}

// removeNameLocked unlinks a named file; its memory lives on with its mappings. s.mu is held, or the segment is not shared yet.
func (s *Segment) removeNameLocked() {
	if s.own && s.path != "" {
		_ = unix.Unlink(s.path) // already gone is as good
		s.path = ""
	}
}
