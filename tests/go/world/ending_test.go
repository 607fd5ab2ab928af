package world_test

import (
	"errors"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

// Everything that goroutines may call on a team or a world while another one destroys, aborts or finalizes it. Each call ends, with success or an
// error of the expected kinds; the race detector, a fault or the limit tells otherwise. tests/c/ending does the same through the C ABI.

// ending is one PE and what its goroutines use.
type ending struct {
	w     *world.World
	team  atomic.Pointer[world.Team]
	block *world.Block
	stop  atomic.Bool
	calls atomic.Int64
}

// endOf waits for a request within a limit.
func endOf(r *world.Request) error {
	ended, err := r.Wait(20 * time.Second)
	if !ended {
		return errors.New("a request did not end")
	}
	return err
}

func (e *ending) collective(turn int, async bool) error {
	size := []int{64, 4000, 300000}[turn%3] // never so few that they could lie on a stack, which moves
	in, out := make([]byte, size), make([]byte, size*e.w.N())
	defer runtime.KeepAlive(in) // their addresses are all that is left of them
	defer runtime.KeepAlive(out)
	call := coll.Call{Op: []int{coll.AllGather, coll.Barrier, coll.Broadcast}[turn/3%3], In: addr(in), Out: addr(out), Count: uint64(size), Root: -1}
	if call.Op == coll.Broadcast {
		call.Root = 0
	}
	r, err := e.team.Load().Collective(call, world.How{Async: async, Notify: async}, world.Default, time.Millisecond)
	if err != nil {
		return err
	}
	defer r.Release()
	return endOf(r)
}

// other is a call that does not need the members to agree.
func (e *ending) other(k int) error {
	t, peer := e.team.Load(), k%e.w.N()
	buf := make([]byte, []int{8, 3000, 100000}[k%3])
	switch k % 8 {
	case 0:
		return t.Health()
	case 1:
		return t.SetTimeout(int64(20 * time.Second))
	case 2:
		r, err := t.Send(buf, peer, 1, world.How{Async: k%2 == 0}, int64(50*time.Millisecond), time.Millisecond)
		if err != nil {
			return err
		}
		defer r.Release()
		return endOf(r)
	case 3:
		r, err := t.Recv(buf, peer, 1, world.How{}, int64(50*time.Millisecond), time.Millisecond)
		if err == nil {
			r.Release() // before its end, most of the time
		}
		return err
	case 4:
		return e.w.Put(e.w.Context(), e.block.Address(), buf, peer)
	case 5:
		r, err := e.w.WaitUntil(e.block.Address(), 8, false, 0, 99, int64(2*time.Millisecond), time.Millisecond)
		if err != nil {
			return err
		}
		defer r.Release()
		return endOf(r)
	case 6:
		_ = e.w.Info()
	}
	return e.w.Get(e.w.Context(), buf, e.block.Address(), peer)
}

func expected(err error) bool {
	switch status.Of(err) {
	case status.OK, status.Finalized, status.StaleHandle, status.TeamPoisoned, status.Mismatch, status.Canceled, status.Aborted, status.PeerLeft, status.Timeout, status.Truncated:
		return true
	}
	return false
}

// work starts goroutines that call on until stopped; the func stops them and says what went wrong.
func (e *ending) work() func() error {
	e.stop.Store(false)
	var all sync.WaitGroup
	bad := make(chan error, 64)
	for g := range 3 {
		all.Add(1)
		go func() {
			defer all.Done()
			for k := g; !e.stop.Load(); k++ {
				var err error
				if g == 0 {
					err = e.collective(k, k%3 != 0)
				} else {
					err = e.other(k)
				}
				e.calls.Add(1)
				if !expected(err) {
					bad <- fmt.Errorf("goroutine %d, call %d: %w", g, k, err)
					return
				}
			}
		}()
	}
	return func() error {
		e.stop.Store(true)
		all.Wait()
		close(bad)
		return <-bad
	}
}

func (e *ending) newTeam() error {
	r, made, err := e.w.WorldTeam().SplitStrided(0, 1, e.w.N(), world.Default, -1)
	if err := do(r, err); err != nil {
		return err
	}
	e.team.Store(made()[0])
	return e.collective(0, false) // it works whatever became of the one before it
}

// ready makes a team and chooses the one that is worked on. All have come through the setting up of it when it returns.
func (e *ending) ready(onWorld bool) error {
	if err := e.newTeam(); err != nil {
		return err
	}
	other := e.w.WorldTeam()
	if onWorld {
		other = e.team.Swap(other)
	}
	return barrier(other)
}

func endings(w *world.World) (*ending, error) {
	e := &ending{w: w}
	b, err := alloc(w.WorldTeam(), 1<<20, 0)
	e.block = b
	return e, err
}

func TestTeamsAreDestroyedUnderOperations(t *testing.T) {
	var calls atomic.Int64
	both(t, []int{1, 2, 3}, world.Options{}, func(w *world.World) error {
		e, err := endings(w)
		if err != nil {
			return err
		}
		defer e.block.Drop()
		for round := range 12 {
			if err := e.ready(false); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			stop := e.work()
			time.Sleep(time.Duration(round*w.Me()%5+1) * 300 * time.Microsecond)
			if err := e.team.Load().Destroy(); err != nil {
				return err
			}
			if err := e.team.Load().Health(); status.Of(err) != status.StaleHandle {
				return fmt.Errorf("after destroy: %v", err)
			}
			if err := stop(); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
		}
		calls.Add(e.calls.Load())
		return nil
	})
	require.Greater(t, calls.Load(), int64(100))
}

func TestWorldsEndUnderOperations(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		for n := 1; n <= 3; n++ {
			for _, aborts := range []bool{false, true} {
				t.Run(fmt.Sprintf("%s/%d/abort=%v", transport, n, aborts), func(t *testing.T) {
					for round := range 6 {
						worldEnds(t, transport, n, aborts, round)
					}
				})
			}
		}
	}
}

func worldEnds(t *testing.T, transport string, n int, aborts bool, round int) {
	worlds := shmemtest.Up(t, n, world.Options{Transport: transport})
	errs := make([]error, n)
	var all sync.WaitGroup
	for pe, w := range worlds {
		all.Add(1)
		go func() {
			defer all.Done()
			errs[pe] = func() error {
				e, err := endings(w)
				if err != nil {
					return err
				}
				e.block.Drop() // so that finalize unmaps
				if err := e.ready(round%2 == 0); err != nil {
					return err
				}
				stop := e.work()
				time.Sleep(time.Duration(round*(pe+1)) * 300 * time.Microsecond)
				if aborts && pe == round%n {
					w.Abort(3)
				}
				if err := w.Finalize(time.Minute); err != nil {
					return err
				}
				return stop()
			}()
		}()
	}
	all.Wait()
	for pe, err := range errs {
		require.NoError(t, err, "PE %d, round %d", pe, round)
	}
}
