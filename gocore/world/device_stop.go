package world

import (
	"context"
	"slices"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// One team's kernels end while those of others go on. Each team has stop words of its own on each member's device
// (kernels/include/device/shmem_state.h), which its kernels look at while they wait, beside the abort word of all. The host sets them when a
// member has given the team up or has gone with its part undone, so that what still waits a moment later waits in vain.
//
// Whether anything was missed the kernels say themselves: who ends a wait because of a stop word notes it. Without a note all came in order,
// and stopping a team has done nothing but refuse its next operations. So the host may be wrong about what still runs, as it is where work of others
// stands between a kernel and the next mark of the watch, and yet no result is called missing that is there.
//
// What a member that goes has done is there before it says so. Can somebody be stopped whose results would still have come, from a third member? Not in
// kernels that end with a barrier: a member passes it only when all have come to it, so nobody's data are on their way any more. moe_dispatch, and waits for
// single signals, may wait for a third one. Signals are waited for on, while those that have gone had done their part; moe_dispatch has a
// second, which a device that runs does not use up.

// What a member says of a team that it does not use any more, in its word of the others' places.
const (
	saidLeft    = 1 << iota // it uses the team's memory no more
	saidOff                 // it queues no more kernels of it, and what it had queued has ended
	saidUndone              // not all of it in order
	saidAborted             // it has given the team up
)

// leftUndone is, in the word that says that a PE has left the world, that kernels of it may not have ended in order.
const leftUndone = 2

// stopping is how a team was stopped; guarded by teamMu but for calls of the device, which accelerator.stopMu keeps apart from the end of the team's number.
type stopping struct {
	why     error     // nil: it was not
	signals bool      // waits for single signals too
	since   time.Time // since when there is a reason to, while kernels may be under way
	noted   bool      // a kernel has noted that it missed something
	final   bool      // the number is another's, or soon: nobody looks any more
}

// partingMost is how long what was done before a member went may take to be seen.
const partingMost = time.Second

// underway is what a team may have on a stream.
type underway struct {
	t               *Team
	s               device.Stream
	kernels, single uint64
}

// eachTeamLocked calls f with the live teams, and those destroyed here whose memory stays.
func (w *World) eachTeamLocked(f func(t *Team, live bool)) {
	for t := range w.teams {
		f(t, true)
	}
	for _, t := range w.gone {
		f(t, false)
	}
}

// busyLocked says whether something of a team may be on the device.
func (t *Team) busyLocked() bool { return t.kernels != t.ended || len(t.singles) > 0 }

// idleLocked forgets what a team had there: it has ended.
func (t *Team) idleLocked() { t.ended, t.singles = t.kernels, nil }

// teamsOn lists the teams that may have something on a stream, and how much they have queued so far.
func (w *World) teamsOn(s device.Stream) (all []underway) {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	w.eachTeamLocked(func(t *Team, _ bool) {
		u := underway{t: t, s: s}
		for _, one := range t.singles {
			if one.s == s {
				u = one
			}
		}
		if t.kernels != t.ended && t.stream == s {
			u.kernels = t.kernels
		}
		if u.kernels|u.single != 0 {
			all = append(all, u)
		}
	})
	return all
}

// anyGone says whether a destroyed team is among them.
func (w *World) anyGone(behind []underway) bool {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	return slices.ContainsFunc(behind, func(u underway) bool { return slices.Contains(w.gone, u.t) })
}

// streamIdle notes that what teamsOn found has ended.
func (w *World) streamIdle(behind []underway) {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	for _, u := range behind {
		u.t.ended = max(u.t.ended, u.kernels)
		for i, one := range u.t.singles {
			if one.s == u.s && one.single == u.single {
				u.t.singles = append(u.t.singles[:i:i], u.t.singles[i+1:]...)
				break
			}
		}
	}
}

// waitsForSignal queues a wait for a signal word by a kernel: on behalf of the team whose memory the word is in, with which it ends, else of all PEs.
func (x *accelerator) waitsForSignal(name string, sig uintptr, cmp int, value int32, s device.Stream) error {
	t := x.w.world
	if b, err := x.w.BlockOf(sig); err == nil && b.team != nil && b.team.placed.Load() && b.team.hold(name) == nil {
		defer b.team.exit()
		t = b.team
	}
	x.note(s, name, true)
	x.noteTeam(s, t)
	x.w.teamMu.Lock()
	t.waitsLocked(s)
	x.w.teamMu.Unlock()
	return x.launchOn("gshmem_k_signal_wait", 1, s, uint64(sig), uint64(cmp), uint64(int64(value)), 0, uint64(max(t.index, 0)))
}

// waitsLocked counts a wait for a signal.
func (t *Team) waitsLocked(s device.Stream) {
	t.single++
	for i := range t.singles {
		if t.singles[i].s == s {
			t.singles[i].single = t.single
			return
		}
	}
	t.singles = append(t.singles, underway{t: t, s: s, single: t.single})
}

// endTeams stops the teams that cannot come to an end; the watch calls it.
func (x *accelerator) endTeams() {
	if !x.hasKernels() || x.health() != nil {
		return
	}
	type verdict struct {
		t       *Team
		live    bool
		why     error
		signals bool
	}
	var found []verdict
	x.w.teamMu.Lock()
	x.w.eachTeamLocked(func(t *Team, live bool) {
		if t.busyLocked() && t.placed.Load() {
			why, undone := t.goneLocked()
			found = append(found, verdict{t, live, why, undone})
		}
	})
	x.w.teamMu.Unlock()
	for _, v := range found {
		if v.live && (v.why == nil || !v.signals) {
			if err := v.t.givenUp(); err != nil {
				v.why, v.signals = err, true
			}
		}
		if v.t.ripe(v.why) && x.stop(v.t, v.why, v.signals) && v.signals {
			v.t.condemn(v.why)
		}
	}
	x.w.sweep()
}

// ripe says whether there has been a reason to stop a team for long enough.
func (t *Team) ripe(why error) bool {
	t.w.teamMu.Lock()
	defer t.w.teamMu.Unlock()
	if why == nil {
		t.stop.since = time.Time{}
	} else if t.stop.since.IsZero() {
		t.stop.since = time.Now()
	}
	return why != nil && time.Since(t.stop.since) > partingMost
}

// givenUp is why operations of a live team on the host were given up.
func (t *Team) givenUp() error {
	if t.hold("") != nil {
		return nil
	}
	defer t.exit()
	if err := t.coll.Health(); err != nil {
		return status.Wrap(status.TeamPoisoned, "", err, "%s was given up", t.name())
	}
	return nil
}

// goneLocked is which member does nothing more in a team, and whether one has left something undone. Of several, the one is named that others
// are likely to have ended because of.
func (t *Team) goneLocked() (why error, undone bool) {
	words, most := t.w.seg.Bytes()[t.own.left:], 0
	for rank, pe := range t.pes {
		if pe == t.w.me {
			continue
		}
		guilt, how, code := 0, "", status.TeamPoisoned
		said, left := loadWord(words[8*rank:]), loadWord(t.w.leaves[8*pe:])
		switch {
		case said&saidAborted != 0:
			guilt, how = 5, "given up %s (team_abort, or abort() of its process group) while kernels of it were under way"
		case said&(saidOff|saidUndone) == saidOff:
			guilt, how = 4, "destroyed %s before it had done its part in what others have of it on the device"
		case said&saidOff != 0:
			guilt, how = 1, "destroyed %s, and not all of its kernels there have ended in order"
		case left != 0:
			guilt, how, code = 2+int(left&leftUndone)/2, "left the world (finalize) before it had done its part in what %s has on the device", status.PeerLeft
		}
		undone = undone || said&(saidAborted|saidUndone) != 0 || left&leftUndone != 0
		if guilt > most {
			most, why = guilt, status.At(code, "", pe, "it has "+how, t.name())
		}
	}
	return why, undone
}

// condemn gives a live team up on the host as well, where the others may wait for who has given it up.
func (t *Team) condemn(why error) {
	if status.Of(why) != status.TeamPoisoned || t.hold("") != nil { // who has left the world is found by everybody
		return
	}
	defer t.exit()
	if t.coll.Health() == nil {
		t.coll.Condemn(status.TeamPoisoned, why)
	}
}

// stop ends the waits of a team's kernels here. False: they were ended before.
func (x *accelerator) stop(t *Team, why error, signals bool) bool {
	x.stopMu.Lock()
	defer x.stopMu.Unlock()
	w := x.w
	w.teamMu.Lock()
	again := t.stop.final || t.stop.why != nil && (t.stop.signals || !signals)
	if !again {
		t.stop.why, t.stop.signals = why, signals
	}
	w.teamMu.Unlock()
	if again {
		return false
	}
	if err := x.state.StopTeam(t.index, signals); err != nil && !contextLost(err) {
		w.logf("device: ending the waits of %s failed: %v", t.name(), err)
	}
	return true
}

// missed is why a team's kernels have ended before what they waited for had come, nil where none has.
func (x *accelerator) missed(t *Team) error {
	w := x.w
	w.teamMu.Lock()
	s := t.stop
	w.teamMu.Unlock()
	if s.why == nil || s.noted {
		return s.why
	}
	x.stopMu.Lock()
	defer x.stopMu.Unlock()
	w.teamMu.Lock()
	final := t.stop.final
	w.teamMu.Unlock()
	if final {
		return nil
	}
	noted, err := x.state.TeamStopped(t.index)
	if !noted && err == nil {
		return nil
	}
	w.teamMu.Lock()
	t.stop.noted = true // also where it is not known: nobody takes results for good
	w.teamMu.Unlock()
	return s.why
}

// refuses says why a team has no more operations on the device.
func (t *Team) refuses(op string) error {
	t.w.teamMu.Lock()
	why := t.stop.why
	if why == nil {
		why, _ = t.goneLocked()
	}
	t.w.teamMu.Unlock()
	if why == nil {
		return nil
	}
	return status.Wrap(status.Of(why), op, why, "%s has no more operations on the device; make a new team", t.name())
}

// tellGone says to the members what this one does not use of a team any more. The last word comes after all that was told of the team before.
func (t *Team) tellGone(said uint64, last bool) {
	w := t.w
	ctx, cancel := context.WithTimeout(w.ctx, time.Second)
	defer cancel()
	for rank, pe := range t.pes {
		if w.monitor.Dead(pe) != nil || last && w.net.Fence(ctx, pe) != nil {
			continue
		}
		at := fabric.Addr{PE: pe, Ref: fabric.MakeRef(0, t.places[rank].left+8*uint64(t.me))}
		_, _ = w.net.Atomic(ctx, at, fabric.Atomic{Op: fabric.Set, Width: 8, Operand: said, NoReply: true}) // a lost peer needs none, and keeps its block
	}
}

// abandon ends what a team has on the device, here now and, told by this, on its other members.
func (x *accelerator) abandon(t *Team) {
	if !x.hasKernels() || !t.placed.Load() {
		return
	}
	x.stop(t, status.New(status.TeamPoisoned, "", "%s was given up here (team_abort, or abort() of its process group)", t.name()), true)
	x.w.teamMu.Lock()
	t.said |= saidAborted
	x.w.teamMu.Unlock()
	t.tellGone(saidAborted, false)
}

// depart says that a destroyed team's kernels have ended, when they have, and looks a last time at what became of them. False: they may not have.
func (x *accelerator) depart(t *Team) bool {
	w := t.w
	w.teamMu.Lock()
	busy, done := t.busyLocked(), t.said&saidOff != 0
	w.teamMu.Unlock()
	if busy || done {
		return done
	}
	said, known := uint64(saidOff), x.hasKernels() && t.index >= 0
	if known && x.missed(t) != nil {
		said |= saidUndone
	}
	w.teamMu.Lock()
	t.said |= said
	said = t.said
	w.teamMu.Unlock()
	if known {
		t.tellGone(said, false)
	}
	return true
}

// forget ends the place of a team that no member uses any more, so that its number can be used again: before, a member that is late could
// still write to flags under that number, which would be another team's.
func (x *accelerator) forget(t *Team) {
	if t.index <= 0 {
		return
	}
	if x.hasKernels() {
		_ = x.missed(t) // for who waits for its streams later
		x.stopMu.Lock()
		defer x.stopMu.Unlock()
		t.w.teamMu.Lock()
		t.stop.final = true
		t.w.teamMu.Unlock()
		if err := x.state.ClearTeam(t.index); err != nil {
			x.w.logf("team_destroy: %v", err)
			return
		}
	}
	t.w.marks.drop(uint32(t.index))
}

// undone says whether kernels queued here may not have ended in order, when the world ends.
func (x *accelerator) undone() bool {
	if !x.hasKernels() {
		return false
	}
	if x.health() != nil {
		return true
	}
	ctx, stop := context.WithTimeout(context.Background(), time.Second)
	defer stop()
	for _, s := range x.streams(func(_ device.Stream, t *tail) bool { return t.waits }) {
		if err := x.dev.Wait(ctx, s); contextLost(err) {
			return false
		} else if err != nil && ctx.Err() != nil {
			return true
		}
	}
	return false
}
