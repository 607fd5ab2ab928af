package liveness

import (
	"bufio"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// The test binary is its own victim: with VICTIM set it sleeps, forks a child that outlives it, or holds a lock.
func TestMain(m *testing.M) {
	switch mode := os.Getenv("VICTIM"); mode {
	case "":
		os.Exit(m.Run())
	case "fork": // a child that outlives this process and keeps all its descriptors
		cmd := exec.Command("sleep", "60")
		cmd.Stdout = os.Stdout
		if err := cmd.Start(); err != nil {
			panic(err)
		}
		fmt.Println(cmd.Process.Pid)
	case "lock":
		f, err := os.OpenFile(os.Getenv("LOCKED"), os.O_RDWR, 0)
		if err != nil {
			panic(err)
		}
		if err := unix.FcntlFlock(f.Fd(), unix.F_SETLK, &unix.Flock_t{Type: unix.F_WRLCK, Len: 1}); err != nil {
			panic(err)
		}
		defer f.Close()
		fmt.Println(0)
	default:
		fmt.Println(0)
	}
	time.Sleep(time.Minute)
}

type deaths struct{ c chan string }

func (d deaths) on(pe int, err error) { d.c <- fmt.Sprintf("%d %v", pe, err) }

func newMonitor(t *testing.T) (*Monitor, deaths) {
	d := deaths{make(chan string, 16)}
	m := New(d.on)
	t.Cleanup(m.Close)
	return m, d
}

// victim starts a process and gives it with the number it printed.
func victim(t *testing.T, mode string, env ...string) (*exec.Cmd, int) {
	t.Helper()
	cmd := exec.Command(os.Args[0])
	cmd.Env = append(os.Environ(), append(env, "VICTIM="+mode)...)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	line, err := bufio.NewReader(out).ReadString('\n')
	require.NoError(t, err)
	n, err := strconv.Atoi(strings.TrimSpace(line))
	require.NoError(t, err)
	return cmd, n
}

func (d deaths) within(t *testing.T, limit time.Duration) string {
	t.Helper()
	select {
	case s := <-d.c:
		return s
	case <-time.After(limit):
		require.FailNow(t, "nobody died")
		return ""
	}
}

func (d deaths) none(t *testing.T, during time.Duration) {
	t.Helper()
	select {
	case s := <-d.c:
		require.FailNow(t, "a living process was declared dead", s)
	case <-time.After(during):
	}
}

func TestKillIsSeenAtOnceAlsoAsAZombie(t *testing.T) {
	m, d := newMonitor(t)
	cmd, _ := victim(t, "sleep")
	require.NoError(t, m.WatchPid(4, cmd.Process.Pid))
	d.none(t, 50*time.Millisecond)
	began := time.Now()
	require.NoError(t, cmd.Process.Kill()) // nobody waits for it: it stays a zombie
	got := d.within(t, 30*time.Second)
	t.Logf("seen after %v", time.Since(began))
	require.Contains(t, got, "4 peer died (PE 4)")
	require.ErrorIs(t, m.Dead(4), status.PeerDead)
	require.NoError(t, m.Dead(5))
	require.NoError(t, m.WatchPid(4, os.Getpid()), "a dead PE stays dead and is not watched again")
	require.Empty(t, m.How(4))
	d.none(t, 50*time.Millisecond)
}

func TestStoppedIsNotDead(t *testing.T) {
	m, d := newMonitor(t)
	cmd, _ := victim(t, "sleep")
	require.NoError(t, m.WatchPid(1, cmd.Process.Pid))
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	d.none(t, 300*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	d.none(t, 50*time.Millisecond)
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	require.NoError(t, cmd.Process.Kill(), "also a stopped one can be killed")
	require.Contains(t, d.within(t, 30*time.Second), "1 peer died")
}

func TestAForkedChildDoesNotKeepItsParentAlive(t *testing.T) {
	m, d := newMonitor(t)
	cmd, child := victim(t, "fork")
	defer syscall.Kill(child, syscall.SIGKILL)
	require.NoError(t, m.WatchPid(2, cmd.Process.Pid))
	require.NoError(t, cmd.Process.Kill())
	require.Contains(t, d.within(t, 30*time.Second), "2 peer died")
	require.NoError(t, syscall.Kill(child, 0), "the child lives")
}

func TestRecordLockWherePidfdsAreDenied(t *testing.T) {
	m, d := newMonitor(t)
	path := t.TempDir() + "/lock"
	require.NoError(t, os.WriteFile(path, nil, 0o600))
	cmd, _ := victim(t, "lock", "LOCKED="+path)
	f, err := os.OpenFile(path, os.O_RDWR, 0)
	require.NoError(t, err)
	alive := func() bool {
		l := unix.Flock_t{Type: unix.F_WRLCK, Len: 1}
		require.NoError(t, unix.FcntlFlock(f.Fd(), unix.F_GETLK, &l))
		return l.Type != unix.F_UNLCK
	}
	closed := make(chan struct{})
	require.NoError(t, m.WatchProbe(3, alive, func() { _ = f.Close(); close(closed) }))
	require.Equal(t, "record lock", m.How(3))
	require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
	d.none(t, 200*time.Millisecond)
	require.NoError(t, cmd.Process.Kill())
	require.Contains(t, d.within(t, 30*time.Second), "3 peer died")
	<-closed
}

func TestReportsForgettingAndClosing(t *testing.T) {
	d := deaths{make(chan string, 16)}
	m := New(d.on)
	lost := errors.New("connection to host b was reset")
	m.ReportLost(7, lost)
	m.ReportLost(7, errors.New("again"))
	require.Equal(t, "7 "+lost.Error(), d.within(t, 30*time.Second))
	require.Equal(t, lost, m.Dead(7))
	before := runtime.NumGoroutine()
	var cmds []*exec.Cmd
	for pe := range 5 {
		cmd, _ := victim(t, "sleep")
		cmds = append(cmds, cmd)
		require.NoError(t, m.WatchPid(pe, cmd.Process.Pid))
		require.Equal(t, "pidfd", m.How(pe))
	}
	require.ErrorContains(t, m.WatchPid(0, cmds[0].Process.Pid), "watched already")
	m.Forget(0)
	require.NoError(t, cmds[0].Process.Kill())
	d.none(t, 50*time.Millisecond)
	m.Close()
	m.Close()
	for _, cmd := range cmds[1:] {
		require.NoError(t, cmd.Process.Kill())
	}
	d.none(t, 50*time.Millisecond)
	require.NoError(t, m.WatchPid(9, os.Getpid()), "watching after close is nothing")
	done := false
	require.NoError(t, m.WatchProbe(8, func() bool { return true }, func() { done = true }))
	require.True(t, done, "a refused probe is closed")
	require.Eventually(t, func() bool { return runtime.NumGoroutine() <= before+1 }, 30*time.Second, time.Millisecond)
}
