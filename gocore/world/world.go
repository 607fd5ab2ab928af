package world

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/config"
	"goshmem/gocore/hot"
	"goshmem/gocore/liveness"
	"goshmem/gocore/message"
	"goshmem/gocore/segment"
	"goshmem/gocore/status"
	"goshmem/gocore/team"
)

// Default asks for a team's or the world's own timeout (gshmem.h: GSHMEM_DEFAULT_TIMEOUT).
const Default = -1 << 63

// World is one PE's membership in a job. Its methods may be called from any goroutine.
type World struct {
	// Fixed once up.
	me, n   int
	label   string
	cfg     *config.Config
	method  string // of the rendezvous, and why
	reason  string
	timeout time.Duration // negative: none
	began   time.Time
	upAfter time.Duration

	seg     *segment.Segment
	segs    []*segment.Segment // by PE: mapped segments, own included; nil when unmapped
	how     []string           // by PE: how it is reached, for info()
	matrix  [][]bool           // matrix[i][j]: i and j have mapped each other; the same on all PEs
	peers   []intro
	crowded bool
	direct  bool // all PEs are mapped: nothing is ever outstanding but on a device
	hot     *hot.World
	handle  uint64
	net     *network
	scratch *scratch
	stages  *coll.Stages
	engine  *engine
	world   *Team
	monitor *liveness.Monitor

	ctx    context.Context // ends with the world, an abort, or nothing else
	cancel context.CancelCauseFunc

	completed *completions

	host  *arena                      // of host memory
	accel atomic.Pointer[accelerator] // nil without a device; once there it stays until the world's end
	noDev atomic.Pointer[string]      // why there is no device
	marks indexes                     // numbers of teams on devices

	gate   gate // who is at work here; the end waits for them
	blocks ledger

	sweepMu sync.Mutex // held while members are told what became of destroyed teams, so that the last word stays the last; taken before teamMu

	teamMu sync.Mutex
	teams  map[*Team]bool // live teams; guarded by teamMu
	loose  map[*lane]bool // lanes of single messages that the engine runs; guarded by teamMu
	gone   []*Team        // destroyed here, not yet everywhere: their control blocks stay; guarded by teamMu
	stuck  []*Team        // destroyed, but a thread of C did not come out of their tables in time; guarded by teamMu

	lifeMu   sync.Mutex
	closing  bool          // guarded by lifeMu
	closed   chan struct{} // closed when the world is
	ended    error         // how Finalize ended; written before closed is closed
	deaths   []death       // in the order they were found; guarded by lifeMu
	aborted  error         // guarded by lifeMu
	leaveOff uint64        // offset in every PE's segment of n words: word p is set when PE p leaves
	leaves   []byte        // own ones
	undone   uint64        // leftUndone, or 0; written by Finalize
}

// Me is this PE's number, N how many there are, Label the name in messages, Handle what C callers find the world by.
func (w *World) Me() int { return w.me }

// N is the number of PEs.
func (w *World) N() int { return w.n }

// Label is the world's name in messages.
func (w *World) Label() string { return w.label }

// Handle is what C callers find the world by.
func (w *World) Handle() uint64 { return w.handle }

// WorldTeam is the team of all PEs. It lives as long as the world.
func (w *World) WorldTeam() *Team { return w.world }

func (w *World) heapLow() uintptr  { return baseOf(w.seg.Bytes()) + uintptr(w.seg.Geo.HeapOff) }
func (w *World) heapBytes() uint64 { return w.seg.Geo.HeapLen }

// usable refuses operations on a world that is going down or was aborted.
func (w *World) usable(op string) error {
	w.lifeMu.Lock()
	defer w.lifeMu.Unlock()
	if w.closing {
		return w.finalized(op)
	}
	return w.aborted
}

// death is one PE's end as waits for an unknown writer see it.
type death struct {
	pe   int
	told bool // some operation has reported it, or it is news to nobody
}

// lost is why a PE is dead, nil while it lives. Asking counts as having been told.
func (w *World) lost(pe int) error {
	if w.monitor == nil {
		return nil
	}
	err := w.monitor.Dead(pe)
	if err != nil {
		w.lifeMu.Lock()
		for i := range w.deaths {
			w.deaths[i].told = w.deaths[i].told || w.deaths[i].pe == pe
		}
		w.lifeMu.Unlock()
	}
	return err
}

// deathsSoFar is where a wait begins to look for deaths.
func (w *World) deathsSoFar() int {
	w.lifeMu.Lock()
	defer w.lifeMu.Unlock()
	return len(w.deaths)
}

// freshDeath is a death that nobody here was told of yet, or one that happened since a wait began. A wait for an unknown writer
// ends with it, because the writer may be the dead one; survivors that go on afterwards are not disturbed by it again.
func (w *World) freshDeath(since int) (int, error) {
	w.lifeMu.Lock()
	defer w.lifeMu.Unlock()
	for i := range w.deaths {
		d := &w.deaths[i]
		if !d.told || i >= since && !w.left(d.pe) {
			d.told = true
			return d.pe, w.monitor.Dead(d.pe)
		}
	}
	return -1, nil
}

// died is what the monitor calls, once per PE.
func (w *World) died(pe int, _ error) {
	w.lifeMu.Lock()
	w.deaths = append(w.deaths, death{pe, w.left(pe)}) // the end of a PE that has finalized is news to nobody
	w.lifeMu.Unlock()
	w.hot.MarkDead(pe)
	if x := w.device(); x != nil && !w.left(pe) {
		x.fail(w.monitor.Dead(pe))
	}
}

// lanes lists what the engine looks at.
func (w *World) lanes() []*lane {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	ls := make([]*lane, 0, len(w.teams)+len(w.loose))
	for t := range w.teams {
		ls = append(ls, t.lane)
	}
	for l := range w.loose {
		ls = append(ls, l)
	}
	return ls
}

// messengers lists what the engine pumps.
func (w *World) messengers() []*message.Messenger {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	ms := make([]*message.Messenger, 0, len(w.teams)+1)
	for t := range w.teams {
		ms = append(ms, t.msg)
		if t.inner != nil {
			ms = append(ms, t.inner)
		}
	}
	return ms
}

// Completions waits up to slice for ends of requests that asked to be reported. It fails once the world is closed.
func (w *World) Completions(slice time.Duration, most int) ([]*Request, error) {
	var timer <-chan time.Time
	if slice >= 0 {
		t := time.NewTimer(slice)
		defer t.Stop()
		timer = t.C
	}
	for {
		rs, open := w.completed.take(most)
		if len(rs) > 0 {
			return rs, nil
		}
		if !open {
			return nil, status.New(status.Finalized, "completions_wait", "world %s was finalized", w.label)
		}
		select {
		case <-w.completed.some:
		case <-timer:
			return nil, nil
		}
	}
}

// set is the world's PEs in order.
func (w *World) set() team.Set { return team.World(w.n) }
