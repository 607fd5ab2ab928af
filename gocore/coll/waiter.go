package coll

import (
	"context"
	"runtime"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// waiter waits for words of the own control block: on the doorbell through package hot, or, without a hot.World, by yielding
// and then sleeping.
type waiter struct {
	world  *hot.World
	state  *hot.Wait
	rounds int
}

func newWaiter(t *Team, deadline int64) waiter {
	w := waiter{world: t.cfg.World}
	if w.world != nil {
		w.state = new(hot.Wait)
		w.state.Reset(deadline)
	}
	return w
}

// turnNs bounds a turn, so that a cancelled context is seen.
const turnNs = 5e6

// turn waits a little; news says that an alarm was raised or enough time has passed to look at everything.
func (w *waiter) turn() (news bool) {
	if w.world != nil {
		return w.world.Turn(w.state, hot.Now()+turnNs) != hot.OK
	}
	w.rounds++
	if w.rounds < 100 {
		runtime.Gosched()
		return false
	}
	time.Sleep(min(time.Duration(w.rounds)*time.Microsecond, time.Millisecond))
	return w.rounds%8 == 0
}

func (w *waiter) progress() {
	w.rounds = 0
	if w.state != nil {
		w.state.Progress()
	}
}

// pause is one turn of a collective's wait; behind says which ranks it waits for.
func (g *remote) pause(ctx context.Context, behind func(r int) bool) error {
	if !g.wait.turn() && ctx.Err() == nil {
		return nil
	}
	if err := g.news(behind); err != nil {
		return err
	}
	if ctx.Err() == nil {
		return nil
	}
	for r := range g.t.n {
		if r != g.t.cfg.Me && behind(r) {
			g.missing = append(g.missing, g.t.cfg.PEs[r])
		}
	}
	return context.Cause(ctx)
}

// news is why the wait cannot succeed any more: poison, abort, a lost member that has not done its part.
func (g *remote) news(behind func(r int) bool) error {
	t := g.t
	at := layout.Poison(t.n)
	if code := status.Code(int32(loadWord32(t.control, at))); code != status.OK {
		g.culprit = int(int32(loadWord32(t.control, at+4)))
		switch code {
		case status.Mismatch, status.PeerDead, status.PeerLeft:
			return code
		}
		return status.TeamPoisoned
	}
	if t.cfg.Aborted != nil {
		if err := t.cfg.Aborted(); err != nil {
			return err
		}
	}
	if t.cfg.Lost == nil {
		return nil
	}
	for r, pe := range t.cfg.PEs {
		if r == t.cfg.Me {
			continue
		}
		if err := t.cfg.Lost(pe); err != nil && behind(r) { // lost first, then whether it had done its part before
			g.culprit = r
			return err
		}
	}
	return nil
}
