package world

import (
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/fabric"
	"goshmem/gocore/message"
	"goshmem/gocore/status"
	"goshmem/gocore/team"
)

// The life of teams. A team's control block stays until every member has destroyed the team, because members that have not may
// still arrive in it; who has says so in a word of the block.

// layWorldTeam sets the world team's memory aside, and a second message area for the world's own use.
func (w *World) layWorldTeam() (uint64, error) {
	off, _, err := w.scratch.Alloc(placeBytes(w.n) + message.AreaSize(w.n))
	return off, err
}

// buildWorldTeam makes the world team once all PEs' places are known.
func (w *World) buildWorldTeam() error {
	places := make([]place, w.n)
	inner := make([]uint64, w.n)
	for pe, in := range w.peers {
		places[pe] = placeAt(in.Control, w.n)
		inner[pe] = in.Control + placeBytes(w.n)
	}
	t, err := w.makeTeam(w.set(), places, 0)
	if err != nil {
		return err
	}
	w.world = t
	t.inner, err = t.messenger(inner)
	return err
}

// newTeam makes a team whose members' places are known, and lets operations start.
func (w *World) newTeam(set team.Set, places []place, index int) (*Team, error) {
	w.sweep()
	t, err := w.makeTeam(set, places, index)
	if err != nil {
		return nil, err
	}
	t.publish()
	return t, nil
}

func (w *World) makeTeam(set team.Set, places []place, index int) (*Team, error) {
	t := &Team{w: w, set: set, pes: set.PEs(), me: set.Rank(w.me), id: w.nameOf(set), index: index}
	t.own, t.places = places[t.me], places
	control := make([]uint64, len(places))
	areas := make([]uint64, len(places))
	for rank, p := range places {
		control[rank], areas[rank] = p.control, p.area
	}
	var err error
	if t.coll, err = coll.New(t.collConfig(control)); err != nil {
		return nil, err
	}
	if t.msg, err = t.messenger(areas); err != nil {
		t.coll.Close(0)
		return nil, err
	}
	t.lane = &lane{gate: &t.gate, known: true, gauge: t.coll.SetQueued}
	w.teamMu.Lock()
	w.teams[t] = true
	w.teamMu.Unlock()
	return t, nil
}

// messenger makes this member's end of messages over the given areas.
func (t *Team) messenger(areas []uint64) (*message.Messenger, error) {
	w := t.w
	refs := make([]fabric.Ref, len(areas))
	for rank, off := range areas {
		refs[rank] = fabric.MakeRef(0, off)
	}
	at, n := areas[t.me], message.AreaSize(len(areas))
	return message.New(message.Config{Me: t.me, PEs: t.pes, Transport: w.net, Area: w.seg.Bytes()[at : at+n : at+n], Areas: refs,
		Scratch: w.scratch, Eager: w.cfg.Eager, Mapped: func(rank int) bool { return w.segs[t.pes[rank]] != nil },
		Lost: t.lostRank, Wake: w.hot.RingSelf, Name: t.id})
}

func (t *Team) lostRank(rank int) error { return t.w.gonePE(t.pes[rank]) }

// gonePE is why a PE will do nothing more: it died, or left the world. nil while it may.
func (w *World) gonePE(pe int) error {
	if w.left(pe) {
		return status.At(status.PeerLeft, "", pe, "it has finalized the world")
	}
	return w.lost(pe)
}

// mapped says whether all members have mapped each other; the same answer on all of them.
func (t *Team) mapped() bool {
	for _, a := range t.pes {
		for _, b := range t.pes {
			if !t.w.matrix[a][b] {
				return false
			}
		}
	}
	return true
}

// Abort is Destroy for a team that is in trouble: what it has on the device is ended as well, here and at the members that wait for it.
func (t *Team) Abort() error {
	if t != t.w.world && t.hold("team_abort") == nil {
		t.w.device().abandon(t)
		t.exit()
	}
	return t.Destroy()
}

// Destroy ends this PE's use of the team at once. Operations on the host that have not ended are given up; other threads' calls on the team return with an
// error, and are out of its tables when Destroy returns. What was queued on a device goes on while its members may do their part.
func (t *Team) Destroy() error {
	w := t.w
	if !w.gate.enter() {
		return nil // it has ended with its world
	}
	defer w.exit()
	if t == w.world {
		return status.New(status.InvalidArgument, "team_destroy", "the world team lives as long as its world; finalize ends both")
	}
	w.teamMu.Lock()
	live := w.teams[t]
	delete(w.teams, t)
	w.teamMu.Unlock()
	if !live {
		return nil
	}
	t.streamMu.Lock()
	t.agree.ended = true // its memory is not looked at any more
	t.streamMu.Unlock()
	t.gate.vacate(func() {
		for _, r := range t.lane.all() {
			r.end(t.destroyed(""))
		}
	})
	t.msg.Close()
	if !t.coll.Close(time.Second) {
		w.logf("team_destroy: a thread is still inside an operation of %s; its memory stays until finalize", t.name())
		w.teamMu.Lock()
		defer w.teamMu.Unlock()
		w.stuck = append(w.stuck, t)
		return nil
	}
	w.teamMu.Lock()
	w.gone = append(w.gone, t)
	w.teamMu.Unlock()
	w.sweep()
	return nil
}

// tellDestroyed says to the members that this one does not use the team's memory any more.
func (t *Team) tellDestroyed() {
	w := t.w
	w.teamMu.Lock()
	said := t.said
	w.teamMu.Unlock()
	t.tellGone(said, w.device() != nil) // what was told of collectives, and of the team's end, must not come after the memory is another's
}

// untold lists destroyed teams that nothing uses here any more, no block and no kernel, and that the others have not been told of.
func (w *World) untold() (ts []*Team) {
	w.teamMu.Lock()
	gone := append([]*Team(nil), w.gone...)
	w.teamMu.Unlock()
	for _, t := range gone {
		if !w.device().depart(t) || t.holds() {
			continue
		}
		w.teamMu.Lock()
		if t.said&saidLeft == 0 {
			t.said |= saidLeft
			ts = append(ts, t)
		}
		w.teamMu.Unlock()
	}
	return ts
}

// sweep tells of destroyed teams whose blocks are dropped here, and gives back the memory of those of which every living member
// has told: control blocks, and symmetric blocks, for which nobody can ask the members together any more.
func (w *World) sweep() {
	w.sweepMu.Lock()
	for _, t := range w.untold() {
		t.tellDestroyed()
	}
	w.sweepMu.Unlock()
	w.teamMu.Lock()
	var still, over []*Team
	for _, t := range w.gone {
		if t.allGone() {
			over = append(over, t)
		} else {
			still = append(still, t)
		}
	}
	w.gone = still
	w.teamMu.Unlock()
	for _, t := range over {
		t.msg.Reclaim()
		t.coll.Reclaim()
		t.reclaimAll()
		w.device().forget(t)
		w.scratch.Free(t.own.control)
	}
}

func (t *Team) allGone() bool {
	words := t.w.seg.Bytes()[t.own.left:]
	for rank, pe := range t.pes {
		if loadWord(words[8*rank:])&saidLeft == 0 && t.w.monitor.Dead(pe) == nil {
			return false
		}
	}
	return true
}

// closeTeams ends all teams of a world that goes down. Peers have left or are told by poison.
func (w *World) closeTeams() {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	for t := range w.teams {
		t.msg.Close()
		if t.inner != nil {
			t.inner.Close()
		}
		t.coll.Close(time.Second)
	}
	for _, t := range w.stuck { // who was inside of them has come out with the world
		t.coll.Close(time.Second)
	}
}

// publish lets C callers find the team.
func (t *Team) publish() { t.coll.Publish() }
