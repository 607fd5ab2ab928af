package message

import (
	"context"
	"sync"

	"goshmem/gocore/fabric"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// Sizes of staged transfers.
const (
	chunkBytes    = 256 << 10
	maxStaged     = 4        // staged sends of a messenger that hold staging at once
	pullBytes     = 2 << 20  // most bytes a poll copies for one message
	overflowBytes = 16 << 20 // small messages queued here beyond this keep their sends waiting
)

// Scratch leases pieces of this PE's own segment that peers can get from.
type Scratch interface {
	// Lease gives n bytes; an error says what is exhausted and the knob.
	Lease(n uint64) (fabric.Ref, []byte, error)
	// Return ends a lease.
	Return(ref fabric.Ref, n uint64)
}

// Config is what a messenger works with. All fields must be set unless noted.
type Config struct {
	Me        int   // my rank
	PEs       []int // world PE of each rank
	Transport fabric.Transport
	Area      []byte       // my area: AreaSize(len(PEs)) bytes, zeroed before any member may send
	Areas     []fabric.Ref // every member's area
	Scratch   Scratch
	Eager     uint64               // largest message whose send finishes at once
	Mapped    func(rank int) bool  // whether Get from that rank is a plain copy; nil: Transport.Abilities().LoadStore
	Lost      func(rank int) error // why a member is gone (dead or left), nil while it is there
	Wake      func()               // makes whoever waits for my doorbell look again; called from other goroutines; nil: none
	Name      string               // of the team, for messages
}

// Messenger is one member's end of a team's messages. Its methods and those of its requests may be called from any goroutine.
//
// States: open -> closed (requests that are left fail) -> reclaimed (leases returned). Closing twice is fine.
type Messenger struct {
	cfg   Config
	n     int
	slots uint64
	ctx   context.Context
	stop  context.CancelFunc
	getWG sync.WaitGroup // goroutines that get from unmapped peers

	mu       sync.Mutex // guards everything below
	match    *matcher
	in       []inbox
	out      []outbox
	broken   []error // why a member cannot be reached, by rank
	active   []*incoming
	offers   map[offerID]*incoming // known large messages of others
	sends    map[uint64]*Send      // large sends not finished, by id
	staged   int                   // sends that hold staging
	waiting  []*Send               // sends told to go that wait for staging
	nextID   uint64
	queued   uint64 // bytes of small messages queued in outboxes
	progress uint64
	ended    bool // some request has ended since the last wake
	closed   bool
	line     [layout.Line]byte // where slots are made up
}

type offerID struct {
	src int
	id  uint64
}

// New makes this member's messenger. All members must have zeroed their areas before any of them sends.
func New(cfg Config) (*Messenger, error) {
	n := len(cfg.PEs)
	if uint64(len(cfg.Area)) != AreaSize(n) || len(cfg.Areas) != n || cfg.Me < 0 || cfg.Me >= n {
		return nil, status.New(status.Internal, "message area", "%d bytes and %d areas for rank %d of %d", len(cfg.Area), len(cfg.Areas), cfg.Me, n)
	}
	if cfg.Mapped == nil {
		mapped := cfg.Transport.Abilities().LoadStore
		cfg.Mapped = func(int) bool { return mapped }
	}
	if cfg.Wake == nil {
		cfg.Wake = func() {}
	}
	m := &Messenger{
		cfg: cfg, n: n, slots: slots(n), match: newMatcher(), in: make([]inbox, n), out: make([]outbox, n),
		broken: make([]error, n), offers: map[offerID]*incoming{}, sends: map[uint64]*Send{},
	}
	m.ctx, m.stop = context.WithCancel(context.Background())
	return m, nil
}

// Poll moves everything as far as it goes without waiting. Requests poll by themselves; call it for sends that finished at once
// while Pending says that some of them are still queued here.
func (m *Messenger) Poll() {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.pollLocked()
}

// pollLocked takes in what has come, moves transfers, sends what is queued; m.mu is held.
func (m *Messenger) pollLocked() {
	if m.closed {
		return
	}
	for src := range m.n {
		if src != m.cfg.Me {
			m.drain(src)
		}
	}
	for i := 0; i < len(m.active); {
		if m.advance(m.active[i]) {
			m.active = append(m.active[:i], m.active[i+1:]...)
		} else {
			i++
		}
	}
	m.startStaging()
	for dst := range m.n {
		m.pump(dst)
	}
	if m.ended { // its owner may be asleep while this goroutine polls
		m.ended = false
		m.cfg.Wake()
	}
}

// Progress counts what polls have moved. A waiter that sees it change should look again at once instead of sleeping.
func (m *Messenger) Progress() uint64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.progress
}

// Pending says that something is left to do here though its request has ended: messages queued for a full ring, or an answer
// that is due when a get has ended. Keep polling.
func (m *Messenger) Pending() bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return false
	}
	for _, in := range m.active {
		if in.stale != nil {
			return true
		}
	}
	for dst := range m.out {
		if len(m.out[dst].queue) > 0 && m.lostLocked(dst) == nil {
			return true
		}
	}
	return false
}

// lostLocked is why a member is gone or unreachable; m.mu is held.
func (m *Messenger) lostLocked(rank int) error {
	if rank == m.cfg.Me {
		return nil
	}
	if err := m.broken[rank]; err != nil {
		return err
	}
	if m.cfg.Lost == nil {
		return nil
	}
	return m.cfg.Lost(rank)
}

// Close fails every request that is left and waits for gets under way. What peers still want from this member's arena stays
// readable until Reclaim.
func (m *Messenger) Close() {
	m.mu.Lock()
	if !m.closed {
		m.closed = true
		m.failAllLocked(status.New(status.StaleHandle, "message", "%s was destroyed", m.cfg.Name))
	}
	m.mu.Unlock()
	m.stop()
	m.getWG.Wait()
}

// failAllLocked ends all requests with err; m.mu is held.
func (m *Messenger) failAllLocked(err error) {
	for _, q := range m.match.posted {
		for _, r := range q {
			r.end(err)
		}
	}
	for _, r := range m.match.wild {
		r.end(err)
	}
	for _, in := range m.active {
		if in.recv != nil {
			in.recv.end(err)
		}
	}
	for _, s := range m.sends {
		s.end(err)
	}
	for dst := range m.out {
		for _, it := range m.out[dst].queue {
			if it.owner != nil {
				it.owner.end(err)
			}
		}
		m.out[dst].queue = nil
	}
	m.match, m.active, m.waiting = newMatcher(), nil, nil
}

// Reclaim returns the leases. Call it after Close, when no member uses the team any more.
func (m *Messenger) Reclaim() {
	m.mu.Lock()
	defer m.mu.Unlock()
	for dst := range m.out {
		if o := &m.out[dst]; o.arena != nil {
			m.cfg.Scratch.Return(o.arenaRef, uint64(len(o.arena)))
			o.arena = nil
		}
	}
	for id, s := range m.sends {
		m.unstage(s)
		delete(m.sends, id)
	}
}
