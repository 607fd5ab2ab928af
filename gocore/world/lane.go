package world

import (
	"sync"

	"goshmem/gocore/hot"
)

// lane is the queue of a team's operations: only the head runs, so the team sees them in the order they were started.
type lane struct {
	gate  *gate // of the team whose lane it is; nil: of a single operation
	known bool  // whoever ends the world or the team finds it; else its request is ended by who waits for it

	mu    sync.Mutex
	queue []*Request // guarded by mu
	// gauge publishes the length for the C hot path, which must queue behind whatever is here. Called under mu.
	gauge func(n int)
}

func (l *lane) push(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.queue = append(l.queue, r)
	l.gauge(len(l.queue))
}

func (l *lane) head() *Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.queue) == 0 {
		return nil
	}
	return l.queue[0]
}

func (l *lane) asyncHead() bool {
	h := l.head()
	return h != nil && h.async
}

func (l *lane) remove(r *Request) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, q := range l.queue {
		if q == r {
			copy(l.queue[i:], l.queue[i+1:])
			l.queue[len(l.queue)-1] = nil
			l.queue = l.queue[:len(l.queue)-1]
			break
		}
	}
	l.gauge(len(l.queue))
}

// overdue lists the asynchronous requests that stand behind the head and whose time is over, and says whether any stands there.
func (l *lane) overdue(now int64) (late []*Request, any bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i, r := range l.queue {
		if i == 0 || !r.async || r.deadline == hot.Forever {
			continue
		}
		any = true
		if now >= r.deadline {
			late = append(late, r)
		}
	}
	return late, any
}

// all is a copy of what stands in the lane, for closing.
func (l *lane) all() []*Request {
	l.mu.Lock()
	defer l.mu.Unlock()
	return append([]*Request(nil), l.queue...)
}
