package world

import (
	"context"
	"slices"
	"strings"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// tail is what this package has queued on a stream since it was last waited for.
type tail struct {
	ops   []string // the last few names
	waits bool     // some of them wait for peers
	began time.Time
	since time.Time // of the oldest operation that waits and that no mark of the watch stands behind; zero: none
	limit limit     // of those that wait since then: the least
	err   error     // of a host function
	teams []*Team   // whose kernels are among them
}

const tailNames = 8

// limit is how long something may wait; negative: for ever.
type limit time.Duration

// over says whether the time is up.
func (l limit) over(since time.Time) bool { return l >= 0 && time.Since(since) > time.Duration(l) }

func (l limit) or(other limit) limit {
	if l < 0 || other >= 0 && other < l {
		return other
	}
	return l
}

// note says that an operation was queued; waits: it waits for peers, as long as the world's operations may.
func (x *accelerator) note(s device.Stream, op string, waits bool) {
	x.noteWithin(s, op, waits, limit(x.w.timeout))
}

// noteWithin is note with a limit of its own.
func (x *accelerator) noteWithin(s device.Stream, op string, waits bool, most limit) {
	x.mu.Lock()
	defer x.mu.Unlock()
	t := x.tails[s]
	if t == nil {
		t = &tail{began: time.Now()}
		x.tails[s] = t
	}
	if s == device.Own {
		x.w.hot.SetDirect(false) // quiet, fence and barriers come to Go until it is done
	}
	t.waits = t.waits || waits
	if waits {
		if t.since.IsZero() {
			t.since, t.limit = time.Now(), most
		}
		t.limit = t.limit.or(most)
		x.watch.startLocked(x)
	}
	if t.ops = append(t.ops, op); len(t.ops) > tailNames {
		t.ops = t.ops[1:]
	}
}

// noteTeam says whose kernel was noted last.
func (x *accelerator) noteTeam(s device.Stream, t *Team) {
	x.mu.Lock()
	defer x.mu.Unlock()
	l := x.tails[s]
	if l == nil {
		return
	}
	if !slices.Contains(l.teams, t) {
		l.teams = append(l.teams, t)
	}
}

// noteError keeps the first failure of a host function for whoever waits for the stream.
func (x *accelerator) noteError(s device.Stream, err error) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if t := x.tails[s]; t != nil && t.err == nil {
		t.err = err
	}
}

// hasWork says whether something was queued on a stream that nobody has waited for.
func (x *accelerator) hasWork(s device.Stream) bool {
	if x == nil {
		return false
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.tails[s] != nil
}

// busy lists the streams of NewStream with work that nobody has waited for.
func (x *accelerator) busy() []device.Stream {
	return x.streams(func(s device.Stream, _ *tail) bool { return x.made[s] })
}

// streams lists the streams with work that nobody has waited for of which a test holds; x.mu is held meanwhile.
func (x *accelerator) streams(holds func(device.Stream, *tail) bool) (all []device.Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	for s, t := range x.tails {
		if holds(s, t) {
			all = append(all, s)
		}
	}
	return all
}

// notice looks whether the streams on which destroyed teams have kernels are at their end, so that the teams' memory comes back at the meeting
// that asks for it, and not after the watch's next look. Blocks: a moment per stream.
func (x *accelerator) notice() {
	if x == nil {
		return
	}
	for _, s := range x.streams(func(device.Stream, *tail) bool { return true }) { // one that was freed is not among them
		behind := x.w.teamsOn(s)
		if !x.w.anyGone(behind) {
			continue
		}
		ctx, stop := context.WithTimeout(x.w.ctx, probeFor)
		if err := x.dev.Wait(ctx, s); err == nil || ctx.Err() == nil {
			x.w.streamIdle(behind)
		}
		stop()
	}
}

// wait waits for a stream and says how what was queued there went.
func (x *accelerator) wait(ctx context.Context, op string, s device.Stream) error {
	x.mu.Lock()
	t := x.tails[s]
	delete(x.tails, s)
	x.mu.Unlock()
	behind := x.w.teamsOn(s)
	x.watch.enter(x)
	err := x.dev.Wait(ctx, s)
	x.watch.exit(x)
	if ctx.Err() != nil && err != nil {
		x.keep(s, t)
		return x.gaveUp(ctx, op, s, t, err)
	}
	x.w.streamIdle(behind)
	x.idle(s)
	if t == nil {
		return err
	}
	x.mu.Lock()
	broken, own := x.broken, t.err
	x.mu.Unlock()
	switch {
	case broken != nil && t.waits:
		return outOfOrder(op, t, s, broken)
	case own != nil:
		return own
	}
	for _, of := range t.teams {
		if why := x.missed(of); why != nil {
			return outOfOrder(op, t, s, why)
		}
	}
	return err
}

// idle lets quiet, fence and barriers be finished in C again while nothing is outstanding on the library's stream.
func (x *accelerator) idle(s device.Stream) {
	x.mu.Lock()
	defer x.mu.Unlock()
	if s == device.Own && x.tails[s] == nil {
		x.w.hot.SetDirect(x.w.direct)
	}
}

// outOfOrder words work that was ended before what it waited for had come.
func outOfOrder(op string, t *tail, s device.Stream, why error) error {
	return status.Wrap(status.Of(why), op, why, "%s on stream %#x did not end in order; what it wrote must not be used", strings.Join(t.ops, ", "), uintptr(s))
}

// keep puts back what was queued before a wait that gave up.
func (x *accelerator) keep(s device.Stream, t *tail) {
	if t == nil {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	if later := x.tails[s]; later != nil {
		t.ops, t.waits, t.teams = append(t.ops, later.ops...), t.waits || later.waits, append(t.teams, later.teams...)
		if t.since.IsZero() {
			t.since, t.limit = later.since, later.limit
		}
	}
	x.tails[s] = t
}

// gaveUp words a wait that ended before the stream did.
func (x *accelerator) gaveUp(ctx context.Context, op string, s device.Stream, t *tail, err error) error {
	if c := status.Of(context.Cause(ctx)); c == status.Aborted || c == status.Finalized {
		return context.Cause(ctx)
	}
	what := "nothing of ours"
	if t != nil {
		what = strings.Join(t.ops, ", ") + " (since " + time.Since(t.began).Round(time.Millisecond).String() + ")"
	}
	return status.Wrap(status.Of(err), op, err, "stream %#x has not come to its end; queued there: %s", uintptr(s), what)
}
