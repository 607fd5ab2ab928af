package world

import (
	"sync"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// machine is an operation that only advances while it is driven.
type machine interface {
	// run drives the operation until it is done or until the hot clock passes `until` (0: one look). After done it is
	// not called again. err is only looked at when done.
	run(until int64) (done bool, err error)
	// giveUp ends it unfinished: whoever waits for us is told.
	giveUp()
	// words are the results, asked for once after a success.
	words() [4]uint64
}

// queued is a machine that can stand in a queue behind others.
type queued interface {
	// due is when its time is over on the hot clock, also while it has not begun.
	due() int64
	// overdue ends it before it has begun: nobody was told of it. The error says what it was.
	overdue() error
}

// Request is one started operation. Its end is final: asked again, it answers the same.
type Request struct {
	w    *World
	lane *lane // nil for operations that run on a goroutine of their own
	m    machine

	async, notify bool
	cancel        func(why error) // of a background request; may be nil

	drive    sync.Mutex // held by whoever runs m
	deadline int64      // while it stands in the queue

	// Written once before done is closed.
	err    error
	result [4]uint64
	done   chan struct{}
	ended  sync.Once

	name chan uint64 // capacity 1: what the C ABI calls this request
}

// How says how a request is to be run.
type How struct {
	Async  bool // queue it and let the engine run it
	Notify bool // report its end through Completions
}

// start queues m in the lane and drives it for at most slice (negative: until done).
func (w *World) start(l *lane, m machine, how How, slice time.Duration) *Request {
	r := &Request{w: w, lane: l, m: m, async: how.Async, notify: how.Notify, done: make(chan struct{}), name: make(chan uint64, 1), deadline: hot.Forever}
	if q, ok := m.(queued); ok {
		r.deadline = q.due()
	}
	l.push(r)
	if how.Async {
		w.engine.kick()
		return r
	}
	r.Wait(slice)
	return r
}

// Background runs f on a goroutine of its own, for the rare long operations that are not a team's (coming up, leaving).
// cancel, if any, is called when the request is released before its end.
func Background(cancel func(why error), f func() error) *Request {
	r := &Request{async: true, cancel: cancel, done: make(chan struct{}), name: make(chan uint64, 1)}
	go func() { r.finish([4]uint64{}, f()) }()
	return r
}

// Wait waits up to slice (negative: until it ends, 0: one look) and says whether the request has ended, and how.
func (r *Request) Wait(slice time.Duration) (ended bool, err error) {
	if r.Done() {
		return true, r.err
	}
	var until int64
	if slice < 0 {
		until = hot.Forever
	} else if slice > 0 {
		until = hot.Now() + int64(slice)
	}
	if r.async {
		return r.waitDone(r.done, until)
	}
	for {
		head := r.lane.head()
		if head == r {
			return r.driveUntil(until)
		}
		if head != nil {
			r.waitEither(head.done, min(until, r.deadline))
			r.expire()
		}
		if r.Done() {
			return true, r.err
		}
		if until != hot.Forever && hot.Now() >= until {
			return false, nil
		}
	}
}

// Notifies says whether the end is reported through Completions.
func (r *Request) Notifies() bool { return r.notify }

// Name sets the handle of the request (h != 0), or waits for it to be set. A request can end, and be
// reported, before its starter has named it; the wait is over as soon as the start returns.
func (r *Request) Name(h uint64) uint64 {
	if h == 0 {
		h = <-r.name
	}
	select {
	case r.name <- h:
	default:
	}
	return h
}

// Done says whether the request has ended.
func (r *Request) Done() bool {
	select {
	case <-r.done:
		return true
	default:
		return false
	}
}

// Result is what the operation produced; zero before a successful end.
func (r *Request) Result() [4]uint64 {
	if !r.Done() {
		return [4]uint64{}
	}
	return r.result
}

// Release ends interest in the request. An unfinished one is given up, and its peers are told.
func (r *Request) Release() {
	switch {
	case r.Done():
	case r.m == nil:
		r.end(errReleased)
	case !r.inside():
		r.shutOut(hot.Forever)
	default:
		defer r.outside()
		r.end(errReleased)
	}
}

// inside keeps what the operation works on in place until outside. false: its world or team is being ended, and the request with it.
func (r *Request) inside() bool {
	if !r.w.gate.enter() {
		return false
	}
	if r.lane.gate == nil || r.lane.gate.enter() {
		return true
	}
	r.w.gate.exit()
	return false
}

func (r *Request) outside() {
	if r.lane.gate != nil {
		r.lane.gate.exit()
	}
	r.w.gate.exit()
}

// shutOut is what is left to do for a request that is not inside any more: to wait until it has been ended, or to end it where nobody
// else knows it. Giving up what stands in no team's lane is safe at any time: messages know when their team is closed, waits hold nothing.
func (r *Request) shutOut(until int64) (ended bool) {
	if !r.lane.known {
		r.end(r.w.finalized(""))
		return true
	}
	r.waitEither(r.done, until)
	return r.Done()
}

// end gives an unfinished request up; why is what whoever waits for it here is told. The caller is inside, or is who shut the gate.
func (r *Request) end(why error) {
	if r.Done() {
		return
	}
	if r.m == nil {
		if r.cancel != nil {
			r.cancel(why)
		}
		return
	}
	r.drive.Lock()
	defer r.drive.Unlock()
	if r.Done() {
		return
	}
	r.m.giveUp()
	r.finish([4]uint64{}, why)
}

// expire ends a request whose time is over while it stands behind others.
func (r *Request) expire() {
	if r.deadline == hot.Forever || hot.Now() < r.deadline || !r.inside() {
		return
	}
	defer r.outside()
	r.drive.Lock()
	defer r.drive.Unlock()
	if q, ok := r.m.(queued); ok && !r.Done() && r.lane.head() != r { // only the head ever begins, and under this lock
		r.finish([4]uint64{}, q.overdue())
	}
}

var errReleased = status.New(status.Canceled, "", "the request was released before it had finished")

// driveSlice bounds how long a waiting thread keeps a request to itself, so that Release and other waiters get in.
const driveSlice = int64(50 * time.Millisecond)

// driveUntil runs the head of the lane in this thread. Two threads waiting for one request take turns.
func (r *Request) driveUntil(until int64) (bool, error) {
	for {
		now := hot.Now()
		if r.advance(min(until, now+driveSlice)) {
			return true, r.err
		}
		if until <= now {
			return false, nil
		}
	}
}

// advance runs the operation for a slice; true when it has ended.
func (r *Request) advance(until int64) bool {
	if !r.inside() {
		return r.shutOut(until)
	}
	defer r.outside()
	r.drive.Lock()
	defer r.drive.Unlock()
	return r.advanceLocked(until)
}

// advanceLocked is advance with r.drive held, from inside.
func (r *Request) advanceLocked(until int64) bool {
	if r.Done() {
		return true
	}
	done, err := r.m.run(until)
	if !done {
		return false
	}
	var words [4]uint64
	if err == nil {
		words = r.m.words()
	}
	r.finish(words, err)
	return true
}

// poll is the engine's look at an asynchronous head.
func (r *Request) poll() (done bool) {
	if !r.inside() {
		return false
	}
	defer r.outside()
	if !r.drive.TryLock() {
		return false
	}
	defer r.drive.Unlock()
	return r.advanceLocked(0)
}

func (r *Request) finish(words [4]uint64, err error) {
	r.ended.Do(func() {
		r.result, r.err = words, err
		if r.lane != nil {
			r.lane.remove(r)
		}
		close(r.done)
		if r.w == nil {
			return
		}
		if r.notify {
			r.w.completed.push(r)
		}
		if r.lane != nil && r.lane.asyncHead() {
			r.w.engine.kick()
		}
	})
}

func (r *Request) waitDone(ch <-chan struct{}, until int64) (bool, error) {
	r.waitEither(ch, until)
	if r.Done() {
		return true, r.err
	}
	return false, nil
}

// waitEither returns when ch or the request itself is done, or the time has come.
func (r *Request) waitEither(ch <-chan struct{}, until int64) {
	if until == hot.Forever {
		select {
		case <-ch:
		case <-r.done:
		}
		return
	}
	left := time.Duration(until - hot.Now())
	if left <= 0 {
		return
	}
	timer := time.NewTimer(left)
	defer timer.Stop()
	select {
	case <-ch:
	case <-r.done:
	case <-timer.C:
	}
}
