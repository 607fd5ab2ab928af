package segment

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// sweepAge is how old a file must be before it can be leftover: between creating a file and locking it, its owner is
// alive without a lock.
const sweepAge = time.Minute

// makerOf is the process number in a name that fileName gives, false for any other name. By hand: the regular expressions of the
// standard library would be some 300 KiB of the library for this one line.
func makerOf(name string) (pid string, ours bool) {
	rest, begins := strings.CutPrefix(name, filePrefix)
	rest, ends := strings.CutSuffix(rest, fileSuffix)
	pid, nonce, parts := strings.Cut(rest, "-")
	ours = begins && ends && parts && pid != "" && len(nonce) == 32 && strings.Trim(pid, "0123456789") == "" && strings.Trim(nonce, "0123456789abcdef") == ""
	return pid, ours
}

// sweep removes segment files in dir whose owner is surely dead. Surely ours: the name, a regular file, this user, mode 0600.
// Surely dead: old enough, and nobody holds the owner's record lock, which the kernel drops with the process and which is
// seen across PID and mount namespaces. Whatever is in doubt stays.
func sweep(dir string) { sweepOlder(dir, sweepAge) }

func sweepOlder(dir string, age time.Duration) {
	names, err := filepath.Glob(filepath.Join(dir, filePrefix+"*"+fileSuffix))
	if err != nil {
		return
	}
	for _, name := range names {
		// A process leaves files with its own number alone: it cannot see its own record lock, and closing another descriptor of the
		// file would drop that lock.
		if pid, ours := makerOf(filepath.Base(name)); ours && pid != strconv.Itoa(os.Getpid()) {
			sweepOne(name, age)
		}
	}
}

// sweepOne removes one file if its owner is surely dead and it is at least this old.
func sweepOne(name string, age time.Duration) {
	fd, err := unix.Open(name, unix.O_RDWR|unix.O_NOFOLLOW|unix.O_CLOEXEC|unix.O_NONBLOCK, 0)
	if err != nil {
		return
	}
	defer unix.Close(fd)
	var st unix.Stat_t
	if unix.Fstat(fd, &st) != nil || st.Mode != unix.S_IFREG|0o600 || int(st.Uid) != os.Geteuid() {
		return
	}
	if time.Since(time.Unix(st.Ctim.Unix())) < age || ownerAlive(fd) {
		return
	}
	_ = os.Remove(name) // another PE may sweep at the same time
}

// ownerAlive probes the owner's record lock through a descriptor of the segment. In doubt the owner lives.
func ownerAlive(fd int) bool {
	lock := unix.Flock_t{Type: unix.F_WRLCK, Whence: unix.SEEK_SET, Start: ownerLockAt, Len: 1}
	if err := unix.FcntlFlock(uintptr(fd), unix.F_GETLK, &lock); err != nil {
		return true
	}
	return lock.Type != unix.F_UNLCK
}
