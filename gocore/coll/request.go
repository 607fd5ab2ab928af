package coll

import (
	"goshmem/gocore/hot"
	"goshmem/gocore/plan"
	"goshmem/gocore/status"
)

// Request is one collective under way. One goroutine at a time.
type Request struct {
	m    runner
	done bool
	err  error
}

// runner is one executor's state of a collective.
type runner interface {
	run(until int64) (done bool, err error)
	giveUp(code status.Code) error
}

// Start begins a collective whose deadline is on the clock of hot.Now (hot.Forever: none). The error is a refusal: nothing has
// happened, the team is as before. The arrival is made by the first Run that finds the team free.
func (t *Team) Start(call Call, deadline int64) (*Request, error) {
	if code := t.dead(); code != status.OK {
		return nil, t.deadError(call, code)
	}
	if err := t.refusal(call); err != nil {
		return nil, err
	}
	if t.native {
		return &Request{m: &native{t: t, call: call, deadline: deadline, began: hot.Now(), c: hot.NewColl()}}, nil
	}
	if call.Op == Cast { // its root waits here: one-way is for mapped memory
		call.Op = Broadcast
	}
	return &Request{m: newRemote(t, call, deadline)}, nil
}

// Run drives the collective until it is over or `until` has passed on the clock of hot.Now (0: one look, hot.Forever: to the end).
// After done, err is its end; asked again, it answers the same.
func (r *Request) Run(until int64) (done bool, err error) {
	if !r.done {
		r.done, r.err = r.m.run(until)
	}
	return r.done, r.err
}

// GiveUp ends an unfinished request. If it had arrived, the team is dead for every member.
func (r *Request) GiveUp() {
	if !r.done {
		r.done, r.err = true, r.m.giveUp(status.Canceled)
	}
}

// native drives the C executor.
type native struct {
	t               *Team
	call            Call
	began, deadline int64
	c               *hot.Coll
	begun           bool
	wait            hot.Wait
	waiting         bool
}

func (n *native) run(until int64) (bool, error) {
	if !n.begun {
		if done, err := n.begin(until); !n.begun {
			if done {
				n.c.Free()
			}
			return done, err
		}
	}
	for {
		switch r := n.c.Run(until); r {
		case hot.OK:
			n.c.Free()
			return true, nil
		case hot.Pending:
			return false, nil
		case hot.NeedPlan:
			if err := n.install(); err != nil {
				return true, n.giveUp(status.Internal)
			}
		default:
			err := n.t.failure(n.story(r.Code()))
			n.t.died(err)
			n.c.Free()
			return true, err
		}
	}
}

// begin arrives as soon as the team is free. done without n.begun: it never will.
func (n *native) begin(until int64) (done bool, err error) {
	for {
		r := n.c.Begin(n.t.hot, n.call, n.deadline, true)
		if r == hot.OK {
			n.begun = true
			return false, nil
		}
		if r != hot.Slow {
			return true, n.t.refusedWords(OpName(n.call.Op), n.c.Why(), r.Code(), n.call)
		}
		if code := n.t.dead(); code != status.OK {
			return true, n.t.deadError(n.call, code)
		}
		if done, err := n.prepare(); done {
			return true, err
		}
		if n.c.Why() != hot.WhyTaken {
			continue
		}
		if out, err := n.pause(until); out {
			return err != nil, err
		}
	}
}

// prepare gives the team the room that the last begin lacked.
func (n *native) prepare() (done bool, err error) {
	why := n.c.Why()
	if why == hot.WhyTaken || !n.t.hold() {
		return false, nil
	}
	defer n.t.release()
	if why == hot.WhySlab {
		err = n.t.takeSlab()
	} else {
		err = n.t.takeStage()
	}
	return err != nil, err
}

// pause waits a turn for the team to become free. out: the slice or the time is over.
func (n *native) pause(until int64) (out bool, err error) {
	if !n.waiting {
		n.waiting = true
		n.wait.Reset(n.deadline)
	}
	if r := n.t.cfg.World.Turn(&n.wait, until); r == hot.Pending {
		if hot.Now() >= n.deadline {
			return true, status.New(status.Timeout, OpName(n.call.Op), "another operation of %s ran for all of %v; it has not begun", n.t.cfg.Name, waited(n.began))
		}
		return true, nil
	}
	if n.t.cfg.Aborted != nil {
		if err := n.t.cfg.Aborted(); err != nil {
			return true, err
		}
	}
	return false, nil
}

func (n *native) install() error {
	k := n.c.Key()
	p, err := plan.Make(n.t.planParams(k, n.c.Counts()))
	if err != nil {
		return err
	}
	n.c.Install(hotSteps(p.Steps), p.Phases)
	return nil
}

func (n *native) giveUp(code status.Code) error {
	err := status.New(code, OpName(n.call.Op), "given up after %v", waited(n.began))
	if n.begun {
		err = status.New(code, OpName(n.call.Op), "given up after %v; %s cannot be used any more", waited(n.began), n.t.cfg.Name)
		n.c.GiveUp(code)
		n.t.died(err)
	}
	n.c.Free()
	return err
}

// planParams is what the plan of a key is computed from.
func (t *Team) planParams(k hot.PlanKey, counts []uint64) plan.Params {
	p := plan.Params{Op: plan.Op(k.Op), Mode: plan.Mode(k.Mode), N: t.n, Me: t.cfg.Me, Root: k.Root, Elem: uint64(k.Elem), Len: k.Len, Pitch: k.Pitch,
		Stage: StageBytes, Crowded: t.cfg.Crowded, Counts: counts}
	if p.Mode == plan.Slab {
		p.Stage = t.cfg.SlabHalf
	}
	return p
}

func hotSteps(steps []plan.Step) []hot.Step {
	out := make([]hot.Step, len(steps))
	for i, s := range steps {
		out[i] = hot.Step{Kind: uint32(s.Kind), Phase: s.Phase, Peer: int32(s.Peer), Len: s.Len,
			Src: hotSpot(s.Src), Own: hotSpot(s.Own), Dst: hotSpot(s.Dst), Dst2: hotSpot(s.Dst2)}
	}
	return out
}

func hotSpot(p plan.Place) hot.Spot {
	return hot.Spot{Buf: int32(p.Buf), Rank: int32(p.Rank), Off: p.Off}
}
