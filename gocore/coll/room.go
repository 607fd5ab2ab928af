package coll

import (
	"sync"

	"goshmem/gocore/status"
)

// StageBytes is the staging of one operation on large ordinary buffers; the same everywhere, since schedules depend on it.
const StageBytes = 1 << 20

// stagesKept is how many teams keep a stage between operations: 4 MiB in all.
const stagesKept = 4

// Stages leases staging to the teams of a world. A team keeps its lease until another needs it; a team that runs never loses it. When
// all kept ones are in use, more are made: waiting for one could wait for a peer that waits for us.
type Stages struct {
	scratch Scratch

	mu   sync.Mutex
	all  []*stage // guarded by mu
	hand int      // where the search for an idle one begins; guarded by mu
}

type stage struct {
	off  uint64
	mem  []byte
	team *Team // who has it
}

// NewStages makes the pool; nothing is allocated before it is needed.
func NewStages(s Scratch) *Stages { return &Stages{scratch: s} }

// lease gives t a stage. The caller holds t.
func (p *Stages) lease(t *Team) error {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all) >= stagesKept {
		if s := p.idleLocked(); s != nil {
			s.team = t
			t.setStage(s.mem, s.off)
			return nil
		}
	}
	off, mem, err := p.scratch.Alloc(StageBytes)
	if err != nil {
		if s := p.idleLocked(); s != nil {
			s.team = t
			t.setStage(s.mem, s.off)
			return nil
		}
		return status.Wrap(status.NoMemory, "collective", err, "staging for %s (%d bytes)", t.cfg.Name, StageBytes)
	}
	p.all = append(p.all, &stage{off, mem, t})
	t.setStage(mem, off)
	return nil
}

// idleLocked takes a stage from a team that does not run now. p.mu is held.
func (p *Stages) idleLocked() *stage {
	for i := range p.all {
		s := p.all[(p.hand+i)%len(p.all)]
		if s.team == nil {
			p.hand += i + 1
			return s
		}
		if s.team.hold() {
			s.team.setStage(nil, 0)
			s.team.release()
			p.hand += i + 1
			return s
		}
	}
	return nil
}

// forget takes a closed team's stage back.
func (p *Stages) forget(t *Team) {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		if s.team == t {
			s.team = nil
		}
	}
}

// Close frees all staging; no team may be left.
func (p *Stages) Close() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, s := range p.all {
		p.scratch.Free(s.off)
	}
	p.all = nil
}

// hold takes the team as an operation does; false while one runs.
func (t *Team) hold() bool {
	if t.native {
		return t.hot.Acquire()
	}
	select {
	case <-t.turn:
		return true
	default:
		return false
	}
}

func (t *Team) release() {
	if t.native {
		t.hot.Leave()
		return
	}
	t.turn <- struct{}{}
}

// setStage is called while the team is held.
func (t *Team) setStage(mem []byte, off uint64) {
	t.stage, t.stageOff = mem, off
	if t.native {
		t.hot.SetStage(mem, off)
	}
}

// takeSlab gives the team its slab. The team is held.
func (t *Team) takeSlab() error {
	if t.slab != nil {
		return nil
	}
	off, mem, err := t.cfg.Scratch.Alloc(2 * t.cfg.SlabHalf)
	if err != nil {
		return status.Wrap(status.NoMemory, "collective", err, "the slab of %s (%d bytes)", t.cfg.Name, 2*t.cfg.SlabHalf)
	}
	t.slab, t.slabOff = mem, off
	if t.native {
		t.hot.SetSlab(mem, off)
	}
	return nil
}

// takeStage gives the team a stage when it has none. The team is held.
func (t *Team) takeStage() error {
	if t.stage != nil {
		return nil
	}
	return t.cfg.Stages.lease(t)
}
