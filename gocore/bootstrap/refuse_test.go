package bootstrap

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// hostOnly starts the host of a 2-PE job whose second PE has not come, and gives its address and what becomes of it.
func hostOnly(t *testing.T, timeout time.Duration, secret string) (string, chan outcome) {
	where := freePort(t, "127.0.0.1")
	got := make(chan outcome, 1)
	go func() {
		got <- launch(t, []int{0}, timeout, func(int) Options {
			return Options{Method: Endpoint, Me: 0, N: 2, Endpoint: where, Secret: secret, Version: "1.0.0", LookupEnv: noEnv}
		})[0]
	}()
	require.Eventually(t, func() bool {
		c, err := net.Dial("tcp", where)
		if err == nil {
			_ = c.Close()
		}
		return err == nil
	}, time.Minute, time.Millisecond)
	return where, got
}

func guest(where, secret string, me, n int) Options {
	return Options{Method: Endpoint, Me: me, N: n, Endpoint: where, Secret: secret, Version: "1.0.0", LookupEnv: noEnv}
}

const goodSecret = "the right secret of this job"

func TestStrangersAreDroppedAndTheJobDoesNotNotice(t *testing.T) {
	noLeaks(t)
	where, host := hostOnly(t, 3*time.Minute, goodSecret)
	garbage := randomBytes(1 << 20)
	attacks := map[string]func(c net.Conn){
		"random bytes":     func(c net.Conn) { _, _ = c.Write(garbage) },
		"silence":          func(net.Conn) {},
		"a huge length":    func(c net.Conn) { _, _ = c.Write([]byte{22, 3, 1, 255, 255, 1, 255, 255, 255}) },
		"http":             func(c net.Conn) { _, _ = c.Write([]byte("GET / HTTP/1.1\r\n\r\n")) },
		"TLS, no identity": func(c net.Conn) { _ = tls.Client(c, &tls.Config{InsecureSkipVerify: true}).Handshake() },
	}
	for name, attack := range attacks {
		c, err := net.Dial("tcp", where)
		require.NoError(t, err)
		start := time.Now()
		_ = c.SetDeadline(start.Add(30 * time.Second))
		attack(c)
		var b [4096]byte
		for err = nil; err == nil; {
			_, err = c.Read(b[:])
		}
		var timeout net.Error
		require.False(t, errors.As(err, &timeout) && timeout.Timeout(), "%s: still connected after 30 s", name)
		_ = c.Close()
	}
	job := []outcome{{}, launch(t, []int{1}, time.Minute, func(int) Options { return guest(where, goodSecret, 1, 2) })[0]}
	job[0] = <-host
	exercise(t, job)
}

func TestWrongSecret(t *testing.T) {
	noLeaks(t)
	where, host := hostOnly(t, 6*time.Second, goodSecret)
	start := time.Now()
	o := launch(t, []int{1}, time.Minute, func(int) Options { return guest(where, "another secret, also long", 1, 2) })[0]
	require.ErrorIs(t, o.err, status.Unauthenticated)
	require.ErrorContains(t, o.err, "SHMEM_SECRET")
	require.Less(t, time.Since(start), 30*time.Second)
	h := <-host
	require.ErrorIs(t, h.err, status.Timeout)
	require.ErrorContains(t, h.err, "PE 1 is missing")
	require.ErrorContains(t, h.err, "did not prove")
}

func TestNotThePEOfTheCertificate(t *testing.T) {
	noLeaks(t)
	where, host := hostOnly(t, time.Minute, goodSecret)
	id, err := NewIdentity([]byte(goodSecret), "member", 1)
	require.NoError(t, err)
	conn, err := connect(context.Background(), []string{where}, id.Dialer("host", 0))
	require.NoError(t, err)
	_, err = conn.Write(hello{layout: layout.Version, me: 0, n: 2, version: "1.0.0"}.encode().encode())
	require.NoError(t, err)
	_, err = readFrame(conn, 100)
	require.Error(t, err)
	_ = conn.Close()
	job := []outcome{{}, launch(t, []int{1}, time.Minute, func(int) Options { return guest(where, goodSecret, 1, 2) })[0]}
	job[0] = <-host
	exercise(t, job)
}

func TestDisagreementsAreErrorsOnAll(t *testing.T) {
	cases := []struct {
		name   string
		change func(o *Options)
		code   status.Code
		words  []string
	}{
		{"version", func(o *Options) { o.Version = "1.1.0" }, status.VersionSkew, []string{"1.1.0", "1.0.0", "PE 1"}},
		{"layout", func(o *Options) { o.Layout = 77 }, status.VersionSkew, []string{"layout 77", fmt.Sprintf("layout %d", layout.Version)}},
		{"size", func(o *Options) { o.N = 3 }, status.Mismatch, []string{"expects 3", "expects 2"}},
		{"rank", func(o *Options) { o.Me, o.process = 0, "pid 4711" }, status.Mismatch, []string{"two processes claim to be PE 0"}},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			noLeaks(t)
			where, host := hostOnly(t, time.Minute, goodSecret)
			o := guest(where, goodSecret, 1, 2)
			c.change(&o)
			choice, err := Resolve(o)
			require.NoError(t, err)
			ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
			defer cancel()
			_, mine := choice.reach(ctx, dialer{find: choice.findEndpoint(""), who: choice.hello()})
			for _, err := range []error{mine, (<-host).err} {
				require.ErrorIs(t, err, c.code)
				for _, w := range c.words {
					require.ErrorContains(t, err, w)
				}
			}
		})
	}
}

func TestMissingPEsAreNamedOnAllThatCame(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	start := time.Now()
	job := launch(t, []int{0, 1, 3}, 3*time.Second, func(me int) Options { return uidOptions(o, me, 5) })
	require.WithinRange(t, time.Now(), start.Add(3*time.Second), start.Add(30*time.Second))
	for _, j := range job {
		require.ErrorIs(t, j.err, status.Timeout)
		require.ErrorContains(t, j.err, "2, 4")
	}
}

func TestTwoPE0s(t *testing.T) {
	noLeaks(t)
	where := freePort(t, "127.0.0.1")
	for _, o := range launch(t, []int{0, 0}, time.Minute, func(int) Options { return guest(where, goodSecret, 0, 2) }) {
		require.ErrorIs(t, o.err, status.Mismatch)
		require.ErrorContains(t, o.err, "two processes claim to be PE 0")
	}
}

func TestPortOfSomethingElse(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	go func() {
		for c, err := l.Accept(); err == nil; c, err = l.Accept() {
			_, _ = c.Write([]byte("HTTP/1.1 400 Bad Request\r\n\r\n"))
			_ = c.Close()
		}
	}()
	start := time.Now()
	o := launch(t, []int{0}, time.Minute, func(int) Options { return guest(l.Addr().String(), goodSecret, 0, 2) })[0]
	require.ErrorIs(t, o.err, status.Unauthenticated)
	require.Less(t, time.Since(start), 30*time.Second)
}

// Linux may give the port that a user chose to an outgoing connection of anybody before PE 0 listens there.
func TestPortOfAConnection(t *testing.T) {
	noLeaks(t)
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	defer l.Close()
	c, err := net.Dial("tcp", l.Addr().String())
	require.NoError(t, err)
	defer c.Close()
	o := launch(t, []int{0}, 2*time.Second, func(int) Options { return guest(c.LocalAddr().String(), goodSecret, 0, 2) })[0]
	require.ErrorIs(t, o.err, status.Timeout)
	require.ErrorContains(t, o.err, "ip_local_port_range")
	require.ErrorContains(t, o.err, c.LocalAddr().String())
}

func TestLatePE(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	exercise(t, launch(t, upTo(3), time.Minute, func(me int) Options {
		if me != 1 {
			time.Sleep(time.Duration(300*me) * time.Millisecond)
		}
		return uidOptions(o, me, 3)
	}))
}

func TestNoHost(t *testing.T) {
	noLeaks(t)
	where := freePort(t, "127.0.0.1")
	start := time.Now()
	o := launch(t, []int{1}, 4*time.Second, func(int) Options { return guest(where, goodSecret, 1, 2) })[0]
	require.ErrorIs(t, o.err, status.Timeout)
	require.ErrorContains(t, o.err, "PE 0")
	require.ErrorContains(t, o.err, "refused")
	require.GreaterOrEqual(t, time.Since(start), 4*time.Second)
	require.Less(t, time.Since(start), 30*time.Second)
}

func TestPEThatStopsExchangingIsNamed(t *testing.T) {
	for _, leaver := range []int{0, 2} {
		for name, leave := range map[string]func(o outcome){
			"silent": func(outcome) {},
			"closed": func(o outcome) { _ = o.r.Close() },
			"broken": func(o outcome) { o.r.c.close() },
		} {
			t.Run(fmt.Sprintf("%s %d", name, leaver), func(t *testing.T) {
				noLeaks(t)
				o, err := NewOffer("127.0.0.1")
				require.NoError(t, err)
				job := launch(t, upTo(3), time.Minute, func(me int) Options { return uidOptions(o, me, 3) })
				for _, j := range job {
					require.NoError(t, j.err)
				}
				ctx, cancel := context.WithTimeout(context.Background(), 700*time.Millisecond)
				defer cancel()
				leave(job[leaver])
				start := time.Now()
				other := make(chan error, 1)
				go func() { _, err := job[2-leaver].r.Allgather(ctx, []byte("y")); other <- err }()
				_, err = job[1].r.Allgather(ctx, []byte("x"))
				require.ErrorContains(t, <-other, fmt.Sprintf("PE %d", leaver))
				require.Error(t, err)
				require.Less(t, time.Since(start), 20*time.Second)
				require.ErrorContains(t, err, fmt.Sprintf("PE %d", leaver))
				_, again := job[1].r.Allgather(context.Background(), nil)
				require.Equal(t, err, again)
				for _, j := range job {
					_ = j.r.Close()
				}
			})
		}
	}
}

func TestDifferentRoundsAreAMismatch(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	job := launch(t, upTo(2), time.Minute, func(me int) Options { return uidOptions(o, me, 2) })
	got := make(chan error, 1)
	go func() { got <- job[0].r.Barrier(context.Background()) }()
	_, err = job[1].r.Allgather(context.Background(), []byte{1})
	require.ErrorIs(t, err, status.Mismatch)
	require.ErrorIs(t, <-got, status.Mismatch)
	for _, j := range job {
		_ = j.r.Close()
	}
}

func TestCancelIsTimelyAndTellsTheOthers(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	job := launch(t, upTo(3), time.Minute, func(me int) Options { return uidOptions(o, me, 3) })
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(50*time.Millisecond, func() { cancel(errors.New("ctrl-c")) })
	other := make(chan error, 1)
	go func() { other <- job[2].r.Barrier(context.Background()) }()
	err = job[1].r.Barrier(ctx)
	require.ErrorIs(t, err, status.Canceled)
	require.ErrorContains(t, err, "ctrl-c")
	err = <-other
	require.ErrorIs(t, err, status.Canceled)
	require.ErrorContains(t, err, "PE 1")
	for _, j := range job {
		_ = j.r.Close()
	}
}

func TestBlobBounds(t *testing.T) {
	noLeaks(t)
	o, err := NewOffer("127.0.0.1")
	require.NoError(t, err)
	job := launch(t, upTo(2), time.Minute, func(me int) Options { return uidOptions(o, me, 2) })
	_, err = job[1].r.Allgather(context.Background(), make([]byte, MaxBlob+1))
	require.ErrorIs(t, err, status.InvalidArgument)
	big := randomBytes(MaxBlob)
	got := make(chan [][]byte, 1)
	go func() { b, _ := job[0].r.Allgather(context.Background(), nil); got <- b }()
	b, err := job[1].r.Allgather(context.Background(), big)
	require.NoError(t, err)
	require.Equal(t, [][]byte{{}, big}, b)
	require.Equal(t, b, <-got)
	for _, j := range job {
		_ = j.r.Close()
	}
}
