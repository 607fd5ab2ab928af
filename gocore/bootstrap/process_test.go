package bootstrap

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/status"
)

// TestMain turns this binary into a PE when a test starts it as one.
func TestMain(m *testing.M) {
	if os.Getenv("BOOTSTRAP_TEST_CHILD") == "" {
		os.Exit(m.Run())
	}
	if err := childPE(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// childPE joins and exchanges its process id again and again until it is killed.
func childPE() error {
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	defer cancel()
	choice, err := Resolve(Options{Me: -1, N: -1})
	if err != nil {
		return err
	}
	r, err := Join(ctx, choice)
	if err != nil {
		return err
	}
	defer r.Close() // which delivers a host's last words
	for {
		if _, err := r.Allgather(ctx, []byte(fmt.Sprint(os.Getpid()))); err != nil {
			return nil // the test ended it
		}
	}
}

// child starts a PE as a process of its own.
func child(t *testing.T, path string, me, n int) *exec.Cmd {
	c := exec.Command(os.Args[0], "-test.run=XXX")
	c.Env = append(os.Environ(), "BOOTSTRAP_TEST_CHILD=1", fmt.Sprint("SHMEM_RANK=", me), fmt.Sprint("SHMEM_SIZE=", n),
		"SHMEM_RENDEZVOUS="+path, "SHMEM_INTERFACE=127.0.0.1")
	require.NoError(t, c.Start())
	t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
	return c
}

func TestKilledAndStoppedProcesses(t *testing.T) {
	for _, victim := range []int{0, 2} { // the host, and a member
		t.Run(fmt.Sprint(victim), func(t *testing.T) {
			noLeaks(t)
			path := t.TempDir() + "/meet"
			other := 2 - victim
			v := child(t, path, victim, 3)
			o := child(t, path, other, 3)
			me := launch(t, []int{1}, time.Minute, func(int) Options { return Options{Me: 1, N: 3, Endpoint: path, LookupEnv: noEnv} })[0]
			require.NoError(t, me.err)
			defer me.r.Close()
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			got, err := me.r.Allgather(ctx, []byte("test"))
			require.NoError(t, err)
			require.Equal(t, fmt.Sprint(v.Process.Pid), string(got[victim]))
			require.Equal(t, fmt.Sprint(o.Process.Pid), string(got[other]))

			require.NoError(t, v.Process.Signal(syscall.SIGSTOP)) // slow is not dead
			time.AfterFunc(1200*time.Millisecond, func() { _ = v.Process.Signal(syscall.SIGCONT) })
			start := time.Now()
			for time.Since(start) < 1200*time.Millisecond {
				_, err = me.r.Allgather(ctx, nil)
				require.NoError(t, err)
			}

			require.NoError(t, v.Process.Kill())
			killed := time.Now()
			for err == nil {
				_, err = me.r.Allgather(ctx, nil)
			}
			require.Less(t, time.Since(killed), 30*time.Second)
			require.ErrorIs(t, err, status.PeerDead)
			require.ErrorContains(t, err, fmt.Sprintf("PE %d", victim))
		})
	}
}

func TestMemberKilledWhileOthersStillJoin(t *testing.T) {
	noLeaks(t)
	path := t.TempDir() + "/meet"
	done := make(chan outcome, 1)
	go func() {
		done <- launch(t, []int{0}, time.Minute, func(int) Options {
			return Options{Me: 0, N: 3, Endpoint: path, Interface: "127.0.0.1", LookupEnv: noEnv}
		})[0]
	}()
	v := child(t, path, 2, 3)
	require.Eventually(t, joined, time.Minute, time.Millisecond)
	require.NoError(t, v.Process.Kill())
	killed := time.Now()
	o := <-done
	require.Less(t, time.Since(killed), 30*time.Second)
	require.ErrorIs(t, o.err, status.PeerDead)
	require.ErrorContains(t, o.err, "PE 2")
	require.ErrorContains(t, o.err, fmt.Sprintf("pid %d", v.Process.Pid))
	require.NoFileExists(t, path)
}

// joined says whether a host of this process waits for what a member says after its hello.
func joined() bool {
	buf := make([]byte, 1<<20)
	for _, stack := range strings.Split(string(buf[:runtime.Stack(buf, true)]), "\n\n") {
		if strings.Contains(stack, ".(*host).serve(") && strings.Contains(stack, ".readFrame(") && !strings.Contains(stack, ".(*host).greet(") {
			return true
		}
	}
	return false
}
