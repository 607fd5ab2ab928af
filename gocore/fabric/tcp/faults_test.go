package tcp

import (
	"context"
	"crypto/tls"
	"errors"
	"io"
	"net"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

func TestOutOfRangeIsAnErrorToTheCaller(t *testing.T) {
	noLeaks(t)
	j := newJob(t, 2, 4096)
	ctx := within(t, time.Minute)
	a := j.pes[0]
	huge := fabric.Addr{PE: 1, Ref: fabric.MakeRef(0, 1<<56-4)}
	require.NoError(t, a.Put(ctx, at(1, 4000), random(97)), "a put does not wait")
	err := a.Quiet(ctx)
	require.ErrorIs(t, err, status.NotSymmetric)
	require.ErrorContains(t, err, "PE 1")
	require.ErrorContains(t, err, "4000")
	require.NoError(t, a.Quiet(ctx), "told once")
	require.ErrorIs(t, a.Get(ctx, make([]byte, 8), huge), status.NotSymmetric)
	require.ErrorIs(t, a.Get(ctx, make([]byte, 3*chunk), at(1, 0)), status.NotSymmetric)
	_, err = a.Atomic(ctx, fabric.Addr{PE: 1, Ref: fabric.MakeRef(9, 0)}, fabric.Atomic{Op: fabric.Add, Width: 8})
	require.ErrorIs(t, err, status.NotSymmetric)
	require.NoError(t, a.PutSignal(ctx, at(1, 4095), random(2), at(1, 0), fabric.SignalSet, 7))
	require.ErrorIs(t, a.Quiet(ctx), status.NotSymmetric)
	require.NoError(t, a.PutSignal(ctx, at(1, 8), nil, at(1, 0), 99, 7))
	require.ErrorIs(t, a.Quiet(ctx), status.InvalidArgument)
	require.ErrorIs(t, a.PutSignal(ctx, at(1, 8), nil, at(0, 0), 0, 7), status.InvalidArgument)
	require.ErrorIs(t, a.Put(ctx, at(2, 0), nil), status.InvalidPE)
	good := random(100)
	require.NoError(t, a.Put(ctx, at(1, 8), good))
	require.NoError(t, a.Quiet(ctx))
	require.Equal(t, good, j.mem[1].bytes[8:108], "the connection still works")
	require.Empty(t, j.lost)
}

// intruder is an authenticated connection of PE 1 to PE 0 that does not follow the protocol.
func intruder(t *testing.T, addr string, secret []byte) *tls.Conn {
	id, err := bootstrap.NewIdentity(secret, role, 1)
	require.NoError(t, err)
	conn, err := tls.Dial("tcp", addr, id.Dialer(role, 0))
	require.NoError(t, err)
	t.Cleanup(func() { _ = conn.Close() })
	_ = conn.SetDeadline(time.Now().Add(5 * time.Second))
	return conn
}

func TestMalformedFramesEndThatConnectionOnly(t *testing.T) {
	for name, h := range map[string]header{
		"too long":     {kind: reqPut, size: chunk + 1},
		"huge get":     {kind: reqGet, size: 1<<32 - 1},
		"unknown kind": {kind: 99},
		"a reply":      {kind: repData},
	} {
		t.Run(name, func(t *testing.T) {
			noLeaks(t)
			mem := newHeap(0, 4096)
			lost := make(chan error, 2)
			tr, err := New(Config{Me: 0, N: 2, Secret: testSecret, Memory: mem, Interface: "127.0.0.1", Lost: func(pe int, err error) { lost <- err }})
			require.NoError(t, err)
			defer tr.Close()
			conn := intruder(t, tr.Addresses()[0], testSecret)
			var b [headerSize]byte
			h.encode(b[:])
			_, err = conn.Write(b[:])
			require.NoError(t, err)
			_, err = io.ReadFull(conn, b[:])
			require.NoError(t, err)
			require.Equal(t, repFail, decodeHeader(b[:]).kind, "it is told why")
			_, err = io.Copy(io.Discard, conn)
			require.NoError(t, err)
			require.ErrorContains(t, <-lost, "PE 1")
		})
	}
}

func TestStrangersAreDropped(t *testing.T) {
	j := newJob(t, 2, 4096)
	addr := j.pes[0].Addresses()[0]
	for name, data := range map[string][]byte{"random": random(1 << 20), "silence": nil, "http": []byte("GET / HTTP/1.0\r\n\r\n")} {
		c, err := net.Dial("tcp", addr)
		require.NoError(t, err)
		_ = c.SetDeadline(time.Now().Add(30 * time.Second))
		_, _ = c.Write(data)
		_, err = io.Copy(io.Discard, c)
		require.NotErrorIs(t, err, context.DeadlineExceeded, name)
		var slow net.Error
		require.False(t, errors.As(err, &slow) && slow.Timeout(), "%s: still connected after 30 s", name)
		_ = c.Close()
	}
	require.NoError(t, j.pes[1].Put(within(t, time.Minute), at(0, 0), []byte("well")))
	require.NoError(t, j.pes[1].Quiet(within(t, time.Minute)))
	require.Empty(t, j.lost)
}

func TestWrongSecretIsNotConnected(t *testing.T) {
	noLeaks(t)
	var trs []*Transport
	for pe := range 2 {
		tr, err := New(Config{Me: pe, N: 2, Secret: append([]byte{byte(pe)}, testSecret...), Memory: newHeap(pe, 64), Interface: "127.0.0.1"})
		require.NoError(t, err)
		defer tr.Close()
		trs = append(trs, tr)
	}
	err := trs[0].Connect(within(t, time.Minute), map[int][]string{1: trs[1].Addresses()})
	require.ErrorIs(t, err, status.Unauthenticated)
	require.ErrorContains(t, err, "PE 1")
	require.ErrorIs(t, trs[0].Put(context.Background(), at(1, 0), nil), status.PeerUnreachable)
}

func TestNobodyThere(t *testing.T) {
	noLeaks(t)
	tr, err := New(Config{Me: 0, N: 2, Secret: testSecret, Memory: newHeap(0, 64), Interface: "127.0.0.1"})
	require.NoError(t, err)
	defer tr.Close()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	require.NoError(t, err)
	_ = l.Close()
	start := time.Now()
	err = tr.Connect(within(t, time.Second), map[int][]string{1: {l.Addr().String()}})
	require.Less(t, time.Since(start), 20*time.Second)
	require.ErrorContains(t, err, "PE 1")
	require.Equal(t, 1, func() int { var e *status.Error; errors.As(err, &e); return e.PE }())
}

func TestLeavingIsNotDying(t *testing.T) {
	noLeaks(t)
	j := newJob(t, 3, 4096)
	ctx := within(t, time.Minute)
	require.NoError(t, j.pes[2].Put(ctx, at(0, 8), []byte("last words")))
	require.NoError(t, j.pes[2].Close())
	require.NoError(t, j.pes[2].Close())
	require.Equal(t, "last words", string(j.mem[0].bytes[8:18]), "what was put before Close arrives")
	require.Eventually(t, func() bool {
		return errors.Is(j.pes[0].Put(ctx, at(2, 0), []byte{1}), status.PeerLeft)
	}, time.Minute, time.Millisecond)
	require.NoError(t, j.pes[0].Put(ctx, at(1, 0), []byte{1}))
	require.NoError(t, j.pes[0].Quiet(ctx))
	require.ErrorIs(t, j.pes[2].Put(ctx, at(0, 0), []byte{1}), status.Finalized)
	require.Empty(t, j.lost)
}

func TestABrokenConnectionIsReportedOnceOnBothSides(t *testing.T) {
	noLeaks(t)
	j := newJob(t, 3, 4096)
	ctx := within(t, time.Minute)
	waiting := make(chan error, 1)
	l := j.pes[0].links[1].Load()
	r, err := l.ask(ctx, header{kind: reqAtomic, op: byte(fabric.Fetch), width: 8, flags: noReply}, nil) // will never be answered
	require.NoError(t, err)
	go func() { _, err := l.answer(ctx, r); waiting <- err }()
	_ = l.out.Conn.(*net.TCPConn).SetLinger(0)
	_ = l.out.Conn.Close()
	err = <-waiting
	require.Contains(t, []status.Code{status.PeerDead, status.PeerUnreachable}, status.Of(err))
	require.ErrorContains(t, err, "PE 1")
	require.Equal(t, err, j.pes[0].Put(ctx, at(1, 0), []byte{1}), "it stays lost, for the same reason")
	require.Eventually(t, func() bool { j.mu.Lock(); defer j.mu.Unlock(); return len(j.lost) == 2 }, time.Minute, time.Millisecond)
	require.Error(t, j.lost[[2]int{0, 1}])
	require.Error(t, j.lost[[2]int{1, 0}])
	require.NoError(t, j.pes[0].Put(ctx, at(2, 0), []byte{1}))
	require.NoError(t, j.pes[0].Quiet(ctx))
}

// stuck is a memory whose Span blocks, which stops its PE's serving goroutines like a stopped process.
type stuck struct {
	*heap
	hold chan struct{}
}

func (s *stuck) Span(ref fabric.Ref, n uint64) ([]byte, error) {
	<-s.hold
	return s.heap.Span(ref, n)
}

func TestCallersCanGiveUpAndTheStreamStaysWhole(t *testing.T) {
	noLeaks(t)
	const size = 64 << 20
	slow := &stuck{newHeap(1, size), make(chan struct{})}
	var trs []*Transport
	peers := map[int][]string{}
	for pe, mem := range []fabric.Memory{newHeap(0, 64), slow} {
		tr, err := New(Config{Me: pe, N: 2, Secret: testSecret, Memory: mem, Interface: "127.0.0.1"})
		require.NoError(t, err)
		defer tr.Close()
		trs = append(trs, tr)
		peers[pe] = tr.Addresses()
	}
	a := trs[0]
	require.NoError(t, a.Connect(within(t, time.Minute), peers))
	giveUp := func(what string, call func(ctx context.Context) error) {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
		defer cancel()
		start := time.Now()
		err := call(ctx)
		require.ErrorIs(t, err, status.Timeout, what)
		require.ErrorContains(t, err, "PE 1", what)
		require.WithinRange(t, time.Now(), start.Add(100*time.Millisecond), start.Add(20*time.Second), what)
	}
	release := sync.OnceFunc(func() { close(slow.hold) })
	defer release()
	got, src := make([]byte, 3*chunk), random(size)
	giveUp("get", func(ctx context.Context) error { return a.Get(ctx, got, at(1, 0)) })
	giveUp("put", func(ctx context.Context) error { return a.Put(ctx, at(1, 0), src) })
	giveUp("quiet", a.Quiet)
	ctx, cancel := context.WithCancelCause(context.Background())
	cancel(errors.New("ctrl-c"))
	require.ErrorContains(t, a.Get(ctx, got, at(1, 0)), "ctrl-c")
	release()
	want := random(100)
	require.NoError(t, a.Put(within(t, time.Minute), at(1, 1<<20), want))
	require.NoError(t, a.Quiet(within(t, time.Minute)))
	back := make([]byte, 100)
	require.NoError(t, a.Get(within(t, time.Minute), back, at(1, 1<<20)))
	require.Equal(t, want, back)
	require.Equal(t, make([]byte, 3*chunk), got, "a get that gave up never writes later")
}
