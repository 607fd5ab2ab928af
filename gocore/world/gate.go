package world

import (
	"sync/atomic"
	"time"

	"goshmem/gocore/status"
)

// gate counts who is at work in the memory and tables of a world or a team, so that they go away only after the last has come out. Entering
// again from inside is fine: once the gate is shut it fails, and the one inside comes out with that error.
//
// Who ends a world or a team shuts its gate, then ends what stands in its lanes again and again until nobody is inside, and once more after
// that: requests are put into a lane from inside only, so none is left behind. A request whose gate is shut is ended by whoever shut it, never by
// its own threads, so that its operation is given up exactly once and while its memory is there.
//
// A thread is in the world's gate before it enters a team's.
type gate struct{ v atomic.Int64 }

const gateShut = 1 << 62

func (g *gate) enter() bool {
	if g.v.Add(1)&gateShut == 0 {
		return true
	}
	g.v.Add(-1)
	return false
}

func (g *gate) exit() { g.v.Add(-1) }

// shut lets nobody in any more.
func (g *gate) shut() { g.v.Or(gateShut) }

func (g *gate) empty() bool { return g.v.Load()&^gateShut == 0 }

// finalized is what operations of a world that is going down or gone end with.
func (w *World) finalized(op string) error {
	return status.New(status.Finalized, op, "world %s was finalized; init a new one", w.label)
}

// enter begins an operation that touches the world's memory or tables. Without an error, exit ends it.
func (w *World) enter(op string) error {
	if !w.gate.enter() {
		return w.finalized(op)
	}
	if err := w.usable(op); err != nil {
		w.gate.exit()
		return err
	}
	return nil
}

func (w *World) exit() { w.gate.exit() }

// vacate shuts the gate, ends the requests that are left, and returns when nobody is inside.
func (w *World) vacate() { w.gate.vacate(w.endRequests) }

// vacate shuts a gate and calls end until nobody is inside, and once after that.
func (g *gate) vacate(end func()) {
	g.shut()
	for {
		last := g.empty() // before the call: who went out meanwhile may have left something
		end()
		if last {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}

// destroyed is what operations of a team that was destroyed end with.
func (t *Team) destroyed(op string) error {
	return status.New(status.StaleHandle, op, "%s was destroyed", t.name())
}

// hold keeps the team's tables, and the world's, in place until exit, whatever else is the matter with them.
func (t *Team) hold(op string) error {
	if !t.w.gate.enter() {
		return t.w.finalized(op)
	}
	if !t.gate.enter() {
		t.w.gate.exit()
		return t.destroyed(op)
	}
	return nil
}

// enter begins an operation of the team. Without an error, exit ends it.
func (t *Team) enter(op string) error {
	if err := t.hold(op); err != nil {
		return err
	}
	if err := t.w.usable(op); err != nil {
		t.exit()
		return err
	}
	return nil
}

func (t *Team) exit() {
	t.gate.exit()
	t.w.gate.exit()
}
