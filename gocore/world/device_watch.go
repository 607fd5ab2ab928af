package world

import (
	"context"
	"strings"
	"sync"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// watch looks after work that waits on the device, because kernels see neither an abort of the job nor the time: it runs while some of it may be
// under way and ends when all is done. What was queued on a stream is marked, and the marks are waited for on a stream of its own, the oldest
// first; one that is not reached within the world's timeout ends the waits of all kernels.
//
// Fields are guarded by the accelerator's mu, but for probe, probing and marks, which are the watching goroutine's own.
type watch struct {
	judging sync.Mutex // held while all are told that members of a team disagree, and while that is got over; taken before mu

	running bool
	inside  int // threads in a wait

	probe   device.Stream // 0 until first used
	probing bool          // the probe stream waits for the first mark
	marks   []watched
	orphans []watched // marks on streams that were freed before the watch saw them
}

// watched is the end of some waiting work on a stream.
type watched struct {
	stream device.Stream
	mark   device.Mark
	ops    string
	since  time.Time
	limit  limit
	teams  []underway // before the mark
}

const (
	watchEvery  = 20 * time.Millisecond
	watchLinger = 50 // looks for nothing before it ends
	markAfter   = time.Second
	probeFor    = 2 * time.Millisecond
)

func (v *watch) startLocked(x *accelerator) {
	if !v.running {
		v.running = true
		go v.loop(x)
	}
}

func (v *watch) enter(x *accelerator) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v.inside++
	v.startLocked(x)
}

func (v *watch) exit(x *accelerator) {
	x.mu.Lock()
	defer x.mu.Unlock()
	v.inside--
}

func (v *watch) loop(x *accelerator) {
	tick := time.NewTicker(watchEvery)
	defer tick.Stop()
	for idle := 0; !v.over(x, &idle); {
		select {
		case <-x.w.ctx.Done(): // aborted, which is known then, or ended
		case <-tick.C:
			if x.w.gate.enter() {
				_ = x.w.checkAbort() // it tells the device
				x.compareTeams()
				v.mark(x)
				v.look(x)
				x.endTeams()
				x.w.gate.exit()
			}
		}
	}
}

// end gives back the marks that are left when the world has ended, once the watch has.
func (v *watch) end(x *accelerator) {
	for range 100 {
		x.mu.Lock()
		running := v.running
		x.mu.Unlock()
		if !running {
			for _, w := range append(v.marks, v.orphans...) {
				_ = x.dev.FreeMark(w.mark) // the device ends, in whichever way
			}
			return
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// over ends the watch when nothing has waited for a while, or the world has ended.
func (v *watch) over(x *accelerator, idle *int) bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	*idle++
	if v.inside > 0 || len(v.marks)+len(v.orphans) > 0 {
		*idle = 0
	}
	for _, t := range x.tails {
		if !t.since.IsZero() {
			*idle = 0
		}
	}
	v.running = *idle < watchLinger && x.w.ctx.Err() == nil
	return !v.running
}

// mark puts a mark behind waiting work that has none and is not quite new.
func (v *watch) mark(x *accelerator) {
	after := markAfter
	var fresh []watched
	x.mu.Lock()
	v.marks, v.orphans = append(v.marks, v.orphans...), nil
	for s, t := range x.tails {
		due := after
		if t.limit >= 0 {
			due = min(due, time.Duration(t.limit)/20)
		}
		if !t.since.IsZero() && time.Since(t.since) >= due {
			fresh = append(fresh, watched{stream: s, ops: strings.Join(t.ops, ", "), since: t.since, limit: t.limit})
			t.since = time.Time{}
		}
	}
	x.mu.Unlock()
	for _, w := range fresh {
		var err error
		w.teams = x.w.teamsOn(w.stream)
		if w.mark, err = x.dev.Record(w.stream); err == nil { // a stream that is gone has nothing to wait for
			v.marks = append(v.marks, w)
		}
	}
}

// orphan puts a mark behind waiting work of a stream that is about to be freed: what is queued there still runs.
func (v *watch) orphan(x *accelerator, s device.Stream) {
	behind := x.w.teamsOn(s)
	if len(behind) == 0 {
		return
	}
	m, err := x.dev.Record(s)
	if err != nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	v.orphans = append(v.orphans, watched{stream: s, mark: m, ops: "work of a stream that was freed", since: time.Now(), limit: limit(x.w.timeout), teams: behind})
	v.startLocked(x)
}

// look pops the marks that are reached, and ends the waits of kernels when the first one is not and its time is over.
func (v *watch) look(x *accelerator) {
	for len(v.marks) > 0 {
		head := v.marks[0]
		if !v.reached(x, head) {
			v.judge(x, head)
			return
		}
		x.w.streamIdle(head.teams)
		v.probing = false
		v.marks = v.marks[1:]
		if err := x.dev.FreeMark(head.mark); err != nil {
			x.w.logf("device: a mark: %v", err)
		}
		v.done(x, head)
	}
}

// judge ends the waits of kernels when the time of one is over.
func (v *watch) judge(x *accelerator, head watched) {
	for _, m := range v.marks {
		if m.stream == head.stream && m.limit.over(m.since) {
			x.fail(status.New(status.Timeout, "", "%s on stream %#x waited for %v (the team's timeout, SHMEM_TIMEOUT or init's): some PE of world %s has not come, or has not signalled",
				m.ops, uintptr(m.stream), time.Since(m.since).Round(time.Millisecond), x.w.label))
			return
		}
	}
}

// reached says whether a mark is reached. It waits on a stream of its own, which waits for the mark.
func (v *watch) reached(x *accelerator, w watched) bool {
	if v.probe == 0 {
		var err error
		if v.probe, err = x.dev.NewStream(); err != nil {
			x.w.logf("device: no stream to watch others with: %v", err)
			return true
		}
	}
	if !v.probing {
		if x.dev.WaitFor(v.probe, w.mark) != nil {
			return true
		}
		v.probing = true
	}
	ctx, stop := context.WithTimeout(x.w.ctx, probeFor)
	defer stop()
	err := x.dev.Wait(ctx, v.probe)
	return err == nil || ctx.Err() == nil
}

// done notes that nothing waits on a stream any more, when that was its last mark.
func (v *watch) done(x *accelerator, w watched) {
	for _, other := range v.marks {
		if other.stream == w.stream {
			return
		}
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tails[w.stream]; t != nil && t.since.IsZero() && x.broken == nil {
		t.waits = false
	}
}
