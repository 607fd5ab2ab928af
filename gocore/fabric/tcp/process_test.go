package tcp

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

const processHeap = 32 << 20

// TestMain turns this binary into a PE when a test starts it as one.
func TestMain(m *testing.M) {
	main := map[string]func() error{"pe": childPE, "silence": childSilence}[os.Getenv("TCP_TEST_CHILD")]
	if main == nil {
		os.Exit(m.Run())
	}
	if err := main(); err != nil {
		fmt.Fprintln(os.Stderr, "child:", err)
		os.Exit(1)
	}
}

// childPE serves until it is killed, and says in PE 0's word 8*me that it is up.
func childPE() error {
	ctx, cancel := context.WithTimeout(context.Background(), 60*time.Second)
	defer cancel()
	tr, r, _, err := comeUp(ctx, bootstrap.Options{Me: -1, N: -1}, nil)
	if err != nil {
		return err
	}
	if _, err := tr.Atomic(ctx, at(0, uint64(8*r.Me)), fabric.Atomic{Op: fabric.Set, Width: 8, Operand: uint64(os.Getpid())}); err != nil {
		return err
	}
	<-ctx.Done()
	return nil
}

func comeUp(ctx context.Context, o bootstrap.Options, lost func(int, error)) (*Transport, *bootstrap.Rendezvous, *heap, error) {
	choice, err := bootstrap.Resolve(o)
	if err != nil {
		return nil, nil, nil, err
	}
	r, err := bootstrap.Join(ctx, choice)
	if err != nil {
		return nil, nil, nil, err
	}
	defer r.Close()
	mem := newHeap(r.Me, processHeap)
	tr, err := New(Config{Me: r.Me, N: r.N, Secret: r.Secret(), Memory: mem, Interface: "127.0.0.1", Lost: lost})
	if err != nil {
		return nil, nil, nil, err
	}
	all, err := r.Allgather(ctx, []byte(strings.Join(tr.Addresses(), " ")))
	if err != nil {
		return nil, nil, nil, err
	}
	peers := map[int][]string{}
	for pe, a := range all {
		peers[pe] = strings.Fields(string(a))
	}
	if err := tr.Connect(ctx, peers); err != nil {
		return nil, nil, nil, err
	}
	return tr, r, mem, r.Barrier(ctx)
}

// startProcesses makes this process PE 0 of n, the others children.
func startProcesses(t *testing.T, n int, lost func(int, error)) (*Transport, *heap, []*exec.Cmd) {
	o, err := bootstrap.NewOffer("127.0.0.1")
	require.NoError(t, err)
	children := make([]*exec.Cmd, n)
	for pe := 1; pe < n; pe++ {
		c := exec.Command(os.Args[0], "-test.run=XXX")
		c.Env = append(os.Environ(), "TCP_TEST_CHILD=pe", fmt.Sprint("SHMEM_RANK=", pe), fmt.Sprint("SHMEM_SIZE=", n), "SHMEM_UNIQUE_ID="+o.Hex())
		c.Stderr = os.Stderr
		require.NoError(t, c.Start())
		t.Cleanup(func() { _ = c.Process.Kill(); _ = c.Wait() })
		children[pe] = c
	}
	tr, _, mem, err := comeUp(within(t, time.Minute), bootstrap.Options{Me: 0, N: n, UID: o.UID, FindOffer: func([]byte) *bootstrap.Offer { return o }}, lost)
	require.NoError(t, err)
	t.Cleanup(func() { _ = tr.Close() })
	for pe := 1; pe < n; pe++ {
		require.Eventually(t, func() bool { return mem.load(uint64(8*pe)) == uint64(children[pe].Process.Pid) }, time.Minute, time.Millisecond)
	}
	return tr, mem, children
}

func TestPeerKilledDuringATransfer(t *testing.T) {
	for name, transfer := range map[string]func(ctx context.Context, tr *Transport) error{
		"put": func(ctx context.Context, tr *Transport) error { return tr.Put(ctx, at(1, 0), random(processHeap)) },
		"get": func(ctx context.Context, tr *Transport) error {
			return tr.Get(ctx, make([]byte, processHeap), at(1, 0))
		},
		"atomic": func(ctx context.Context, tr *Transport) error {
			_, err := tr.Atomic(ctx, at(1, 0), fabric.Atomic{Op: fabric.Add, Width: 8})
			return err
		},
	} {
		t.Run(name, func(t *testing.T) {
			lost := make(chan int, 8)
			tr, _, children := startProcesses(t, 3, func(pe int, _ error) { lost <- pe })
			ctx := within(t, time.Minute)
			ended := make(chan error, 1)
			go func() {
				for {
					if err := transfer(ctx, tr); err != nil {
						ended <- err
						return
					}
				}
			}()
			time.Sleep(50 * time.Millisecond) // into the transfers
			killed := time.Now()
			require.NoError(t, children[1].Process.Kill())
			err := <-ended
			require.Less(t, time.Since(killed), 30*time.Second)
			require.Contains(t, []status.Code{status.PeerDead, status.PeerUnreachable}, status.Of(err), "%v", err)
			require.ErrorContains(t, err, "PE 1")
			require.Equal(t, 1, <-lost)
			require.NoError(t, tr.Put(ctx, at(2, 64), random(1<<20)), "the others go on")
			_ = tr.Quiet(ctx) // may tell of what the dead did not confirm
			require.NoError(t, tr.Quiet(ctx))
			require.Empty(t, lost)
		})
	}
}

func TestStoppedPeerIsNotDead(t *testing.T) {
	lost := make(chan int, 8)
	tr, _, children := startProcesses(t, 2, func(pe int, _ error) { lost <- pe })
	require.NoError(t, children[1].Process.Signal(syscall.SIGSTOP))
	src := random(processHeap)
	ended := make(chan error, 1)
	go func() {
		err := tr.Put(within(t, time.Minute), at(1, 0), src)
		if err == nil {
			err = tr.Quiet(within(t, time.Minute))
		}
		ended <- err
	}()
	short := within(t, 300*time.Millisecond)
	require.ErrorIs(t, tr.Get(short, make([]byte, 8), at(1, 0)), status.Timeout)
	time.Sleep(1500 * time.Millisecond)
	require.Empty(t, ended)
	require.NoError(t, children[1].Process.Signal(syscall.SIGCONT))
	require.NoError(t, <-ended)
	back := make([]byte, processHeap)
	require.NoError(t, tr.Get(within(t, time.Minute), back, at(1, 0)))
	require.Equal(t, src, back)
	require.Empty(t, lost)
}
