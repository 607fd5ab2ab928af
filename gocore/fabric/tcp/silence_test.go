package tcp

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goshmem/gocore/status"
)

// TestHostThatVanishes runs in a network namespace of its own, whose loopback goes down while data are under way.
func TestHostThatVanishes(t *testing.T) {
	c := exec.Command(os.Args[0], "-test.run=XXX")
	c.Env = append(os.Environ(), "TCP_TEST_CHILD=silence")
	c.SysProcAttr = &syscall.SysProcAttr{Cloneflags: syscall.CLONE_NEWNET}
	if os.Geteuid() != 0 {
		c.SysProcAttr.Cloneflags |= syscall.CLONE_NEWUSER
		c.SysProcAttr.UidMappings = []syscall.SysProcIDMap{{ContainerID: 0, HostID: os.Geteuid(), Size: 1}}
	}
	out, err := c.CombinedOutput()
	if errors.Is(err, syscall.EPERM) || errors.Is(err, syscall.ENOSPC) || errors.Is(err, syscall.EINVAL) {
		t.Skipf("no network namespaces here: %v", err)
	}
	require.NoError(t, err, "%s", out)
}

func childSilence() error {
	if err := loopback(true); err != nil {
		return err
	}
	lost := make(chan error, 4)
	var trs []*Transport
	peers := map[int][]string{}
	for pe := range 2 {
		tr, err := New(Config{Me: pe, N: 2, Secret: testSecret, Memory: newHeap(pe, 1<<20), Interface: "127.0.0.1", Lost: func(_ int, err error) { lost <- err }})
		if err != nil {
			return err
		}
		tr.tries = 3
		trs, peers[pe] = append(trs, tr), tr.Addresses()
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	if err := trs[0].Connect(ctx, peers); err != nil {
		return err
	}
	if err := loopback(false); err != nil {
		return err
	}
	start := time.Now()
	err := trs[0].Get(ctx, make([]byte, 8), at(1, 0))
	if status.Of(err) != status.PeerUnreachable || time.Since(start) > time.Minute {
		return fmt.Errorf("after %v: %v", time.Since(start), err)
	}
	if told := <-lost; status.Of(told) != status.PeerUnreachable {
		return fmt.Errorf("told %v", told)
	}
	return nil
}

func loopback(up bool) error {
	fd, err := unix.Socket(unix.AF_INET, unix.SOCK_DGRAM, 0)
	if err != nil {
		return err
	}
	defer unix.Close(fd)
	req, err := unix.NewIfreq("lo")
	if err != nil {
		return err
	}
	if up {
		req.SetUint16(unix.IFF_UP)
	}
	return unix.IoctlIfreq(fd, unix.SIOCSIFFLAGS, req)
}
