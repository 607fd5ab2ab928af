package coll

import (
	"fmt"
	"math"
	"sync/atomic"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/reduce"
	"goshmem/gocore/status"
)

// f32 is C memory for n floats: a Call holds only its address. It is not freed, tests are short.
func f32(n int) []byte { return hot.NewBuffer(4 * n).Bytes(4 * n) }

func allReduce(in, out []byte, count int) Call {
	return Call{Op: AllReduce, DType: int(reduce.F32), RedOp: int(reduce.Sum), Root: -1, In: addressOf(in), Out: addressOf(out), Count: uint64(count)}
}

func TestDisagreementIsAnErrorOnBothSides(t *testing.T) {
	in, out := make([]byte, 1<<16), make([]byte, 1<<16)
	base := allReduce(in, out, 8)
	with := func(f func(*Call)) Call { c := base; f(&c); return c }
	for name, c := range map[string]struct {
		a, b Call
		say  []string
	}{
		"operation": {base, Call{Op: Barrier, Root: -1}, []string{"all_reduce of 8 float32, sum", "called barrier"}},
		"dtype":     {base, with(func(c *Call) { c.DType = int(reduce.I32) }), []string{"8 float32", "8 int32"}},
		"operator":  {base, with(func(c *Call) { c.RedOp = int(reduce.Max) }), []string{"float32, sum", "float32, max"}},
		"count":     {base, with(func(c *Call) { c.Count = 9 }), []string{"of 8 float32", "of 9 float32"}},
		"large":     {base, with(func(c *Call) { c.Count = 10000 }), []string{"of 8 float32", "of 10000 float32"}},
		"root": {Call{Op: Broadcast, In: addressOf(in), Out: addressOf(out), Count: 5, Root: 0}, Call{Op: Broadcast, In: addressOf(in), Out: addressOf(out), Count: 5, Root: 1},
			[]string{"broadcast of 5 bytes, root 0", "broadcast of 5 bytes, root 1"}},
	} {
		t.Run(name, func(t *testing.T) {
			bothExecutors(t, func(t *testing.T, cExe bool) {
				for _, n := range []int{2, 3} {
					r := newRig(t, n, cExe, 1<<20)
					errs := make([]error, n)
					r.each(func(p *pe) {
						call := c.a
						if p.me == n-1 {
							call = c.b
						}
						errs[p.me] = p.do(call)
					})
					for me, err := range errs {
						require.ErrorIs(t, err, status.Mismatch, "PE %d", me)
						if n == 2 { // of three, one may come late and call the same as one of the others
							require.ErrorContains(t, err, c.say[0], "PE %d", me)
							require.ErrorContains(t, err, c.say[1], "PE %d", me)
						}
						require.ErrorContains(t, err, "operation 1 of the test team")
					}
					r.each(func(p *pe) { errs[p.me] = p.do(Call{Op: Sync, Root: -1}) })
					for _, err := range errs {
						require.ErrorIs(t, err, status.TeamPoisoned)
						require.Error(t, r.pes[0].team.Health())
					}
				}
			})
		})
	}
}

func TestPairsThatDisagree(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 3, cExe, 1<<20)
		errs := make([]error, 3)
		buf := make([]byte, 4096)
		r.each(func(p *pe) {
			v := make([]uint64, 12)
			for i := range 3 {
				v[i], v[3+i], v[6+i], v[9+i] = 10, uint64(100*i), 10, uint64(1000+100*i)
			}
			if p.me == 1 {
				v[2] = 11 // to rank 2, which expects 10
			}
			errs[p.me] = p.doWithin(Call{Op: AllToAllV, Root: -1, In: addressOf(buf), Out: addressOf(buf) + 2000, Counts: v}, time.Minute)
		})
		for _, err := range errs {
			require.ErrorIs(t, err, status.Mismatch)
		}
		require.ErrorContains(t, errs[1], "sends 11 bytes to PE 2, which expects 10")
		require.ErrorContains(t, errs[2], "PE 1 sends 11 bytes to this PE, which expects 10")
	})
}

func TestTimeoutNamesWhoIsMissing(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 3, cExe, 1<<20)
		errs := make([]error, 3)
		began := time.Now()
		r.each(func(p *pe) {
			if p.me != 1 {
				errs[p.me] = p.doWithin(allReduce(f32(8), f32(8), 8), time.Second)
			}
		})
		require.Less(t, time.Since(began), 30*time.Second)
		require.GreaterOrEqual(t, time.Since(began), time.Second)
		timeouts := 0
		for _, me := range []int{0, 2} { // who is second may learn it from the first one's poison
			if status.Of(errs[me]) == status.Timeout {
				timeouts++
				require.ErrorContains(t, errs[me], "PEs [1] did not take part within")
				require.ErrorContains(t, errs[me], "(limit 1s)")
			} else {
				require.ErrorIs(t, errs[me], status.TeamPoisoned)
			}
		}
		require.Positive(t, timeouts)
		err := r.pes[1].do(allReduce(f32(8), f32(8), 8))
		require.ErrorIs(t, err, status.TeamPoisoned)
		require.ErrorContains(t, err, "timed out")
	})
}

func TestGivingUpPoisonsTheOthers(t *testing.T) {
	for _, count := range []int{2, 5000, 300000} {
		bothExecutors(t, func(t *testing.T, cExe bool) {
			r := newRig(t, 2, cExe, 8<<20)
			q, err := r.pes[0].team.Start(allReduce(f32(count), f32(count), count), hot.Forever)
			require.NoError(t, err)
			for range 10 {
				done, err := q.Run(hot.Now() + 1e6)
				require.NoError(t, err)
				require.False(t, done)
			}
			q.GiveUp()
			done, err := q.Run(0)
			require.True(t, done)
			require.ErrorIs(t, err, status.Canceled)
			err = r.pes[1].do(Call{Op: Barrier, Root: -1})
			require.ErrorIs(t, err, status.TeamPoisoned)
			require.ErrorContains(t, err, "PE 0")
			require.ErrorContains(t, err, "canceled")
		})
	}
}

// TestGivingUpWhileOthersWait gives up in the middle while the other is inside.
func TestGivingUpWhileOthersWait(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 3, cExe, 8<<20)
		errs := make([]error, 3)
		r.each(func(p *pe) {
			switch p.me {
			case 0:
				q, err := p.team.Start(Call{Op: Barrier, Root: -1}, hot.Forever)
				require.NoError(t, err)
				_, _ = q.Run(hot.Now() + 5e7)
				q.GiveUp()
			case 1:
				errs[1] = p.do(Call{Op: Barrier, Root: -1})
			}
		})
		require.ErrorIs(t, errs[1], status.TeamPoisoned)
		require.ErrorContains(t, errs[1], "PE 0")
	})
}

func TestSequenceWraps(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		for _, start := range []uint32{math.MaxUint32 - 5, math.MaxInt32 - 3} {
			r := newRig(t, 3, cExe, 8<<20)
			for _, p := range r.pes {
				p.team.SetSeq(start)
			}
			errs := make([]error, 3)
			r.each(func(p *pe) {
				for i := range 14 {
					c := trial{id: i, op: []int{AllReduce, Barrier, AllGather, Broadcast, Sync}[i%5], n: 3, count: []uint64{8, 5000, 100000}[i%3], dtype: reduce.I32, redop: reduce.Sum, root: i % 3, place: i % 2}
					if err := c.run(t, p); err != nil && errs[p.me] == nil {
						errs[p.me] = fmt.Errorf("%v: %w", c, err)
					}
				}
			})
			for _, err := range errs {
				require.NoError(t, err)
			}
		}
	})
}

func TestLostPeerIsNamed(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		var lost atomic.Bool
		r := newRig(t, 3, cExe, 1<<20, func(_ *rig, c *Config) {
			c.Lost = func(pe int) error {
				if pe == 2 && lost.Load() {
					return status.At(status.PeerDead, "", 2, "it was killed")
				}
				return nil
			}
		})
		errs := make([]error, 3)
		r.each(func(p *pe) {
			if p.me != 2 {
				errs[p.me] = p.do(Call{Op: Barrier, Root: -1})
				return
			}
			time.Sleep(50 * time.Millisecond) // let the others wait; they must find out either way
			lost.Store(true)
			if cExe {
				r.pes[0].world.MarkDead(2)
				r.pes[1].world.MarkDead(2)
			}
		})
		for _, err := range errs[:2] {
			require.ErrorIs(t, err, status.PeerDead)
			require.ErrorContains(t, err, "(PE 2)")
			require.ErrorContains(t, err, "barrier")
		}
		require.ErrorIs(t, r.pes[0].do(Call{Op: Barrier, Root: -1}), status.PeerDead)
	})
}

func TestRefusals(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 2, cExe, 1<<20)
		b := make([]byte, 4096)
		a := addressOf(b)
		for want, c := range map[string]Call{
			"there is no collective 77":          {Op: 77},
			"root 2 is not a rank":               {Op: Broadcast, Root: 2, In: a, Out: a, Count: 1},
			"root -1 is not a rank":              {Op: Gather, Root: -1, In: a, Out: a, Count: 1},
			"there is no element type 99":        {Op: AllReduce, DType: 99, RedOp: 1, In: a, Out: a, Count: 1},
			"is not defined for float32":         {Op: AllReduce, DType: int(reduce.F32), RedOp: int(reduce.BXor), In: a, Out: a, Count: 1},
			"is more than 2^56 bytes":            {Op: AllGather, In: a, Out: a, Count: 1 << 55},
			"more than 2^56":                     {Op: AllReduce, DType: int(reduce.F64), RedOp: 1, In: a, Out: a, Count: math.MaxUint64},
			"overlap in part":                    {Op: AllReduce, DType: int(reduce.F32), RedOp: 1, In: a, Out: a + 8, Count: 16},
			"a buffer is NULL though count is 3": {Op: AllToAll, In: a, Count: 3},
			"the table of sizes has 3 entries":   {Op: AllToAllV, In: a, Out: a, Counts: make([]uint64, 3)},
		} {
			err := r.pes[0].do(c)
			require.ErrorContains(t, err, want)
			require.Less(t, int(status.Of(err)), 0)
		}
		require.NoError(t, r.pes[0].team.Health())
		errs := make([]error, 2)
		r.each(func(p *pe) { errs[p.me] = p.do(Call{Op: Barrier, Root: -1}) }) // nothing has happened before
		require.Equal(t, []error{nil, nil}, errs)
	})
}

func TestExchange(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 5, cExe, 1<<20)
		r.each(func(p *pe) {
			x, err := p.team.Exchange("alloc", 3, []byte{byte(p.me), 7}, hot.Forever)
			require.NoError(t, err)
			done, err := x.Run(hot.Forever)
			require.True(t, done)
			require.NoError(t, err)
			for q, reply := range x.Replies() {
				require.Len(t, reply, ExchangeBytes)
				require.Equal(t, []byte{byte(q), 7, 0}, reply[:3])
			}
		})
		errs := make([]error, 5)
		r.each(func(p *pe) {
			x, err := p.team.Exchange("alloc", uint64(3+p.me%2), nil, hot.Forever)
			if err == nil {
				_, err = x.Run(hot.Forever)
			}
			errs[p.me] = err
		})
		for _, err := range errs {
			require.ErrorIs(t, err, status.Mismatch)
		}
	})
}

// TestManyRequestsPolled drives requests as an engine does: polled in turns by one goroutine per PE, with a second one of the
// same team waiting behind the first.
func TestManyRequestsPolled(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		r := newRig(t, 3, cExe, 8<<20)
		r.each(func(p *pe) {
			in, out := f32(100000), f32(100000)
			first, err := p.team.Start(allReduce(in, out, 100000), hot.Forever)
			require.NoError(t, err)
			for {
				if done, err := first.Run(0); done {
					require.NoError(t, err)
					break
				}
				time.Sleep(10 * time.Microsecond)
			}
			second, err := p.team.Start(Call{Op: Barrier, Root: -1}, hot.Forever)
			require.NoError(t, err)
			done, err := second.Run(hot.Forever)
			require.True(t, done)
			require.NoError(t, err)
		})
	})
}
