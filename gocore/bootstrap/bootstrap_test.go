package bootstrap

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	weak "math/rand/v2"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goshmem/gocore/status"
)

func noEnv(string) (string, bool) { return "", false }

func envOf(m map[string]string) func(string) (string, bool) {
	return func(k string) (string, bool) { v, ok := m[k]; return v, ok }
}

// outcome is what one PE of a job got.
type outcome struct {
	r   *Rendezvous
	err error
}

// launch joins every PE of options(me) at once and returns what each got.
func launch(t *testing.T, pes []int, timeout time.Duration, options func(me int) Options) []outcome {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	t.Cleanup(cancel)
	out := make([]outcome, len(pes))
	var wg sync.WaitGroup
	for i, me := range pes {
		wg.Add(1)
		go func() {
			defer wg.Done()
			choice, err := Resolve(options(me))
			if err == nil {
				out[i].r, err = Join(ctx, choice)
			}
			out[i].err = err
		}()
	}
	wg.Wait()
	return out
}

func upTo(n int) []int {
	pes := make([]int, n)
	for i := range pes {
		pes[i] = i
	}
	return pes
}

// exercise exchanges distinct blobs of odd sizes and closes everything.
func exercise(t *testing.T, job []outcome) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	errs := make([]error, len(job))
	for i := range job {
		require.NoError(t, job[i].err, "PE %d", i)
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[i] = talk(ctx, job[i].r)
			_ = job[i].r.Close()
		}()
	}
	wg.Wait()
	for i, err := range errs {
		require.NoError(t, err, "PE %d", i)
	}
}

func blobOf(pe, round int) string {
	return strings.Repeat(fmt.Sprintf("<%d/%d>", pe, round), pe*977+round)
}

func talk(ctx context.Context, r *Rendezvous) error {
	for round := range 3 {
		got, err := r.Allgather(ctx, []byte(blobOf(r.Me, round)))
		if err != nil {
			return err
		}
		if len(got) != r.N {
			return fmt.Errorf("%d blobs", len(got))
		}
		for pe := range got {
			if string(got[pe]) != blobOf(pe, round) {
				return fmt.Errorf("PE %d round %d: wrong blob from PE %d", r.Me, round, pe)
			}
		}
		if err := r.Barrier(ctx); err != nil {
			return err
		}
	}
	return nil
}

// noLeaks fails when goroutines or descriptors are left at the end of the test.
func noLeaks(t *testing.T) {
	t.Helper()
	warm, err := net.Listen("tcp", "127.0.0.1:0") // the poller's own descriptors exist from the first socket on
	require.NoError(t, err)
	_ = warm.Close()
	goroutines, fds := runtime.NumGoroutine(), openFDs(t)
	t.Cleanup(func() {
		deadline := time.Now().Add(30 * time.Second)
		for runtime.NumGoroutine() > goroutines || openFDs(t) > fds {
			if time.Now().After(deadline) {
				buf := make([]byte, 1<<16)
				t.Fatalf("left behind: %d goroutines (were %d), %d descriptors (were %d)\n%s", runtime.NumGoroutine(), goroutines,
					openFDs(t), fds, buf[:runtime.Stack(buf, true)])
			}
			time.Sleep(time.Millisecond)
		}
	})
}

func openFDs(t *testing.T) int {
	entries, err := os.ReadDir("/proc/self/fd")
	require.NoError(t, err)
	return len(entries)
}

// freePort is an address nobody listens on. It is none of the ports that Linux hands to outgoing connections by default, since another
// test's could take it before it is bound.
func freePort(t *testing.T, host string) string {
	for range 100 {
		l, err := net.Listen("tcp", net.JoinHostPort(host, strconv.Itoa(21000+weak.IntN(11000))))
		if err == nil {
			defer l.Close()
			return l.Addr().String()
		}
		if !errors.Is(err, unix.EADDRINUSE) {
			t.Skipf("no %s here: %v", host, err)
		}
	}
	t.Fatal("no free port")
	return ""
}

func uidOptions(o *Offer, me, n int) Options {
	return Options{Me: me, N: n, UID: o.UID, Version: "1.0.0", LookupEnv: noEnv, FindOffer: func(uid []byte) *Offer {
		if me == 0 && string(uid) == string(o.UID) {
			return o
		}
		return nil
	}}
}

func TestUniqueID(t *testing.T) {
	for _, n := range []int{1, 2, 3, 5, 8} {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			noLeaks(t)
			o, err := NewOffer("127.0.0.1")
			require.NoError(t, err)
			require.Len(t, o.UID, UIDBytes)
			job := launch(t, upTo(n), time.Minute, func(me int) Options { return uidOptions(o, me, n) })
			for _, j := range job {
				require.NoError(t, j.err)
				require.Equal(t, job[0].r.Secret(), j.r.Secret())
				require.Equal(t, UID, j.r.Method)
			}
			exercise(t, job)
		})
	}
}

func TestAllInterfacesAndTheHostNeedNotBePE0(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("")
	require.NoError(t, err)
	job := launch(t, upTo(3), time.Minute, func(me int) Options {
		opt := uidOptions(o, me, 3)
		opt.FindOffer = func([]byte) *Offer {
			if me == 2 {
				return o
			}
			return nil
		}
		return opt
	})
	exercise(t, job)
}

func TestEndpoint(t *testing.T) {
	for _, host := range []string{"127.0.0.1", "::1"} {
		for _, secret := range []string{"", "0123456789abcdef-a-secret"} {
			t.Run(host+secret, func(t *testing.T) {
				t.Setenv("XDG_RUNTIME_DIR", "")
				t.Setenv("TMPDIR", t.TempDir())
				noLeaks(t)
				where := freePort(t, host)
				for range 2 { // the same endpoint again, at once
					job := launch(t, upTo(3), time.Minute, func(me int) Options {
						return Options{Method: Endpoint, Me: me, N: 3, Endpoint: where, Secret: secret, LookupEnv: noEnv}
					})
					exercise(t, job)
				}
				left, err := os.ReadDir(os.TempDir() + fmt.Sprintf("/goshmem-%d", os.Geteuid()))
				require.Equal(t, secret == "", err == nil, "%v", err)
				require.Empty(t, left, "the secret's file must be gone")
			})
		}
	}
}

func TestFile(t *testing.T) {
	noLeaks(t)
	path := t.TempDir() + "/meet"
	for range 3 {
		job := launch(t, upTo(4), time.Minute, func(me int) Options {
			return Options{Me: me, N: 4, Endpoint: path, Interface: "127.0.0.1", LookupEnv: noEnv}
		})
		exercise(t, job)
		require.Equal(t, File, job[1].r.Method)
		require.NoFileExists(t, path)
	}
}

func TestStaleFileOfADeadJob(t *testing.T) {
	noLeaks(t)
	path := t.TempDir() + "/meet"
	dead, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	_, err = publish(path, []byte(fmt.Sprintf("%x\n", dead.UID)))
	require.NoError(t, err)
	dead.Close()
	job := launch(t, upTo(2), time.Minute, func(me int) Options {
		if me == 0 {
			time.Sleep(100 * time.Millisecond) // let the other see the stale file
		}
		return Options{Me: me, N: 2, Endpoint: path, Interface: "127.0.0.1", LookupEnv: noEnv}
	})
	exercise(t, job)
}

func TestFileOfAJobStillWaitingIsReplaced(t *testing.T) {
	noLeaks(t)
	path := t.TempDir() + "/meet"
	options := func(n int) func(me int) Options {
		return func(me int) Options {
			return Options{Me: me, N: n, Endpoint: path, Interface: "127.0.0.1", LookupEnv: noEnv}
		}
	}
	old := make(chan outcome, 1)
	go func() { old <- launch(t, []int{0}, time.Minute, options(3))[0] }()
	var first []byte
	require.Eventually(t, func() bool { var err error; first, err = os.ReadFile(path); return err == nil }, time.Minute, time.Millisecond)
	exercise(t, launch(t, upTo(3), time.Minute, func(me int) Options {
		switch me { // PE 1 joins the old job, then PE 0 replaces its file; PE 2, with whom the old one would be whole, comes after that
		case 0:
			time.Sleep(50 * time.Millisecond)
		case 2:
			for end := time.Now().Add(time.Minute); time.Now().Before(end); time.Sleep(time.Millisecond) {
				if now, err := os.ReadFile(path); err == nil && string(now) != string(first) {
					break
				}
			}
		}
		return options(3)(me)
	}))
	o := <-old
	require.ErrorIs(t, o.err, status.Rendezvous)
	require.ErrorContains(t, o.err, "replaced")
}

func TestPrivateFilesAreChecked(t *testing.T) {
	dir := t.TempDir()
	require.NoError(t, os.WriteFile(dir+"/open", []byte("x"), 0o644))
	_, err := readPrivate(dir + "/open")
	require.ErrorContains(t, err, "0600")
	require.NoError(t, os.WriteFile(dir+"/ok", []byte("x"), 0o600))
	require.NoError(t, os.Symlink(dir+"/ok", dir+"/link"))
	_, err = readPrivate(dir + "/link")
	require.Error(t, err)
	_, err = readPrivate(dir)
	require.Error(t, err)
	require.NoError(t, os.Chmod(dir, 0o755))
	require.ErrorContains(t, checkPrivateDir(dir), "0700")
	old, err := publish(dir+"/p", []byte("old"))
	require.NoError(t, err)
	mine, err := publish(dir+"/p", []byte("new"))
	require.NoError(t, err)
	require.True(t, old.replaced())
	old.remove()
	got, err := readPrivate(dir + "/p")
	require.NoError(t, err)
	require.Equal(t, "new", string(got))
	mine.remove()
	require.NoFileExists(t, dir+"/p")
}

// launcherEnv is what shmem-run gives its processes.
func launcherEnv(l net.Listener, secret string) (env func(me, n int) map[string]string, done func()) {
	f, err := l.(*net.TCPListener).File()
	if err != nil {
		panic(err)
	}
	_ = l.Close()
	fd := f.Fd() // makes it blocking, as a launcher's socket is
	return func(me, n int) map[string]string {
		m := map[string]string{"SHMEM_RANK": fmt.Sprint(me), "SHMEM_SIZE": fmt.Sprint(n), "SHMEM_SECRET": secret, "SHMEM_RENDEZVOUS": l.Addr().String()}
		if me == 0 {
			m["SHMEM_LISTEN_FD"] = fmt.Sprint(fd)
		}
		return m
	}, func() { _ = f.Close() }
}

func TestLauncherSocketServesManyRoundsInAnyRankOrder(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	env, done := launcherEnv(l, "a secret of the launcher")
	defer done()
	for round := range 6 {
		job := launch(t, upTo(3), time.Minute, func(process int) Options {
			o := Options{Me: -1, N: -1, LookupEnv: envOf(env(process, 3))}
			if round%2 == 1 {
				o.Me, o.N = 2-process, 3
			}
			return o
		})
		for _, j := range job {
			require.NoError(t, j.err)
			require.Equal(t, Env, j.r.Method)
		}
		exercise(t, reorder(job))
	}
}

func reorder(job []outcome) []outcome {
	out := make([]outcome, len(job))
	for _, j := range job {
		out[j.r.Me] = j
	}
	return out
}

func TestManyJobsAtOnceInOneProcess(t *testing.T) {
	noLeaks(t)
	var wg sync.WaitGroup
	for range 8 {
		wg.Add(1)
		go func() {
			defer wg.Done()
			o, err := NewOffer("127.0.0.1")
			if err != nil {
				t.Error(err)
				return
			}
			exercise(t, launch(t, upTo(3), 20*time.Second, func(me int) Options { return uidOptions(o, me, 3) }))
		}()
	}
	wg.Wait()
}

func BenchmarkJoinTwo(b *testing.B) {
	for range b.N {
		o, err := NewOffer("127.0.0.1")
		require.NoError(b, err)
		var wg sync.WaitGroup
		for me := range 2 {
			wg.Add(1)
			go func() {
				defer wg.Done()
				c, _ := Resolve(uidOptions(o, me, 2))
				r, err := Join(context.Background(), c)
				if err != nil {
					b.Error(err)
					return
				}
				_, _ = r.Allgather(context.Background(), []byte{byte(me)})
				_ = r.Close()
			}()
		}
		wg.Wait()
	}
}

func randomBytes(n int) []byte {
	b := make([]byte, n)
	_, _ = rand.Read(b)
	return b
}
