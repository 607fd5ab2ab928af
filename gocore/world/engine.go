package world

import (
	"runtime"
	"sync"

	"goshmem/gocore/hot"
)

// engine runs the asynchronous requests of a world on one thread, whatever their number. It starts with the first one and ends
// with the world; while there is nothing to do it blocks, and while everything waits for peers it sleeps on the doorbell.
type engine struct {
	w    *World
	wake chan struct{} // capacity 1: a kick is remembered

	mu      sync.Mutex
	running bool // guarded by mu
	stopped bool // guarded by mu
	over    chan struct{}
}

func newEngine(w *World) *engine {
	return &engine{w: w, wake: make(chan struct{}, 1), over: make(chan struct{})}
}

// kick makes the engine look at the lanes again.
func (e *engine) kick() {
	e.mu.Lock()
	if e.stopped {
		e.mu.Unlock()
		return
	}
	if !e.running {
		e.running = true
		go e.loop()
	}
	e.mu.Unlock()
	select {
	case e.wake <- struct{}{}:
	default:
	}
	e.w.hot.RingSelf()
}

// stop ends the engine and waits for it. Requests still in a lane must have been ended before.
func (e *engine) stop() {
	e.mu.Lock()
	was := e.running
	stopped := e.stopped
	e.stopped = true
	e.mu.Unlock()
	if !was || stopped {
		return
	}
	select {
	case e.wake <- struct{}{}:
	default:
	}
	e.w.hot.RingSelf()
	<-e.over
}

func (e *engine) halting() bool {
	e.mu.Lock()
	defer e.mu.Unlock()
	return e.stopped
}

func (e *engine) loop() {
	runtime.LockOSThread() // sleeps in futex: keep that to one thread
	defer runtime.UnlockOSThread()
	defer close(e.over)
	var turn hot.Wait
	turn.Reset(hot.Forever)
	for !e.halting() {
		waiting, moved := e.pass()
		switch {
		case moved:
			turn.Reset(hot.Forever)
		case waiting == 0:
			<-e.wake
			turn.Reset(hot.Forever)
		default:
			e.w.hot.Turn(&turn, hot.Forever)
			select {
			case <-e.wake:
				turn.Reset(hot.Forever)
			default:
			}
		}
	}
}

// pass looks once at the head of every lane that is the engine's to run.
func (e *engine) pass() (waiting int, moved bool) {
	for _, m := range e.w.messengers() {
		if !m.Pending() {
			continue
		}
		waiting++ // messages whose sends have ended are still queued here
		before := m.Progress()
		m.Poll()
		moved = moved || m.Progress() != before
	}
	for _, l := range e.w.lanes() {
		late, any := l.overdue(hot.Now())
		for _, r := range late {
			r.expire()
			moved = true
		}
		if any {
			waiting++ // time runs in the queue
		}
		for {
			h := l.head()
			if h == nil || !h.async {
				break
			}
			if !h.poll() {
				waiting++
				break
			}
			moved = true
		}
	}
	return waiting, moved
}

// completions collects the ends of requests that asked to be reported.
type completions struct {
	mu     sync.Mutex
	ended  []*Request // guarded by mu
	closed bool       // guarded by mu
	some   chan struct{}
}

func newCompletions() *completions { return &completions{some: make(chan struct{}, 1)} }

func (c *completions) push(r *Request) {
	c.mu.Lock()
	c.ended = append(c.ended, r)
	c.mu.Unlock()
	c.signal()
}

func (c *completions) signal() {
	select {
	case c.some <- struct{}{}:
	default:
	}
}

func (c *completions) close() {
	c.mu.Lock()
	c.closed = true
	c.mu.Unlock()
	c.signal()
}

// take removes up to max ended requests; open is false once the world is closed and nothing is left.
func (c *completions) take(max int) (rs []*Request, open bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	n := min(max, len(c.ended))
	rs = append(rs, c.ended[:n]...)
	c.ended = append(c.ended[:0], c.ended[n:]...)
	if len(c.ended) > 0 || c.closed {
		c.signal()
	}
	return rs, !c.closed || len(rs) > 0
}
