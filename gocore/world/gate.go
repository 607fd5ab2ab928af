package world

import (
	"sync/atomic"
	"time"

	"goshmem/gocore/status"
)

// gate counts who is at work in a world's memory and tables, so that they go away only after the last has come out. Entering
// again from inside is fine: once the gate is shut it fails, and the one inside comes out with that error.
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
func (w *World) vacate() {
	w.gate.shut()
	for {
		w.endRequests()
		if w.gate.empty() {
			return
		}
		time.Sleep(100 * time.Microsecond)
	}
}
