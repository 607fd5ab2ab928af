package world

import (
	"encoding/binary"
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
	say   []byte
	heard [][]byte
	steps []*messaging // sends and receives that have not ended
	made  *Team
}

func (a *assembling) open(timeout int64) error {
	const bytes = 24
	tag := keyTag(a.set, a.key)
	a.say = binary.LittleEndian.AppendUint64(nil, a.set.Fingerprint())
	a.say = binary.LittleEndian.AppendUint64(a.say, a.key)
	a.say = binary.LittleEndian.AppendUint64(a.say, a.off)
	a.heard[a.me] = a.say
	quiet := a.w.world.inner
	until := a.w.world.clock(timeout)
	for rank, pe := range a.set.PEs() {
		if rank == a.me {
			continue
		}
		a.heard[rank] = make([]byte, bytes)
		r, err := quiet.Recv(a.heard[rank], pe, tag, until)
		if err != nil {
			return err
		}
		a.add(r)
		s, err := quiet.Send(pe, tag, a.say, message.Private, until)
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
	for len(a.steps) > 0 {
		done, err := a.steps[0].run(until)
		if !done {
			return false, nil
		}
		if err != nil {
			a.giveUp()
			return true, err
		}
		a.steps = a.steps[1:]
	}
	places := make([]place, a.set.Size())
	for rank, h := range a.heard {
		if string(h[:16]) != string(a.say[:16]) {
			a.giveUp()
			return true, status.At(status.Mismatch, "team_create", a.set.PE(rank), "it is making another team with the same tag; give each team its own key")
		}
		places[rank] = placeAt(binary.LittleEndian.Uint64(h[16:]), a.set.Size())
	}
	t, err := a.w.newTeam(a.set, places)
	if err != nil {
		a.giveUp()
		return true, err
	}
	a.made, a.off = t, 0
	return true, nil
}

func (a *assembling) giveUp() {
	for _, s := range a.steps {
		s.giveUp()
	}
	a.steps = nil
	if a.off != 0 {
		a.w.scratch.Free(a.off)
		a.off = 0
	}
}

func (a *assembling) words() [4]uint64 { return [4]uint64{} }
