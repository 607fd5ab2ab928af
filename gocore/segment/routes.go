package segment

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// bySocket asks the owner's server for the descriptors.
func bySocket(ctx context.Context, c *Card, o OpenOptions) (fd, pidfd int, err error) {
	dialer := net.Dialer{Timeout: handshakeTime}
	raw, err := dialer.DialContext(ctx, "unix", "@"+c.Socket)
	if err != nil {
		return -1, -1, err
	}
	conn := raw.(*net.UnixConn)
	defer conn.Close()
	deadline := time.Now().Add(handshakeTime)
	if d, ok := ctx.Deadline(); ok && d.Before(deadline) {
		deadline = d
	}
	if err := errors.Join(conn.SetDeadline(deadline), checkPeerUser(conn)); err != nil {
		return -1, -1, err
	}
	want, err := clientHello(conn, o.Secret, c.Nonce)
	if err != nil {
		return -1, -1, err
	}
	return receiveFds(conn, want)
}

// receiveFds reads the server's answer. Descriptors of a server that fails its proof are closed unused.
func receiveFds(conn *net.UnixConn, want []byte) (fd, pidfd int, err error) {
	answer := make([]byte, sha256.Size)
	oob := make([]byte, unix.CmsgSpace(4*8))
	n, oobn, _, _, err := conn.ReadMsgUnix(answer, oob)
	if err != nil {
		return -1, -1, err
	}
	fds := parseFds(oob[:oobn])
	if !hmac.Equal(answer[:n], want) || len(fds) == 0 || len(fds) > 2 {
		for i := range fds {
			closeFd(&fds[i])
		}
		return -1, -1, errStranger
	}
	if len(fds) == 1 {
		return fds[0], -1, nil
	}
	return fds[0], fds[1], nil
}

func parseFds(oob []byte) []int {
	messages, err := unix.ParseSocketControlMessage(oob)
	if err != nil {
		return nil
	}
	var fds []int
	for i := range messages {
		if got, err := unix.ParseUnixRights(&messages[i]); err == nil {
			fds = append(fds, got...)
		}
	}
	for _, fd := range fds {
		unix.CloseOnExec(fd) // Go receives with MSG_CMSG_CLOEXEC where it can
	}
	return fds
}

// byProc opens the owner's descriptor through /proc, where both share a PID namespace and the system lets them look.
// The link's name is checked before it is opened, so a process that happens to have that number is not disturbed.
func byProc(_ context.Context, c *Card, o OpenOptions) (fd, pidfd int, err error) {
	link := fmt.Sprintf("/proc/%d/fd/%d", c.Pid, c.Fd)
	target, err := os.Readlink(link)
	if err != nil {
		return -1, -1, err
	}
	if !strings.Contains(target, memfdName(c.Nonce)) && !strings.Contains(target, fileName(int(c.Pid), c.Nonce)) {
		return -1, -1, fmt.Errorf("%s is %q: another process here has that number", link, target)
	}
	if fd, err = unix.Open(link, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOCTTY, 0); err != nil {
		return -1, -1, fmt.Errorf("%s: %w", link, err)
	}
	return fd, pidfdOf(c, o, link, target), nil
}

// pidfdOf opens the owner's pidfd by number and looks at the link again: a number that was reused meanwhile shows another target.
func pidfdOf(c *Card, o OpenOptions, link, target string) int {
	if o.Refuse.Pidfd {
		return -1
	}
	pidfd, err := unix.PidfdOpen(int(c.Pid), 0)
	if err != nil {
		return -1
	}
	if again, err := os.Readlink(link); err != nil || again != target {
		closeFd(&pidfd)
	}
	return pidfd
}

// byPath opens the named file in the directory both see.
func byPath(_ context.Context, c *Card, _ OpenOptions) (fd, pidfd int, err error) {
	fd, err = unix.Open(c.Path, unix.O_RDWR|unix.O_CLOEXEC|unix.O_NOFOLLOW|unix.O_NONBLOCK, 0)
	if err != nil {
		return -1, -1, fmt.Errorf("%s: %w", c.Path, err)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil || int(st.Uid) != os.Geteuid() || st.Mode != unix.S_IFREG|0o600 {
		closeFd(&fd)
		return -1, -1, fmt.Errorf("%s: not a private file of this user (owner %d, mode %o)", c.Path, st.Uid, st.Mode)
	}
	return fd, -1, nil
}
