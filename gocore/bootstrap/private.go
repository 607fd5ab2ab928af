package bootstrap

import (
	"encoding/hex"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"golang.org/x/sys/unix"
)

// privateFile is a file of this user that holds a job's secret while its PEs meet.
type privateFile struct {
	path string
	info os.FileInfo
	once sync.Once
}

// publish writes a private file in one step: readers see all of it or the one before. What was at the path is of an earlier run and
// is replaced.
func publish(path string, data []byte) (*privateFile, error) {
	temp := fmt.Sprintf("%s.%s", path, hex.EncodeToString(newSecret()[:8]))
	f, err := os.OpenFile(temp, os.O_CREATE|os.O_EXCL|os.O_WRONLY|unix.O_NOFOLLOW, 0o600)
	if err != nil {
		return nil, err
	}
	_, err = f.Write(data)
	info, err2 := f.Stat()
	err3 := f.Close()
	for _, e := range []error{err, err2, err3} {
		if e != nil {
			_ = os.Remove(temp)
			return nil, e
		}
	}
	if err := os.Rename(temp, path); err != nil {
		_ = os.Remove(temp)
		return nil, err
	}
	return &privateFile{path: path, info: info}, nil
}

// replaced says whether another file is at the path now.
func (p *privateFile) replaced() bool {
	info, err := os.Lstat(p.path)
	return err == nil && !os.SameFile(info, p.info)
}

// remove takes the file away, unless another job has replaced it. A nil file is no file.
func (p *privateFile) remove() {
	if p == nil {
		return
	}
	p.once.Do(func() {
		if info, err := os.Lstat(p.path); err == nil && os.SameFile(info, p.info) {
			_ = os.Remove(p.path)
		}
	})
}

// readPrivate reads a small file that must belong to this user alone.
func readPrivate(path string) ([]byte, error) {
	f, err := os.OpenFile(path, os.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	var st unix.Stat_t
	if err := unix.Fstat(int(f.Fd()), &st); err != nil {
		return nil, &os.PathError{Op: "fstat", Path: path, Err: err}
	}
	switch {
	case st.Mode&unix.S_IFMT != unix.S_IFREG:
		return nil, fmt.Errorf("%s is not a regular file", path)
	case int(st.Uid) != os.Geteuid():
		return nil, fmt.Errorf("%s belongs to user %d, not to us (%d)", path, st.Uid, os.Geteuid())
	case st.Mode&0o077 != 0:
		return nil, fmt.Errorf("%s is open to others (mode %#o); it holds the job's secret and must be 0600", path, st.Mode&0o777)
	}
	return io.ReadAll(io.LimitReader(f, 4096))
}

// secretPath is where PE 0 of a loopback endpoint leaves the secret: a directory of this user alone. Network namespaces have loopbacks
// of their own, so they get files of their own.
func secretPath(endpoint string) (string, error) {
	dir := os.Getenv("XDG_RUNTIME_DIR")
	if dir == "" || checkPrivateDir(dir) != nil {
		dir = os.TempDir()
	}
	dir = filepath.Join(dir, fmt.Sprintf("goshmem-%d", os.Geteuid()))
	if err := os.Mkdir(dir, 0o700); err != nil && !os.IsExist(err) {
		return "", err
	}
	if err := checkPrivateDir(dir); err != nil {
		return "", err
	}
	name, err := os.Readlink("/proc/self/ns/net")
	if err != nil {
		name = "net"
	}
	name = strings.Map(func(r rune) rune {
		if strings.ContainsRune("/:[]%", r) {
			return '_'
		}
		return r
	}, "endpoint-"+endpoint+"-"+name)
	return filepath.Join(dir, name+".secret"), nil
}

func checkPrivateDir(dir string) error {
	var st unix.Stat_t
	if err := unix.Lstat(dir, &st); err != nil {
		return &os.PathError{Op: "lstat", Path: dir, Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFDIR || int(st.Uid) != os.Geteuid() || st.Mode&0o077 != 0 {
		return fmt.Errorf("%s must be a directory of user %d with mode 0700 (mode %#o, user %d)", dir, os.Geteuid(), st.Mode&0o7777, st.Uid)
	}
	return nil
}
