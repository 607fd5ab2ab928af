package main

import (
	"sync"
	"sync/atomic"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

// objects is what handles of this process stand for. The C side has its own tables for the hot path (worlds and teams
// by the same handles); these hold the Go objects behind them.
type objects struct {
	mu     sync.RWMutex
	worlds map[uint64]*world.World // by hot handle; guarded by mu
	teams  map[uint64]*world.Team  // by hot handle; guarded by mu
	ended  map[uint64]string       // labels of closed worlds, for the words; guarded by mu

	offers map[string]*bootstrap.Offer // sockets behind unique ids made here, until they are joined; guarded by mu

	requests table[*pending]
	blocks   table[*world.Block]
}

var all = objects{worlds: map[uint64]*world.World{}, teams: map[uint64]*world.Team{}, ended: map[uint64]string{}, offers: map[string]*bootstrap.Offer{}}

// pending is a request as the ABI sees it. finish turns its end into result words, once; drop undoes an end nobody asked for.
type pending struct {
	r      *world.Request
	finish func() ([4]uint64, error)
	drop   func(words [4]uint64)

	once  sync.Once
	words [4]uint64
	err   error

	fetched atomic.Bool // the result words were handed out
}

// settle gives the end of a finished request; asked again it answers the same.
func (p *pending) settle() ([4]uint64, error) {
	p.once.Do(func() {
		_, p.err = p.r.Wait(0)
		p.words = p.r.Result()
		if p.err == nil && p.finish != nil {
			p.words, p.err = p.finish()
		}
	})
	return p.words, p.err
}

// release ends the request for its caller. What it made and nobody fetched (Ctrl-C came in between) is undone: nobody else could.
func (p *pending) release() {
	p.r.Release()
	if p.drop == nil || p.fetched.Load() {
		return
	}
	if ended, err := p.r.Wait(0); !ended || err != nil {
		return
	}
	if words, err := p.settle(); err == nil {
		p.drop(words)
	}
}

func (o *objects) world(h uint64, op string) (*world.World, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if w := o.worlds[h]; w != nil {
		return w, nil
	}
	if label, ok := o.ended[h]; ok {
		return nil, status.New(status.Finalized, op, "world %s (handle %#x) was finalized; init a new one", label, h)
	}
	if h == 0 {
		return nil, status.New(status.NotInitialized, op, "no world: call init first")
	}
	return nil, status.New(status.StaleHandle, op, "no world has handle %#x", h)
}

func (o *objects) team(h uint64, op string) (*world.Team, error) {
	o.mu.RLock()
	defer o.mu.RUnlock()
	if t := o.teams[h]; t != nil {
		return t, nil
	}
	if h == 0 {
		return nil, status.New(status.NotInitialized, op, "no team: call init first (handle 0 is what a PE outside a new team gets)")
	}
	if label, ok := o.ended[h]; ok {
		return nil, status.New(status.Finalized, op, "the team's world %s was finalized; init a new one", label)
	}
	return nil, status.New(status.StaleHandle, op, "no team has handle %#x: it was destroyed, or never was", h)
}

func (o *objects) addWorld(w *world.World) (uint64, uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	o.worlds[w.Handle()] = w
	o.teams[w.WorldTeam().Handle()] = w.WorldTeam()
	return w.Handle(), w.WorldTeam().Handle()
}

func (o *objects) addTeam(t *world.Team) uint64 {
	if t == nil {
		return 0
	}
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.worlds[t.World().Handle()] == t.World() { // else it ended before its maker asked, and nobody would ever take the team out again
		o.teams[t.Handle()] = t
	}
	return t.Handle()
}

func (o *objects) removeTeam(h uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.teams, h)
}

// removeWorld forgets a closed world and its teams; their handles answer "finalized" from now on.
func (o *objects) removeWorld(h uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	w := o.worlds[h]
	if w == nil {
		return
	}
	delete(o.worlds, h)
	o.rememberLocked(h, w.Label())
	for th, t := range o.teams {
		if t.World() == w {
			delete(o.teams, th)
			if t == w.WorldTeam() {
				o.rememberLocked(th, w.Label())
			}
		}
	}
}

// rememberLocked keeps the names of the last closed worlds, so that many cycles do not grow the process; o.mu is held.
func (o *objects) rememberLocked(h uint64, label string) {
	const most = 256
	if len(o.ended) >= most {
		for old := range o.ended {
			delete(o.ended, old)
			break
		}
	}
	o.ended[h] = label
}

// current is the worlds that are up, for gshmem_info(0).
func (o *objects) current() []*world.World {
	o.mu.RLock()
	defer o.mu.RUnlock()
	var ws []*world.World
	for _, w := range o.worlds {
		ws = append(ws, w)
	}
	return ws
}

func staleBlock(op string, h uint64) error {
	return status.New(status.StaleHandle, op, "no block has handle %#x: it was freed or dropped, or never was", h)
}

// takeOffer finds and forgets the sockets behind a unique id: whoever joins with it owns them.
func (o *objects) takeOffer(uid []byte) *bootstrap.Offer {
	o.mu.Lock()
	defer o.mu.Unlock()
	offer := o.offers[string(uid)]
	delete(o.offers, string(uid))
	return offer
}
