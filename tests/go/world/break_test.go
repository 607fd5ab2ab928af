package world_test

import (
	"encoding/json"
	"fmt"
	"runtime"
	"sync"
	"testing"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

// What a reader who had not written the core found broken, each in its smallest form.

func scratchUsed(w *world.World) (n uint64) {
	var in struct {
		Scratch uint64 `json:"scratch_used"`
	}
	if err := json.Unmarshal(w.Info(), &in); err != nil {
		panic(err)
	}
	return in.Scratch
}

// More blocks than one exchange can speak of, dropped in another order by each PE, some by one PE only, and collected from the middle.
func TestCollectReclaimsEverythingWhateverItsNumber(t *testing.T) {
	both(t, []int{1, 3}, world.Options{}, func(w *world.World) error {
		const many = 1700
		team := w.WorldTeam()
		var held []*world.Block
		for range many {
			b, err := alloc(team, 64, 0)
			if err != nil {
				return err
			}
			held = append(held, b)
		}
		for i := range many { // 7 is coprime to many; PE 1 keeps every tenth
			k := (i*7 + w.Me()*311) % many
			if k%10 != 0 || w.Me() != 1 {
				held[k].Drop()
			}
		}
		if err := do(team.Collect(world.Default, -1)); err != nil {
			return err
		}
		want := uint64(0)
		if w.N() > 1 {
			want = many / 10
		}
		if s := w.HeapStats(); s.Blocks != want {
			return fmt.Errorf("%d blocks are left, expected the %d that PE 1 holds", s.Blocks, want)
		}
		if w.Me() == 1 {
			for k := 0; k < many; k += 10 {
				held[k].Drop()
			}
		}
		b, err := alloc(team, 64, 0)
		if err != nil {
			return err
		}
		b.Drop()
		for range 600 { // moves the window to the middle of the list
			b, err := alloc(team, 64, 0)
			if err != nil {
				return err
			}
			b.Drop()
		}
		if err := do(team.Collect(world.Default, -1)); err != nil {
			return err
		}
		if s := w.HeapStats(); s.Used != 0 {
			return fmt.Errorf("after all were dropped and collected: %+v", s)
		}
		return nil
	})
}

// A team that used its slab, its stage and messages gives all of that back when every member has destroyed it.
func TestTeamsThatWorkedLeaveNoScratch(t *testing.T) {
	both(t, []int{1, 2, 3}, world.Options{}, func(w *world.World) error {
		var first uint64
		for round := range 40 {
			r, made, err := w.WorldTeam().SplitStrided(0, 1, w.N(), world.Default, -1)
			if err := do(r, err); err != nil {
				return err
			}
			team := made()[0]
			for _, size := range []int{1000, 300000} {
				in, out := make([]byte, size), make([]byte, size*w.N())
				err := do(team.Collective(coll.Call{Op: coll.AllGather, In: addr(in), Out: addr(out), Count: uint64(size), Root: -1}, world.How{}, world.Default, -1))
				runtime.KeepAlive(in) // its address was all that was left of it
				runtime.KeepAlive(out)
				if err != nil {
					return err
				}
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			if err := team.Destroy(); err != nil {
				return err
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			if round == 3 {
				first = scratchUsed(w)
			}
		}
		const oneTeam = 128 << 10 // what a team uses; a few may wait for a member to say that it has destroyed it too
		if used := scratchUsed(w); used > first+3*oneTeam {
			return fmt.Errorf("%d bytes of scratch are used, after round 3 it was %d", used, first)
		}
		return nil
	})
}

// Blocks of a destroyed team come back once every member has let go of them, whichever comes first.
func TestBlocksOfDestroyedTeamsComeBack(t *testing.T) {
	both(t, []int{1, 2, 3}, world.Options{HeapBytes: 8 << 20}, func(w *world.World) error {
		for round := range 20 {
			r, made, err := w.WorldTeam().SplitStrided(0, 1, w.N(), world.Default, -1)
			if err := do(r, err); err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			team := made()[0]
			b, err := alloc(team, 3<<20, 0)
			if err != nil {
				return fmt.Errorf("round %d: %w", round, err)
			}
			if (round+w.Me())%2 == 0 {
				b.Drop()
			}
			if err := team.Destroy(); err != nil {
				return err
			}
			for i := range bytesOf(b)[:100] {
				if (round+w.Me())%2 == 1 && bytesOf(b)[i] != 0 {
					return fmt.Errorf("round %d: a held block was written", round)
				}
			}
			b.Drop()
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
		}
		return nil
	})
}

// A request that outlives its world is over, and says so; it does not look at memory that is gone.
func TestRequestsThatOutliveTheirWorld(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		worlds := shmemtest.Up(t, 2, world.Options{Transport: transport})
		w := worlds[0]
		word, err := w.AllocLocal(64, 0, world.Want{Zero: true})
		require.NoError(t, err)
		wait, err := w.WaitUntil(word.Address(), 8, false, 0, 1, -1, 0)
		require.NoError(t, err)
		recv, err := w.WorldTeam().Recv(make([]byte, 8), 1, 5, world.How{}, -1, 0)
		require.NoError(t, err)
		loose, _, err := w.CreateTeam([]int{0, 1}, 9, -1, 0)
		require.NoError(t, err)
		inLane, err := w.WorldTeam().Collective(coll.Call{Op: coll.Barrier, Root: -1}, world.How{}, -1, 0)
		require.NoError(t, err)
		word.Drop()
		shmemtest.Down(t, worlds)
		for name, r := range map[string]*world.Request{"wait": wait, "recv": recv, "create": loose, "barrier": inLane} {
			ended, err := r.Wait(0)
			require.True(t, ended, name)
			require.Error(t, err, name)
			require.Equal(t, status.Finalized, status.Of(err), "%s: %v", name, err)
			r.Release()
		}
	}
}

// Threads that use a world while another thread finalizes it get errors.
func TestFinalizeUnderWorkingThreads(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		for round := range 6 {
			worlds := shmemtest.Up(t, 2, world.Options{Transport: transport})
			var work sync.WaitGroup
			for _, w := range worlds {
				b, err := w.AllocLocal(1<<16, 0, world.Want{Zero: true})
				require.NoError(t, err)
				for i := range 4 {
					work.Add(1)
					go func() {
						defer work.Done()
						buf := make([]byte, 4096)
						for {
							var err error
							switch i {
							case 0:
								err = do(w.WorldTeam().Collective(coll.Call{Op: coll.Barrier, Root: -1}, world.How{}, world.Default, 0))
							case 1:
								err = w.Put(w.Context(), b.Address(), buf, 1-w.Me())
							case 2:
								err = do(w.WaitUntil(b.Address()+1<<15, 8, false, 0, 1, 1e6, 0))
								if status.Of(err) == status.Timeout {
									err = nil
								}
							case 3:
								err = do(w.WorldTeam().Send(buf[:100], 1-w.Me(), 3, world.How{}, 1e6, 0))
								if status.Of(err) == status.Timeout {
									err = nil
								}
								_ = w.WorldTeam().Health()
								_ = w.Info()
							}
							if err != nil {
								return
							}
						}
					}()
				}
				defer b.Drop()
			}
			time.Sleep(time.Duration(round) * 7 * time.Millisecond)
			var down sync.WaitGroup
			for _, w := range worlds {
				down.Add(1)
				go func() { defer down.Done(); _ = w.Finalize(time.Duration(round%2) * 5 * time.Second) }()
			}
			down.Wait()
			work.Wait()
		}
	}
}

// The time of an operation runs also while it stands behind another one.
func TestTimeoutsRunInTheQueue(t *testing.T) {
	both(t, []int{2}, world.Options{}, func(w *world.World) error {
		b, err := alloc(w.WorldTeam(), 8, 0)
		if err != nil {
			return err
		}
		call := coll.Call{Op: coll.Sync, Root: -1}
		if w.Me() == 0 {
			r, err := w.WorldTeam().Collective(call, world.How{Async: true}, -1, 0)
			if err != nil {
				return err
			}
			for _, how := range []world.How{{}, {Async: true}} {
				began := time.Now()
				late, err := w.WorldTeam().Collective(call, how, int64(300*time.Millisecond), -1)
				if err != nil {
					return err
				}
				if _, err = late.Wait(-1); status.Of(err) != status.Timeout {
					return fmt.Errorf("%+v: got %v", how, err)
				}
				if took := time.Since(began); took < 300*time.Millisecond {
					return fmt.Errorf("%+v: took %v", how, took)
				}
			}
			if err := letGo(w, b, 1); err != nil {
				return err
			}
			if _, err := r.Wait(-1); err != nil {
				return err
			}
		} else {
			if err := held(w, b); err != nil { // so what PE 0 began first is not over before the others' time is
				return err
			}
			if err := do(w.WorldTeam().Collective(call, world.How{}, -1, -1)); err != nil {
				return err
			}
		}
		return barrier(w.WorldTeam())
	})
}
