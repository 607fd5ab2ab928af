package coll

import (
	"context"
	"encoding/binary"
	"errors"
	"time"

	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/plan"
	"goshmem/gocore/status"
)

// remote is the Go executor's state of a collective: a goroutine that runs the same protocol as hot/exec.c over the transport, because
// a transport's calls block. Run only waits for it.
type remote struct {
	t        *Team
	call     Call
	deadline int64
	began    int64

	started bool
	end     chan struct{} // closed when the goroutine is over
	err     error         // written before end is closed
	ctx     context.Context
	cancel  context.CancelCauseFunc

	// Of the goroutine.
	is            hot.Checked
	seq, fp       uint32
	arrived       bool
	in, out       []byte
	inRef, outRef uint64
	base          uint64
	phase0        uint32
	mode          plan.Mode
	lines         []line // by rank, after the arrivals
	wait          waiter
	culprit       int
	missing       []int
}

// line is what a member's arrival said.
type line struct {
	inRef, outRef, stageRef uint64
	inline                  []byte
}

func newRemote(t *Team, call Call, deadline int64) *remote {
	return &remote{t: t, call: call, deadline: deadline, began: hot.Now(), end: make(chan struct{}), culprit: -1}
}

func (g *remote) run(until int64) (bool, error) {
	if !g.started {
		g.started = true
		g.ctx, g.cancel = context.WithCancelCause(context.Background())
		go g.work()
	}
	select {
	case <-g.end:
		return true, g.err
	default:
	}
	if until == 0 {
		return false, nil
	}
	var over <-chan time.Time
	if until != hot.Forever {
		timer := time.NewTimer(time.Duration(until - hot.Now()))
		defer timer.Stop()
		over = timer.C
	}
	select {
	case <-g.end:
		return true, g.err
	case <-over:
		return false, nil
	}
}

func (g *remote) giveUp(code status.Code) error {
	err := status.New(code, OpName(g.call.Op), "given up after %v", waited(g.began))
	if !g.started {
		return err
	}
	g.cancel(err)
	<-g.end // transports end at once when their context does
	if g.err == nil {
		return err // it had finished in the meantime: its results are simply not wanted
	}
	return g.err
}

// work runs the collective from taking the team to its end.
func (g *remote) work() {
	defer close(g.end)
	defer g.cancel(nil)
	ctx, stop := g.withDeadline()
	defer stop()
	g.wait = newWaiter(g.t, g.deadline)
	select {
	case <-g.t.turn:
	case <-ctx.Done():
		g.err = context.Cause(ctx)
		if errors.Is(g.err, errLate) {
			g.err = status.New(status.Timeout, OpName(g.call.Op), "another operation of %s ran for all of %v; it has not begun", g.t.cfg.Name, waited(g.began))
		}
		return
	}
	err := g.whole(ctx)
	if err != nil && g.arrived {
		err = g.ended(ctx, err)
	}
	g.err = err
	g.t.turn <- struct{}{}
	if g.t.cfg.World != nil {
		g.t.cfg.World.RingSelf()
	}
}

var errLate = errors.New("deadline")

func (g *remote) withDeadline() (context.Context, context.CancelFunc) {
	if g.deadline == hot.Forever {
		return g.ctx, func() {}
	}
	return context.WithTimeoutCause(g.ctx, time.Duration(g.deadline-hot.Now()), errLate)
}

// ended words the failure and marks the team dead on every member.
func (g *remote) ended(ctx context.Context, err error) error {
	s := story{code: status.Of(err), call: g.call, desc: g.is.Desc, seq: g.seq, number: g.seq, culprit: g.culprit, missing: g.missing, began: g.began, deadline: g.deadline, cause: nil}
	if context.Cause(ctx) != nil && !errors.Is(err, status.Mismatch) {
		err = context.Cause(ctx)
		s.code = status.Of(err)
	}
	if errors.Is(err, errLate) {
		s.code = status.Timeout
		if len(s.missing) == 0 {
			s.missing = g.absent()
		}
	}
	s.theirs = g.t.theirs(g.seq, g.seq)
	s.pair = func(r int) (v [4]uint64) {
		for i := range v {
			v[i] = binary.LittleEndian.Uint64(g.t.control[layout.Arrival(g.t.n, int(g.seq&1), r)+layout.ArrInline+uint64(8*i):])
		}
		return v
	}
	switch s.code {
	case status.Timeout, status.Mismatch, status.PeerDead, status.PeerLeft, status.TeamPoisoned, status.Aborted:
		var e *status.Error
		if s.culprit < 0 && errors.As(err, &e) && (s.code == status.PeerDead || s.code == status.PeerLeft) {
			s.culprit = g.t.rankOf(e.PE)
		}
		err = g.t.failure(s)
	default:
		err = status.Wrap(s.code, OpName(g.call.Op), err, "operation %d of %s; it cannot be used any more", g.seq, g.t.cfg.Name)
	}
	g.t.died(err)
	g.poisonAll(s.code, s.culprit)
	return err
}

func (t *Team) rankOf(pe int) int {
	for r, p := range t.cfg.PEs {
		if p == pe {
			return r
		}
	}
	return -1
}

// absent is the PEs that have not arrived.
func (g *remote) absent() (pes []int) {
	for r := range g.t.n {
		if r != g.t.cfg.Me && !g.here(r) {
			pes = append(pes, g.t.cfg.PEs[r])
		}
	}
	return pes
}

// controlOf is a place in a rank's control block.
func (t *Team) controlOf(rank int, off uint64) fabric.Addr {
	return fabric.Addr{PE: t.cfg.PEs[rank], Ref: fabric.MakeRef(0, t.cfg.Control[rank]+off)}
}

// poisonAll marks the team dead for every member; who cannot be reached learns it otherwise. It takes at most a second.
func (g *remote) poisonAll(code status.Code, culprit int) {
	t := g.t
	by := t.cfg.Me
	if culprit >= 0 && culprit < t.n && (code == status.PeerDead || code == status.PeerLeft || code == status.Mismatch) {
		by = culprit
	}
	t.poisonAll(code, by, g.seq)
}

// Condemn marks the team dead for every member, for what was found outside of its collectives: no rank and none of its operations is at fault.
// cause is how it is worded here. It takes at most a second.
func (t *Team) Condemn(code status.Code, cause error) {
	t.died(cause)
	t.poisonAll(code, -1, 0)
}

func (t *Team) poisonAll(code status.Code, by int, seq uint32) {
	t.poison.CompareAndSwap(0, int32(code))
	if t.hot != nil {
		t.hot.PoisonAll(code, by, seq)
	}
	if code == status.Aborted {
		return
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	done := make(chan struct{}, t.n)
	for r := range t.n {
		go func() {
			defer func() { done <- struct{}{} }()
			if r != t.cfg.Me {
				t.poisonOne(ctx, r, code, by, seq)
			}
		}()
	}
	for range t.n {
		<-done
	}
}

// poisonOne writes a member's poison line: the reason last, and only over none.
func (t *Team) poisonOne(ctx context.Context, r int, code status.Code, by int, seq uint32) {
	var b [8]byte
	binary.LittleEndian.PutUint32(b[:], uint32(int32(by)))
	binary.LittleEndian.PutUint32(b[4:], seq)
	at := layout.Poison(t.n)
	tr, pe := t.cfg.Transport, t.cfg.PEs[r]
	// Errors are dropped on purpose: a member that cannot be told is lost, and its own waits find that out.
	if old, err := tr.Atomic(ctx, t.controlOf(r, at), fabric.Atomic{Op: fabric.Fetch, Width: 4}); err != nil || old != 0 {
		return
	}
	if tr.Put(ctx, t.controlOf(r, at+4), b[:]) != nil || tr.Fence(ctx, pe) != nil {
		return
	}
	_, _ = tr.Atomic(ctx, t.controlOf(r, at), fabric.Atomic{Op: fabric.CompareSwap, Width: 4, Operand: uint64(uint32(int32(code)))})
	_, _ = tr.Atomic(ctx, fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, layout.HdrAlarm)}, fabric.Atomic{Op: fabric.Add, Width: 4, Operand: 1})
}
