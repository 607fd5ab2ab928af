package world

import (
	"encoding/binary"
	"errors"
	"time"

	"goshmem/gocore/message"
	"goshmem/gocore/status"
	"goshmem/gocore/team"
)

// CreateTeam makes a team of any PEs in any order, by its members alone: each tells each other where its control block is, through
// messages of the world that users do not see. key tells apart teams that are made at the same time. Collective over the
// listed PEs; others do not take part.
func (w *World) CreateTeam(pes []int, key uint64, timeout int64, slice time.Duration) (*Request, func() []*Team, error) {
	const op = "team_create"
	if err := w.enter(op); err != nil {
		return nil, nil, err
	}
	defer w.exit()
	set, err := team.Of(pes, w.n)
	if err != nil {
		return nil, nil, err
	}
	if !set.Contains(w.me) {
		return nil, nil, status.New(status.InvalidArgument, op, "PE %d is no member of %s; only members take part", w.me, set.String())
	}
	w.sweep() // memory and numbers of teams that have ended come back
	off, _, err := w.scratch.Alloc(placeBytes(set.Size()))
	if err != nil {
		return nil, nil, err
	}
	a := &assembling{w: w, set: set, me: set.Rank(w.me), key: key, off: off, heard: make([][]byte, set.Size())}
	if err := a.open(timeout); err != nil {
		a.giveUp()
		return nil, nil, err
	}
	return w.startLoose(a, How{}, slice), func() []*Team { return []*Team{a.made} }, nil
}

// assembling is one member's part in making a team from nothing.
type assembling struct {
	w     *World
	set   team.Set
	me    int
	key   uint64
	off   uint64 // own place, 0 once the team has it
	mark  bidding
	began time.Time
	until time.Time
	err   error // of placing the team on the device
	say   []byte
	heard [][]byte
	steps []*messaging // sends and receives that have not ended
	made  *Team
}

// What members tell each other.
const (
	tellSet   = 0  // u64: fingerprint
	tellKey   = 8  // u64
	tellPlace = 16 // u64
	tellIndex = 24 // u32: bid for the number on devices; in the last round the status of placing the team there
	tellKind  = 28 // u32: tellBid, plus tellKernels where kernels run; or tellPlaced
	tellBytes = 32

	tellBid     = 1
	tellKernels = 2
	tellPlaced  = 4
)

func (a *assembling) open(timeout int64) error {
	a.w.device().judged()
	a.began, a.until = time.Now(), a.w.world.clock(timeout)
	a.mark.first(&a.w.marks)
	return a.bid()
}

// bid is a round in which the members say which number they can take.
func (a *assembling) bid() error {
	kind := uint32(tellBid)
	if a.w.device().hasKernels() {
		kind |= tellKernels
	}
	return a.round(a.mark.bid, kind)
}

// round tells all members and listens to them.
func (a *assembling) round(index, kind uint32) error {
	tag := keyTag(a.set, a.key)
	a.say = make([]byte, tellBytes)
	binary.LittleEndian.PutUint64(a.say[tellSet:], a.set.Fingerprint())
	binary.LittleEndian.PutUint64(a.say[tellKey:], a.key)
	binary.LittleEndian.PutUint64(a.say[tellPlace:], a.off)
	binary.LittleEndian.PutUint32(a.say[tellIndex:], index)
	binary.LittleEndian.PutUint32(a.say[tellKind:], kind)
	a.heard[a.me] = a.say
	quiet := a.w.world.inner
	for rank, pe := range a.set.PEs() {
		if rank == a.me {
			continue
		}
		a.heard[rank] = make([]byte, tellBytes)
		r, err := quiet.Recv(a.heard[rank], pe, tag, a.until)
		if err != nil {
			return err
		}
		a.add(r)
		s, err := quiet.Send(pe, tag, a.say, message.Private, a.until)
		if err != nil {
			return err
		}
		a.add(s)
	}
	return nil
}

func (a *assembling) add(s step) {
	m := a.w.world.drive("team_create", s, nil)
	m.msg = a.w.world.inner
	a.steps = append(a.steps, m)
}

func (a *assembling) run(until int64) (bool, error) {
	for {
		for len(a.steps) > 0 {
			done, err := a.steps[0].run(until)
			if !done {
				return false, nil
			}
			if err != nil {
				a.giveUp()
				return true, a.worded(err)
			}
			a.steps = a.steps[1:]
		}
		again, err := a.next()
		if err != nil {
			a.giveUp()
		}
		if err != nil || !again {
			return true, err
		}
	}
}

// worded says what a member's silence means: users know nothing of the messages it was to answer.
func (a *assembling) worded(err error) error {
	var known *status.Error
	if !errors.As(err, &known) || known.Code != status.Timeout {
		return err
	}
	return status.At(status.Timeout, "team_create", known.PE, "it did not take part in making %s within %v; every member must give the same PEs in the same order, and the same key",
		a.w.nameOf(a.set), time.Since(a.began).Round(time.Millisecond))
}

// next looks at what the members told. Once all bids for the number are equal the team is made; all see the same, so all stop in the
// same round.
func (a *assembling) next() (again bool, err error) {
	if a.made != nil {
		return false, a.allPlaced()
	}
	var bids []uint32
	kernels := true
	places := make([]place, a.set.Size())
	for rank, h := range a.heard {
		if string(h[:tellPlace]) != string(a.say[:tellPlace]) {
			return false, status.At(status.Mismatch, "team_create", a.set.PE(rank), "it is making another team with the same tag; give each team its own key")
		}
		places[rank] = placeAt(binary.LittleEndian.Uint64(h[tellPlace:]), a.set.Size())
		bids = append(bids, binary.LittleEndian.Uint32(h[tellIndex:]))
		kernels = kernels && binary.LittleEndian.Uint32(h[tellKind:])&tellKernels != 0
	}
	if !a.mark.settle(bids) {
		return true, a.bid()
	}
	t, err := a.w.newTeam(a.set, places, a.mark.index())
	if err != nil {
		return false, err
	}
	a.made, a.off, a.mark.of = t, 0, nil
	if !kernels {
		return false, nil
	}
	a.err = a.w.device().admit(t) // no member queues a kernel before all have done so
	return true, a.round(uint32(int32(status.Of(a.err))), tellPlaced)
}

// allPlaced fails on all members when kernels of one could not be told of the team.
func (a *assembling) allPlaced() error {
	for rank, h := range a.heard {
		if code := status.Code(int32(binary.LittleEndian.Uint32(h[tellIndex:]))); code != status.OK {
			if rank == a.me {
				return a.err
			}
			return status.At(code, "team_create", a.set.PE(rank), "its device has no room for another team (its own error says more); destroy teams")
		}
	}
	return nil
}

func (a *assembling) giveUp() {
	for _, s := range a.steps {
		s.giveUp()
	}
	a.steps = nil
	a.mark.giveUp()
	if a.made != nil {
		_ = a.made.Destroy() // it is no world team
		a.made = nil
	}
	if a.off != 0 && a.w.gate.enter() { // where the world ends, its scratch ends with it
		a.w.scratch.Free(a.off)
		a.w.exit()
	}
	a.off = 0
}

func (a *assembling) words() [4]uint64 { return [4]uint64{} }
