package message

import (
	"fmt"
	"math/rand/v2"
	"sync"
	"testing"
	"time"

	"goshmem/gocore/status"

	"github.com/stretchr/testify/require"
)

var sizes = []int{0, 1, InlineBytes, InlineBytes + 1, rigEager, rigEager + 1, 4097, chunkBytes, chunkBytes + 1, 3*chunkBytes + 5, pullBytes + 3}

func TestEverySizeArrivesWhoeverIsFirst(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		g := newRig(t, 3, mapped)
		for turn, n := range sizes {
			for _, symmetric := range []bool{false, true} {
				for _, recvFirst := range []bool{false, true} {
					data, ref := pattern(n, 2, 1, 5, turn), Private
					if symmetric {
						data, ref = g.place(2, data)
					}
					buf := make([]byte, n+9)
					var s *Send
					var r *Recv
					if recvFirst {
						r = g.recv(1, 2, 5, buf[:n+1])
						s = g.send(2, 1, 5, data, ref)
					} else {
						s = g.send(2, 1, 5, data, ref)
						r = g.recv(1, 2, 5, buf[:n+1])
					}
					if n <= rigEager {
						require.True(t, s.done, "a small send ends at once")
					}
					finish(t, s, r)
					require.Equal(t, pattern(n, 2, 1, 5, turn), buf[:n])
					require.Equal(t, make([]byte, 9), buf[n:], "canary")
					src, tag, got := r.Result()
					require.Equal(t, []any{2, int64(5), uint64(n)}, []any{src, tag, got})
				}
			}
		}
		require.Zero(t, len(g.ms[1].offers)+len(g.ms[2].sends)+g.ms[1].match.waiting)
	})
}

func TestHundredOutstandingInReverse(t *testing.T) {
	for _, size := range []int{8, rigEager, rigEager + 1000} {
		bothWays(t, func(t *testing.T, mapped bool) {
			g := newRig(t, 2, mapped)
			var all []stepper
			for tag := range int64(100) {
				all = append(all, g.send(0, 1, tag, pattern(size, 0, 1, tag, 0), Private))
			}
			bufs := make([][]byte, 100)
			for tag := int64(99); tag >= 0; tag-- {
				bufs[tag] = make([]byte, size)
				r := g.recv(1, 0, tag, bufs[tag])
				finish(t, r, stepper(pollOf{g.ms[0]})) // one after another: the last sent is wanted first
			}
			finish(t, all...)
			for tag, b := range bufs {
				require.Equal(t, pattern(size, 0, 1, int64(tag), 0), b)
			}
		})
	}
}

// pollOf polls a member that has nothing to wait for, as its engine would.
type pollOf struct{ m *Messenger }

func (p pollOf) Step() (bool, error) { p.m.Poll(); return true, nil }

func TestSmallSendsEndAtOnceThoughNobodyListens(t *testing.T) {
	g := newRig(t, 2, true)
	const n = 500 // many times the ring
	buf := make([]byte, 200)
	for i := range n {
		copy(buf, pattern(200, 0, 1, 0, i))
		require.True(t, g.send(0, 1, 0, buf, Private).done)
		clear(buf) // its buffer is the caller's again
	}
	require.True(t, g.ms[0].Pending())
	for i := range n {
		got := make([]byte, 200)
		finish(t, g.recv(1, 0, AnyTag, got), pollOf{g.ms[0]})
		require.Equal(t, pattern(200, 0, 1, 0, i), got, "message %d", i)
	}
	g.ms[0].Poll()
	require.False(t, g.ms[0].Pending())
	require.Zero(t, g.ms[0].queued)
}

func TestToOneself(t *testing.T) {
	g := newRig(t, 1, true)
	for turn, n := range sizes {
		for _, recvFirst := range []bool{false, true} {
			buf := make([]byte, n)
			var r *Recv
			if recvFirst {
				r = g.recv(0, AnySource, 3, buf)
			}
			s := g.send(0, 0, 3, pattern(n, 0, 0, 3, turn), Private)
			if !recvFirst {
				r = g.recv(0, 0, AnyTag, buf)
			}
			finish(t, s, r)
			require.Equal(t, pattern(n, 0, 0, 3, turn), buf)
		}
	}
	s := g.send(0, 0, 1, make([]byte, 5000), Private)
	s.Cancel()
	require.Zero(t, g.ms[0].match.waiting)
}

func TestTruncationIsAnErrorHereAndNotThere(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		g := newRig(t, 2, mapped)
		for _, n := range []int{5, 200, 5000} {
			buf := make([]byte, n-1)
			s := g.send(0, 1, 9, pattern(n, 0, 1, 9, 0), Private)
			r := g.recv(1, 0, 9, buf)
			var err error
			require.Eventually(t, func() bool { var done bool; done, err = r.Step(); return done }, time.Minute, time.Microsecond)
			require.ErrorIs(t, err, status.Truncated)
			require.ErrorContains(t, err, fmt.Sprintf("%d bytes", n))
			require.ErrorContains(t, err, "PE 10")
			require.Equal(t, make([]byte, n-1), buf, "nothing is delivered")
			finish(t, s)
			after := make([]byte, 3)
			finish(t, g.send(0, 1, 9, []byte{1, 2, 3}, Private), g.recv(1, 0, 9, after))
			require.Equal(t, []byte{1, 2, 3}, after)
		}
	})
}

func TestACanceledReceiveGivesItsMessageBack(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		for _, symmetric := range []bool{false, true} {
			for stop := range 12 { // leave at every step of the transfer
				g := newRig(t, 2, mapped)
				n := 5*chunkBytes + 77
				data, ref := pattern(n, 0, 1, 4, stop), Private
				if symmetric {
					data, ref = g.place(0, data)
				}
				s := g.send(0, 1, 4, data, ref)
				lost := make([]byte, n)
				first := g.recv(1, AnySource, 4, lost)
				done := false
				for range stop {
					_, err := s.Step()
					require.NoError(t, err)
					done, err = first.Step()
					require.NoError(t, err)
				}
				first.Cancel()
				mark := append([]byte(nil), lost...)
				buf := make([]byte, n)
				if done {
					finish(t, s)
					require.Equal(t, data, lost)
					continue
				}
				_, err := first.Step()
				require.ErrorIs(t, err, status.Canceled)
				finish(t, s, g.recv(1, 0, 4, buf))
				require.Equal(t, pattern(n, 0, 1, 4, stop), buf)
				require.Equal(t, mark, lost, "a canceled buffer is not touched any more")
			}
		}
	})
}

func TestACanceledSendIsWithdrawn(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		for stop := range 8 {
			g := newRig(t, 2, mapped)
			n := 5*chunkBytes + 77
			s := g.send(0, 1, 4, pattern(n, 0, 1, 4, 0), Private)
			r := g.recv(1, 0, 4, make([]byte, n))
			for range stop {
				_, _ = s.Step()
				_, _ = r.Step()
			}
			if s.done || r.done {
				finish(t, s, r)
				continue
			}
			s.Cancel()
			require.Eventually(t, func() bool { done, _ := r.Step(); return done }, time.Minute, time.Microsecond)
			_, err := r.Step()
			require.ErrorIs(t, err, status.Canceled)
			require.ErrorContains(t, err, "rank 0 gave its send up")
			require.Eventually(t, func() bool {
				g.ms[0].Poll()
				if g.ms[1].Pending() {
					g.ms[1].Poll()
				}
				return len(g.ms[0].sends) == 0
			}, time.Minute, time.Microsecond, "its staging comes back")
			require.Zero(t, g.ms[0].staged)
			buf := make([]byte, 10)
			finish(t, g.send(0, 1, 4, pattern(10, 0, 1, 4, 1), Private), g.recv(1, 0, 4, buf))
			require.Equal(t, pattern(10, 0, 1, 4, 1), buf)
		}
	})
	g := newRig(t, 2, true)
	s := g.send(0, 1, 4, make([]byte, 5000), Private)
	g.ms[1].Poll()
	require.Equal(t, 1, g.ms[1].match.waiting)
	s.Cancel()
	g.ms[1].Poll()
	require.Zero(t, g.ms[1].match.waiting, "an unmatched offer disappears")
}

func TestTimeoutsTellWhatIsThereInstead(t *testing.T) {
	g := newRig(t, 3, true)
	g.send(0, 1, 8, []byte("x"), Private)
	began := time.Now()
	r, err := g.ms[1].Recv(make([]byte, 1), 2, 7, began.Add(50*time.Millisecond))
	require.NoError(t, err)
	err = untilDone(t, r)
	require.ErrorIs(t, err, status.Timeout)
	require.WithinRange(t, time.Now(), began.Add(50*time.Millisecond), began.Add(20*time.Second))
	for _, part := range []string{"rank 2", "PE 12", "tag 7", "team t", "within", "rank 0 tag 8 (1 bytes)"} {
		require.ErrorContains(t, err, part)
	}
	s, err := g.ms[0].Send(2, 3, make([]byte, 9999), Private, time.Now().Add(20*time.Millisecond))
	require.NoError(t, err)
	err = untilDone(t, s)
	require.ErrorIs(t, err, status.Timeout)
	for _, part := range []string{"rank 2", "PE 12", "tag 3", "9999 bytes", "no matching receive"} {
		require.ErrorContains(t, err, part)
	}
	r, err = g.ms[1].Recv(make([]byte, 1), AnySource, AnyTag, time.Now())
	require.NoError(t, err)
	require.NoError(t, untilDone(t, r), "timeout zero is one look")
}

func untilDone(t *testing.T, s stepper) error {
	t.Helper()
	limit := time.Now().Add(time.Minute)
	for {
		done, err := s.Step()
		if done {
			again, twice := s.Step()
			require.True(t, again)
			require.Equal(t, err, twice, "asked again, it answers the same")
			return err
		}
		require.True(t, time.Now().Before(limit), "hangs")
		time.Sleep(time.Millisecond)
	}
}

func TestDeathIsAnErrorAfterWhatHadCome(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		g := newRig(t, 3, mapped)
		g.send(2, 1, 1, pattern(200, 2, 1, 1, 0), Private)
		big := g.send(1, 2, 1, make([]byte, 9999), Private)
		g.lost[2].Store(status.At(status.PeerDead, "", 12, "its process ended"))
		buf := make([]byte, 200)
		require.NoError(t, untilDone(t, g.recv(1, 2, 1, buf)), "a message that came before the death is delivered")
		require.Equal(t, pattern(200, 2, 1, 1, 0), buf)
		for what, s := range map[string]stepper{
			"from the dead": g.recv(1, 2, 1, buf), "from anybody": g.recv(1, AnySource, 1, buf), "to the dead": big,
		} {
			err := untilDone(t, s)
			require.ErrorIs(t, err, status.PeerDead, what)
			require.ErrorContains(t, err, "PE 12", what)
			require.ErrorContains(t, err, "its process ended", what)
		}
		_, err := g.ms[1].Send(2, 1, nil, Private, time.Time{})
		require.ErrorIs(t, err, status.PeerDead)
		finish(t, g.send(0, 1, 2, []byte{5}, Private), g.recv(1, 0, 2, buf)) // others are not affected
	})
}

func TestOneThatLeftDoesNotStopReceivesFromAny(t *testing.T) {
	g := newRig(t, 3, true)
	g.lost[0].Store(status.At(status.PeerLeft, "", 10, "it finalized"))
	r := g.recv(1, AnySource, AnyTag, make([]byte, 1))
	done, err := r.Step()
	require.False(t, done)
	require.NoError(t, err)
	g.lost[2].Store(status.At(status.PeerLeft, "", 12, "it finalized"))
	require.ErrorIs(t, untilDone(t, r), status.PeerLeft)
	require.ErrorIs(t, untilDone(t, g.recv(1, 0, 1, nil)), status.PeerLeft)
}

func TestALostConnectionEndsTransfers(t *testing.T) {
	bothWays(t, func(t *testing.T, mapped bool) {
		g := newRig(t, 2, mapped)
		n := 9 * chunkBytes
		s := g.send(0, 1, 1, make([]byte, n), Private)
		r := g.recv(1, 0, 1, make([]byte, n))
		for range 1 {
			_, _ = s.Step()
			_, _ = r.Step()
		}
		g.loop.down[firstPE].Store(true)
		for done := false; !done; done, _ = r.Step() {
			_, _ = s.Step()
		}
		_, err := r.Step()
		require.ErrorIs(t, err, status.PeerUnreachable)
		require.ErrorContains(t, err, errDown.Error())
		_, err = g.ms[1].Send(0, 1, nil, Private, time.Time{})
		require.ErrorIs(t, err, status.PeerUnreachable)
	})
}

func TestBadArgumentsAndClosing(t *testing.T) {
	g := newRig(t, 2, true)
	_, err := g.ms[0].Send(2, 0, nil, Private, time.Time{})
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = g.ms[0].Recv(nil, -2, 0, time.Time{})
	require.ErrorIs(t, err, status.InvalidPE)
	_, err = g.ms[0].Send(1, AnyTag, nil, Private, time.Time{})
	require.ErrorIs(t, err, status.InvalidArgument)
	r, wild, s := g.recv(0, 1, 0, nil), g.recv(0, AnySource, 0, nil), g.send(0, 1, 0, make([]byte, 5000), Private)
	g.ms[0].Close()
	for _, x := range []stepper{r, wild, s} {
		require.ErrorIs(t, untilDone(t, x), status.StaleHandle)
	}
	_, err = g.ms[0].Recv(nil, 0, 0, time.Time{})
	require.ErrorIs(t, err, status.StaleHandle)
	g.pools[1].full = true
	s, err = g.ms[1].Send(0, 0, make([]byte, rigEager), Private, time.Time{})
	require.NoError(t, err)
	require.ErrorIs(t, untilDone(t, s), status.HeapFull)
	g.pools[1].full = false
	s, err = g.ms[1].Send(0, 0, make([]byte, rigEager), Private, time.Time{})
	require.NoError(t, err)
	require.NoError(t, untilDone(t, s), "no member is given up for want of scratch")
}

// TestManyThreads runs members as goroutines, each with a sending and several receiving ones, in every size class; the k-th
// receive from a source with a tag must get the k-th message sent so.
func TestManyThreads(t *testing.T) {
	for _, n := range []int{2, 3, 5} {
		bothWays(t, func(t *testing.T, mapped bool) {
			g := newRig(t, n, mapped)
			var wg sync.WaitGroup
			const turns = 14
			size := func(src, dst, tag, k int) int { return []int{0, 7, 81, 300, 301, 5000, 70_000}[(src+2*dst+3*tag+k)%7] }
			for me := range n {
				wg.Go(func() {
					rng := rand.New(rand.NewPCG(uint64(me), 3))
					var sends []*Send
					for k := range turns {
						for _, dst := range rng.Perm(n) {
							for tag := range 2 {
								s, err := g.ms[me].Send(dst, int64(tag), pattern(size(me, dst, tag, k), me, dst, int64(tag), k), Private, time.Time{})
								if err != nil {
									t.Error(err)
									return
								}
								sends = append(sends, s)
							}
						}
					}
					for _, s := range sends {
						spin(t, s)
					}
				})
				for src := range n {
					for tag := range 2 {
						wg.Go(func() {
							for k := range turns {
								want := pattern(size(src, me, tag, k), src, me, int64(tag), k)
								buf := make([]byte, len(want))
								r, err := g.ms[me].Recv(buf, src, int64(tag), time.Now().Add(2*time.Minute))
								if err != nil || !spin(t, r) || string(buf) != string(want) {
									t.Errorf("message %d from %d to %d, tag %d: %v", k, src, me, tag, err)
									return
								}
							}
						})
					}
				}
			}
			wg.Wait()
		})
	}
}

func spin(t *testing.T, s stepper) bool {
	for {
		done, err := s.Step()
		if err != nil {
			t.Error(err)
			return false
		}
		if done {
			return true
		}
		time.Sleep(10 * time.Microsecond)
	}
}

func TestSymmetricDataIsReadInPlace(t *testing.T) {
	g := newRig(t, 2, true)
	data, ref := g.place(0, pattern(3*chunkBytes, 0, 1, 1, 0))
	buf := make([]byte, len(data))
	s := g.send(0, 1, 1, data, ref)
	finish(t, g.recv(1, 0, 1, buf), s)
	require.Equal(t, data, buf)
	require.Zero(t, g.pools[0].next-1<<20, "no staging was leased")
}
