package liveness

import (
	"context"
	"fmt"
	"os"
	"sync"
	"time"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// probeEvery is how often record locks are looked at, where that is all there is.
const probeEvery = 40 * time.Millisecond

// Monitor watches peers and remembers who died. All methods may be called from any goroutine.
type Monitor struct {
	onDeath func(pe int, err error)

	mu      sync.Mutex
	watched map[int]*watch // live watches by PE; guarded by mu
	dead    map[int]error  // why each dead PE is dead; guarded by mu
	closed  bool           // guarded by mu
	running sync.WaitGroup
}

// watch is one peer being watched; stop ends its goroutine.
type watch struct {
	how  string
	stop func() // idempotent
	done func() // called once when nothing of the watch runs any more
}

// New makes a monitor. onDeath is called once per dead PE, from a goroutine of the monitor or of ReportLost's caller, without any lock
// held; err is a status.PeerDead (or what the transport reported) naming the PE. It must not call Close.
func New(onDeath func(pe int, err error)) *Monitor {
	return &Monitor{onDeath: onDeath, watched: map[int]*watch{}, dead: map[int]error{}}
}

// WatchPidfd watches a peer by its pidfd, which the monitor owns from now on, also when it returns an error.
func (m *Monitor) WatchPidfd(pe, pidfd int) error {
	if err := unix.SetNonblock(pidfd, true); err != nil {
		_ = unix.Close(pidfd)
		return status.Wrap(status.System, "watch PE", err, "PE %d: pidfd %d cannot be waited for", pe, pidfd)
	}
	file := os.NewFile(uintptr(pidfd), fmt.Sprintf("pidfd of PE %d", pe))
	raw, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return status.Wrap(status.System, "watch PE", err, "PE %d", pe)
	}
	// Closing wakes the reader below.
	w := &watch{how: "pidfd", stop: func() { _ = file.Close() }, done: func() {}}
	return m.add(pe, w, func() {
		gone := false
		if err := raw.Read(func(fd uintptr) bool {
			gone = exited(int(fd))
			return gone
		}); gone {
			m.declare(pe, deathOf(pe, "its process ended"))
		} else if err != nil && !m.stopped(pe, w) {
			m.declare(pe, status.Wrap(status.Internal, "watch PE", err, "PE %d can no longer be watched", pe))
		}
	})
}

// exited asks whether the process has ended; a zombie has. poll on a pidfd is exact and never blocks here.
func exited(fd int) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	for {
		n, err := unix.Poll(fds, 0)
		if err == unix.EINTR {
			continue
		}
		return err == nil && n == 1 && fds[0].Revents&unix.POLLIN != 0
	}
}

// WatchProbe watches a peer by asking alive every 40 ms, for systems that deny pidfds (see segment.TakeProbe). done is called
// when watching ends. A process cannot watch itself this way: it does not see its own record lock.
func (m *Monitor) WatchProbe(pe int, alive func() bool, done func()) error {
	ctx, cancel := context.WithCancel(context.Background())
	w := &watch{how: "record lock", stop: cancel, done: done}
	return m.add(pe, w, func() {
		tick := time.NewTicker(probeEvery)
		defer tick.Stop()
		for {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
			if !alive() {
				m.declare(pe, deathOf(pe, "its lock was released by the system"))
				return
			}
		}
	})
}

// WatchPid watches a peer by its process number, which must be of this PID namespace and not yet reaped (a child, or a process
// the caller can vouch for). Prefer WatchPidfd.
func (m *Monitor) WatchPid(pe, pid int) error {
	fd, err := unix.PidfdOpen(pid, 0)
	if err == unix.ESRCH {
		m.declare(pe, deathOf(pe, fmt.Sprintf("process %d does not exist", pid)))
		return nil
	}
	if err != nil {
		return status.Wrap(status.System, "watch PE", err, "PE %d: no pidfd of process %d", pe, pid)
	}
	return m.WatchPidfd(pe, fd)
}

// ReportLost is what a transport calls when it lost a PE for good. The first report of a PE counts.
func (m *Monitor) ReportLost(pe int, err error) { m.declare(pe, err) }

// add starts a watch. A PE is watched once; a watch of a PE known dead or of a closed monitor ends at once.
func (m *Monitor) add(pe int, w *watch, run func()) error {
	m.mu.Lock()
	_, twice := m.watched[pe]
	refused := m.closed || twice || m.dead[pe] != nil
	if !refused {
		m.watched[pe] = w
		m.running.Add(1)
	}
	m.mu.Unlock()
	if !refused {
		go func() {
			defer m.running.Done()
			defer w.done()
			run()
			w.stop()
		}()
		return nil
	}
	w.stop()
	w.done()
	if twice {
		return status.At(status.Internal, "watch PE", pe, "it is being watched already, by %s", m.How(pe))
	}
	return nil
}

// stopped says whether the watch was ended by Forget or Close.
func (m *Monitor) stopped(pe int, w *watch) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.closed || m.watched[pe] != w
}

// declare records a death once and tells.
func (m *Monitor) declare(pe int, err error) {
	m.mu.Lock()
	if m.closed || m.dead[pe] != nil {
		m.mu.Unlock()
		return
	}
	m.dead[pe] = err
	w := m.watched[pe]
	delete(m.watched, pe)
	m.mu.Unlock()
	if w != nil {
		w.stop()
	}
	m.onDeath(pe, err)
}

func deathOf(pe int, how string) error {
	return status.At(status.PeerDead, "", pe, "%s", how)
}

// Forget stops watching a PE, because it left in order: its end is no death any more.
func (m *Monitor) Forget(pe int) {
	m.mu.Lock()
	w := m.watched[pe]
	delete(m.watched, pe)
	m.mu.Unlock()
	if w != nil {
		w.stop()
	}
}

// Dead is why a PE is dead, nil while it is not known to be.
func (m *Monitor) Dead(pe int) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.dead[pe]
}

// How says by what a PE is watched, for info(); empty when it is not.
func (m *Monitor) How(pe int) string {
	m.mu.Lock()
	defer m.mu.Unlock()
	if w := m.watched[pe]; w != nil {
		return w.how
	}
	return ""
}

// Close ends all watching and waits until no goroutine of the monitor is left. onDeath is not called after it returned.
// Closing twice is fine.
func (m *Monitor) Close() {
	m.mu.Lock()
	m.closed = true
	all := m.watched
	m.watched = map[int]*watch{}
	m.mu.Unlock()
	for _, w := range all {
		w.stop()
	}
	m.running.Wait()
}
