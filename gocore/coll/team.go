package coll

import (
	"sync"
	"sync/atomic"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// Team runs the collectives of an ordered set of PEs. Its methods may be called from any goroutine.
type Team struct {
	cfg    Config
	n      int
	hot    *hot.Team // nil in tests without a hot.World
	handle uint64
	native bool // the C executor runs

	control []byte // own block

	// The slab belongs to the team until its end: peers may read it after the operation.
	slabOff  uint64 // guarded by holding the team (hot busy, or turn)
	slab     []byte
	stageOff uint64 // Go executor's lease; the C executor keeps its own in hot.Team
	stage    []byte
	seq      uint32 // of the Go executor

	turn    chan struct{} // Go executor: holds a token while nobody runs
	timeout atomic.Int64
	poison  atomic.Int32 // Go executor's own copy

	mu    sync.Mutex
	cause error // why the team died, as this PE worded it; guarded by mu
}

// New makes a team, which can be used after Publish. Not collective by itself: members must not begin an operation before all of them
// have made the team's control blocks (zeroed), which an exchange of the parent gives.
func New(cfg Config) (*Team, error) {
	if cfg.SlabHalf == 0 {
		cfg.SlabHalf = DefaultSlabHalf
	}
	t := &Team{cfg: cfg, n: len(cfg.PEs), turn: make(chan struct{}, 1)}
	t.turn <- struct{}{}
	t.timeout.Store(cfg.Timeout)
	own := cfg.Control[cfg.Me]
	t.control = cfg.Segment[own : own+layout.ControlSize(t.n)]
	if cfg.World != nil {
		if err := t.table(); err != nil {
			return nil, err
		}
	}
	return t, nil
}

// table fills the team's table in C memory.
func (t *Team) table() error {
	h, err := hot.NewTeam(t.cfg.World, t.cfg.Me, t.n)
	if err != nil {
		return err
	}
	t.hot, t.native = h, !t.cfg.ForceGo
	for r, pe := range t.cfg.PEs {
		var block []byte
		if r == t.cfg.Me {
			block = t.control
		} else if t.cfg.Mapped != nil {
			if seg := t.cfg.Mapped(pe); seg != nil {
				block = seg[t.cfg.Control[r] : t.cfg.Control[r]+layout.ControlSize(t.n)]
			}
		}
		h.SetMember(r, pe, t.cfg.Control[r], block)
		t.native = t.native && block != nil
	}
	h.SetMapped(t.native)
	h.SetSlabHalf(t.cfg.SlabHalf)
	h.SetTimeout(t.cfg.Timeout)
	return nil
}

// Publish lets operations start, of Go and (by the handle) of C callers.
func (t *Team) Publish() {
	if t.hot != nil {
		t.handle = t.hot.Publish()
	}
}

// Handle is what C callers find the team by.
func (t *Team) Handle() uint64 { return t.handle }

// Executor says who runs the collectives: "c" over mapped memory, or "go" over the transport's name.
func (t *Team) Executor() string {
	if t.native {
		return "c"
	}
	return "go over " + t.cfg.Transport.Name()
}

// SetTimeout sets the default of the team's operations in ns; negative: none.
func (t *Team) SetTimeout(ns int64) {
	t.timeout.Store(ns)
	if t.hot != nil {
		t.hot.SetTimeout(ns)
	}
}

// Timeout is the default of the team's operations.
func (t *Team) Timeout() int64 { return t.timeout.Load() }

// SetQueued says how many asynchronous operations stand in the team's queue: while there are some, C callers queue behind them.
func (t *Team) SetQueued(n int) {
	if t.hot != nil {
		t.hot.SetQueued(n)
	}
}

// SetSeq makes the next operation the one after seq, for tests of the wrap: on all members, while nothing runs.
func (t *Team) SetSeq(seq uint32) {
	t.seq = seq
	if t.hot != nil {
		t.hot.SetSeq(seq)
	}
}

// Health is nil while the team works, else why it died.
func (t *Team) Health() error {
	code := t.dead()
	if code == status.OK {
		return nil
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause != nil {
		return t.cause
	}
	return t.poisonedError("", code)
}

// dead is the status the team died of.
func (t *Team) dead() status.Code {
	if t.hot != nil {
		if c := t.hot.Poison(); c != status.OK {
			return c
		}
	}
	if c := t.poison.Load(); c != 0 {
		return status.Code(c)
	}
	return status.Code(int32(loadWord32(t.control, layout.Poison(t.n))))
}

// died keeps the first words for the team's end.
func (t *Team) died(err error) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.cause == nil {
		t.cause = err
	}
}

// Close ends the team's table here and gives its stage back. Requests must be over; a thread of C inside one is told to come out and given `patience`.
// false: something still runs, and its memory stays taken. Reclaim ends the rest.
func (t *Team) Close(patience time.Duration) bool {
	if t.hot != nil && !t.hot.Close(0) {
		// A thread of C is inside. It sees poison, and so do the members that wait with it.
		t.hot.PoisonAll(status.Canceled, t.cfg.Me, t.hot.Number())
		t.cfg.World.RaiseAlarm()
		if !t.hot.Close(patience) {
			return false
		}
	}
	select {
	case <-t.turn:
	case <-time.After(patience):
		return false
	}
	if t.cfg.Stages != nil {
		t.cfg.Stages.forget(t)
	}
	return true
}

// Reclaim gives the slab back. After Close, and when no member uses the team any more: a peer may read my slab until it has begun
// its operation after the next, or closed. The control block, for which the same holds, is the caller's.
func (t *Team) Reclaim() {
	if t.slab != nil {
		t.cfg.Scratch.Free(t.slabOff)
		t.slab = nil
	}
}
