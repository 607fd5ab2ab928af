package coll

import (
	"bytes"
	"fmt"
	"runtime"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/reduce"
)

// more makes k further teams of the rig's PEs.
func (r *rig) more(k int) [][]*Team {
	teams := make([][]*Team, r.n)
	for i := range k {
		control := make([]uint64, r.n)
		for q, p := range r.pes {
			off, _, err := p.scratch.Alloc(layout.ControlSize(r.n))
			require.NoError(r.t, err)
			control[q] = off
		}
		for q, p := range r.pes {
			cfg := p.cfg
			cfg.Control, cfg.Name = control, fmt.Sprintf("team %d", i)
			team, err := New(cfg)
			require.NoError(r.t, err)
			teams[q] = append(teams[q], team)
		}
	}
	for _, of := range teams {
		for _, team := range of {
			team.Publish()
		}
	}
	return teams
}

// TestStagesChangeHands runs large ordinary operations on more teams than stages are kept, in turn and then all at once, and checks
// the results and what was leased.
func TestStagesChangeHands(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		const count = 30000
		r := newRig(t, 2, cExe, 1<<20)
		teams := r.more(stagesKept + 3)
		start := func(p *pe, team *Team, id int) (q *Request, in, out, want []byte) {
			c := trial{id: id, op: AllReduce, n: 2, count: count, dtype: reduce.I32, redop: reduce.Sum}
			in, out = c.input(p.me), f32(count)
			q, err := team.Start(allReduceOf(c, in, out), hot.Forever)
			require.NoError(t, err)
			return q, in, out, c.want(t, p.me)
		}
		r.each(func(p *pe) {
			for round := range 3 {
				for i, team := range teams[p.me] {
					q, in, out, want := start(p, team, 100*round+i)
					_, err := q.Run(hot.Forever)
					require.NoError(t, err)
					runtime.KeepAlive(in)
					require.True(t, bytes.Equal(want, out))
				}
			}
		})
		for _, p := range r.pes {
			require.Len(t, p.stages.all, stagesKept)
		}
		r.each(func(p *pe) { p.allAtOnce(t, teams[p.me], start) })
		for q, p := range r.pes {
			for _, team := range teams[q] {
				require.True(t, team.Close(time.Minute))
				team.Reclaim()
			}
			p.stages.Close()
		}
	})
}

// allAtOnce begins an operation on every team, in an order of its own, and polls them all to their ends.
func (p *pe) allAtOnce(t *testing.T, teams []*Team, start func(*pe, *Team, int) (q *Request, in, out, want []byte)) {
	type running struct {
		q             *Request
		in, out, want []byte // in stays alive with it
		done          bool
	}
	all := make([]running, len(teams))
	for i := range teams {
		at := (i + p.me*3) % len(teams)
		q, in, out, want := start(p, teams[at], 1000+at)
		all[at] = running{q: q, in: in, out: out, want: want}
		_, err := q.Run(0)
		require.NoError(t, err)
	}
	for left := len(all); left > 0; time.Sleep(20 * time.Microsecond) {
		for i := range all {
			x := &all[i]
			if x.done {
				continue
			}
			done, err := x.q.Run(0)
			require.NoError(t, err)
			if done {
				x.done = true
				left--
				require.True(t, bytes.Equal(x.want, x.out))
				runtime.KeepAlive(x.in)
			}
		}
	}
}

func allReduceOf(c trial, in, out []byte) Call {
	return Call{Op: AllReduce, DType: int(c.dtype), RedOp: int(c.redop), Root: -1, In: addressOf(in), Out: addressOf(out), Count: c.count}
}
