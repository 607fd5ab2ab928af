// Package world_test holds the promises of a world's life, memory and teams, with several PEs in one process.
package world_test

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
	"unsafe"

	"goshmem/gocore/coll"
	"goshmem/gocore/fabric"
	"goshmem/gocore/message"
	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

var counts = []int{1, 2, 3, 5, 8}

// both runs a case over mapped memory and over TLS with nobody mapped.
func both(t *testing.T, ns []int, o world.Options, f func(w *world.World) error) {
	for _, transport := range []string{"shm", "tcp"} {
		for _, n := range ns {
			if transport == "tcp" && n > 3 && testing.Short() {
				continue
			}
			t.Run(fmt.Sprintf("%s/%d", transport, n), func(t *testing.T) {
				o := o
				o.Transport = transport
				shmemtest.Run(t, n, o, f)
			})
		}
	}
}

func do(r *world.Request, err error) error {
	if err != nil {
		return err
	}
	_, err = r.Wait(-1)
	return err
}

func barrier(t *world.Team) error {
	return do(t.Collective(coll.Call{Op: coll.Barrier, Root: -1}, world.How{}, world.Default, -1))
}

func alloc(t *world.Team, bytes, align uint64) (*world.Block, error) {
	r, block, err := t.Alloc(bytes, align, world.Want{Zero: true}, world.Default, -1)
	if err := do(r, err); err != nil {
		return nil, err
	}
	return block(), nil
}

// held waits until another PE lets this one go, by way of a word of b that was zero.
func held(w *world.World, b *world.Block) error {
	return do(w.WaitUntil(b.Address(), 8, false, 0, 1, int64(3*time.Minute), -1))
}

func letGo(w *world.World, b *world.Block, pe int) error {
	return w.P(w.Context(), b.Address(), 1, 8, pe)
}

// bytesOf is a block's memory in this process.
func bytesOf(b *world.Block) []byte {
	at := b.Address()
	return unsafe.Slice(*(**byte)(unsafe.Pointer(&at)), int(b.Size()))
}

func TestBlocksLieAtTheSameOffsetAndAreZero(t *testing.T) {
	both(t, counts, world.Options{}, func(w *world.World) error {
		for round := range 4 {
			var held []*world.Block
			for i, size := range []uint64{0, 1, 63, 64, 65, 4097, 1 << 20} {
				b, err := alloc(w.WorldTeam(), size, []uint64{0, 64, 4096, 1 << 16}[i%4])
				if err != nil {
					return err
				}
				for k, v := range bytesOf(b) {
					if v != 0 {
						return fmt.Errorf("round %d, size %d: byte %d is %d", round, size, k, v)
					}
				}
				for k := range bytesOf(b) {
					bytesOf(b)[k] = byte(k + w.Me() + 1)
				}
				next := (w.Me() + 1) % w.N()
				got := make([]byte, size)
				if err := barrier(w.WorldTeam()); err != nil {
					return err
				}
				if err := w.Get(w.Context(), got, b.Address(), next); err != nil {
					return err
				}
				for k, v := range got {
					if v != byte(k+next+1) {
						return fmt.Errorf("size %d: byte %d of PE %d is %d", size, k, next, v)
					}
				}
				held = append(held, b)
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			for i := range held { // each PE drops in an order of its own
				held[(i*3+w.Me())%len(held)].Drop()
			}
		}
		if err := do(w.WorldTeam().Collect(world.Default, -1)); err != nil {
			return err
		}
		if s := w.HeapStats(); s.Used != 0 || s.Blocks != 0 {
			return fmt.Errorf("after all were dropped and collected: %+v", s)
		}
		return nil
	})
}

func TestUnequalAllocationIsAnErrorEverywhereAndTheHeapStaysUsable(t *testing.T) {
	both(t, []int{2, 3, 5}, world.Options{}, func(w *world.World) error {
		_, err := alloc(w.WorldTeam(), uint64(w.Me()+1)<<20, 0)
		if status.Of(err) != status.Asymmetric {
			return fmt.Errorf("got %v", err)
		}
		for pe := range w.N() {
			if !strings.Contains(err.Error(), fmt.Sprintf("PE %d: %d bytes", pe, (pe+1)<<20)) {
				return fmt.Errorf("PE %d's wish is missing in %q", pe, err)
			}
		}
		b, err := alloc(w.WorldTeam(), 1<<20, 0)
		if err != nil {
			return err
		}
		b.Drop()
		return w.WorldTeam().Health()
	})
}

func TestExhaustionIsAnErrorEverywhereWithNumbers(t *testing.T) {
	both(t, []int{1, 2, 3}, world.Options{HeapBytes: 8 << 20}, func(w *world.World) error {
		a, err := alloc(w.WorldTeam(), 5<<20, 0)
		if err != nil {
			return err
		}
		_, err = alloc(w.WorldTeam(), 5<<20, 0)
		if status.Of(err) != status.HeapFull || !strings.Contains(err.Error(), "heap size 8388608, used 5242880, largest hole 3145728") {
			return fmt.Errorf("got %v", err)
		}
		a.Drop()
		b, err := alloc(w.WorldTeam(), 8<<20, 0) // reclaims what all have dropped
		if err != nil {
			return err
		}
		b.Drop()
		return nil
	})
}

func TestOverlappingTeamsAgreeOnOffsets(t *testing.T) {
	both(t, []int{3, 5}, world.Options{}, func(w *world.World) error {
		evens, odd := (w.N()+1)/2, w.Me()%2 == 1
		r, made, err := w.WorldTeam().SplitStrided(0, 2, evens, world.Default, -1)
		if err := do(r, err); err != nil {
			return err
		}
		if (made()[0] == nil) != odd {
			return fmt.Errorf("membership of PE %d is wrong", w.Me())
		}
		for range 3 {
			if !odd { // gives the even ones another history
				if _, err := alloc(made()[0], 3<<16, 0); err != nil {
					return err
				}
			}
			if w.Me() == 1 {
				if _, err := w.AllocLocal(12345, 0, world.Want{}); err != nil {
					return err
				}
			}
			b, err := alloc(w.WorldTeam(), 1<<16, 0)
			if err != nil {
				return err
			}
			mine := []byte{byte(w.Me() + 1), 77}
			if err := w.Put(w.Context(), b.Address()+uintptr(2*w.Me()), mine, 0); err != nil {
				return err
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			if w.Me() == 0 {
				for pe := range w.N() {
					if got := bytesOf(b)[2*pe]; got != byte(pe+1) {
						return fmt.Errorf("PE %d put %d", pe, got)
					}
				}
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
		}
		return nil
	})
}

func TestHundredsOfLiveTeams(t *testing.T) {
	shmemtest.Run(t, 3, world.Options{}, func(w *world.World) error {
		var live []*world.Team
		for i := range 300 {
			pes := []int{i % 3, (i + 1) % 3}
			member := pes[0] == w.Me() || pes[1] == w.Me()
			if !member {
				continue
			}
			r, made, err := w.CreateTeam(pes, uint64(i), world.Default, -1)
			if err := do(r, err); err != nil {
				return fmt.Errorf("team %d: %w", i, err)
			}
			live = append(live, made()[0])
		}
		for _, tm := range live {
			if err := barrier(tm); err != nil {
				return err
			}
		}
		for _, tm := range live {
			if err := tm.Destroy(); err != nil {
				return err
			}
		}
		return barrier(w.WorldTeam())
	})
}

func TestFinalizeKeepsPagesOfHeldBlocks(t *testing.T) {
	worlds := shmemtest.Up(t, 2, world.Options{})
	blocks := make([]*world.Block, 2)
	run(t, worlds, func(w *world.World) (err error) {
		blocks[w.Me()], err = alloc(w.WorldTeam(), 1<<16, 0)
		for i := range bytesOf(blocks[w.Me()]) {
			bytesOf(blocks[w.Me()])[i] = byte(i * (w.Me() + 3))
		}
		return err
	})
	shmemtest.Down(t, worlds)
	for pe, b := range blocks {
		for i, v := range bytesOf(b) {
			require.Equal(t, byte(i*(pe+3)), v)
		}
		require.Equal(t, status.Finalized, status.Of(b.World().Put(b.World().Context(), b.Address(), []byte{1}, 0)))
	}
	before := shmemtest.Held().Maps
	for _, b := range blocks {
		b.Drop()
	}
	require.Less(t, shmemtest.Held().Maps, before, "the last drop unmaps")
}

func run(t *testing.T, worlds []*world.World, f func(w *world.World) error) {
	errs := make([]error, len(worlds))
	var wg sync.WaitGroup
	for pe, w := range worlds {
		wg.Add(1)
		go func() {
			defer wg.Done()
			errs[pe] = f(w)
		}()
	}
	wg.Wait()
	for pe, err := range errs {
		require.NoError(t, err, "PE %d", pe)
	}
}

func TestManyLivesLeaveNothing(t *testing.T) {
	cycle := func(n int) {
		shmemtest.Run(t, n, world.Options{}, func(w *world.World) error {
			b, err := alloc(w.WorldTeam(), 1<<16, 0)
			if err != nil {
				return err
			}
			b.Drop()
			return barrier(w.WorldTeam())
		})
	}
	cycle(2)
	time.Sleep(100 * time.Millisecond)
	before := shmemtest.Held()
	for i := range 12 {
		cycle(1 + i%3)
	}
	var now shmemtest.Resources
	for range 600 {
		if now = shmemtest.Held(); now.Files <= before.Files && now.Maps <= before.Maps && now.Goroutines <= before.Goroutines {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	require.Fail(t, "something grew", "before %+v, after %+v", before, now)
}

func TestAbortWakesEverybody(t *testing.T) {
	for _, transport := range []string{"shm", "tcp"} {
		t.Run(transport, func(t *testing.T) {
			worlds := shmemtest.Up(t, 3, world.Options{Transport: transport})
			run(t, worlds, func(w *world.World) error {
				if w.Me() == 2 {
					time.Sleep(100 * time.Millisecond)
					w.Abort(7)
					return nil
				}
				began := time.Now()
				err := barrier(w.WorldTeam())
				if status.Of(err) != status.Aborted || !strings.Contains(err.Error(), "PE 2") {
					return fmt.Errorf("got %v", err)
				}
				if d := time.Since(began); d > 20*time.Second {
					return fmt.Errorf("woke after %v", d)
				}
				return nil
			})
			shmemtest.Down(t, worlds)
		})
	}
}

func TestTimeoutNamesWhoIsMissingAndOtherTeamsWork(t *testing.T) {
	both(t, []int{3}, world.Options{}, func(w *world.World) error {
		pair, made, err := w.WorldTeam().SplitStrided(0, 1, 2, world.Default, -1)
		if err := do(pair, err); err != nil {
			return err
		}
		b, err := alloc(w.WorldTeam(), 8, 0)
		if err != nil {
			return err
		}
		if w.Me() != 2 {
			r, err := w.WorldTeam().Collective(coll.Call{Op: coll.Barrier, Root: -1}, world.How{}, int64(300*time.Millisecond), -1)
			err = do(r, err)
			if code := status.Of(err); code != status.Timeout && code != status.TeamPoisoned {
				return fmt.Errorf("got %v", err)
			}
			if status.Of(err) == status.Timeout && !strings.Contains(err.Error(), "2") {
				return fmt.Errorf("PE 2 is not named in %q", err)
			}
			if err := barrier(made()[0]); err != nil {
				return fmt.Errorf("the other team: %w", err)
			}
			return letGo(w, b, 2)
		}
		if err := held(w, b); err != nil {
			return err
		}
		if err := barrier(w.WorldTeam()); status.Of(err) != status.TeamPoisoned {
			return fmt.Errorf("the late PE got %v", err)
		}
		return nil
	})
}

func TestDisagreementIsAnErrorOnBoth(t *testing.T) {
	both(t, []int{2, 3}, world.Options{}, func(w *world.World) error {
		var x [64]byte
		call := coll.Call{Op: coll.AllGather, Root: -1, Count: 4}
		out := make([]byte, 4*w.N())
		call.In, call.Out = uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&out[0]))
		if w.Me() == 0 {
			call = coll.Call{Op: coll.Barrier, Root: -1}
		}
		err := do(w.WorldTeam().Collective(call, world.How{}, world.Default, -1))
		if code := status.Of(err); code != status.Mismatch {
			return fmt.Errorf("got %v", err)
		}
		if !strings.Contains(err.Error(), "barrier") || !strings.Contains(err.Error(), "all_gather") {
			return fmt.Errorf("both sides are not in %q", err)
		}
		return nil
	})
}

func TestAsynchronousOperationsKeepTheirOrder(t *testing.T) {
	both(t, []int{1, 2, 3}, world.Options{}, func(w *world.World) error {
		const many = 50
		in, out := make([][]int64, many), make([][]int64, many)
		var rs []*world.Request
		for i := range many {
			in[i], out[i] = []int64{int64(i * (w.Me() + 1))}, []int64{-1}
			call := coll.Call{Op: coll.AllReduce, DType: 8, RedOp: 1, Root: -1, Count: 1, In: uintptr(unsafe.Pointer(&in[i][0])), Out: uintptr(unsafe.Pointer(&out[i][0]))}
			r, err := w.WorldTeam().Collective(call, world.How{Async: i%3 != 2}, world.Default, -1)
			if err != nil {
				return err
			}
			rs = append(rs, r)
		}
		for i, r := range rs {
			if _, err := r.Wait(-1); err != nil {
				return err
			}
			if want := int64(i * w.N() * (w.N() + 1) / 2); out[i][0] != want {
				return fmt.Errorf("operation %d gave %d, want %d", i, out[i][0], want)
			}
		}
		return nil
	})
}

func TestMessagesBetweenWorlds(t *testing.T) {
	both(t, []int{1, 2, 3}, world.Options{}, func(w *world.World) error {
		tm := w.WorldTeam()
		to, from := (w.Me()+1)%w.N(), (w.Me()+w.N()-1)%w.N()
		for _, size := range []int{0, 1, 80, 81, 5000, 3 << 20} {
			out, in := make([]byte, size), make([]byte, size)
			for i := range out {
				out[i] = byte(i*7 + w.Me())
			}
			r, err := tm.Recv(in, message.AnySource, int64(size), world.How{Async: true}, world.Default, 0)
			if err != nil {
				return err
			}
			if err := do(tm.Send(out, to, int64(size), world.How{}, world.Default, -1)); err != nil {
				return err
			}
			if _, err := r.Wait(-1); err != nil {
				return err
			}
			if words := r.Result(); words != [4]uint64{uint64(from), uint64(size), uint64(size)} {
				return fmt.Errorf("result %v", words)
			}
			for i := range in {
				if in[i] != byte(i*7+from) {
					return fmt.Errorf("size %d, byte %d", size, i)
				}
			}
		}
		return nil
	})
}

func TestAtomicsOfAllPEsAreExact(t *testing.T) {
	both(t, []int{2, 3}, world.Options{}, func(w *world.World) error {
		b, err := alloc(w.WorldTeam(), 64, 0)
		if err != nil {
			return err
		}
		const each = 300
		for range each {
			if _, err := w.Atomic(w.Context(), b.Address(), fabric.Atomic{Op: fabric.Add, Width: 8, Operand: uint64(w.Me() + 1)}, 0); err != nil {
				return err
			}
		}
		if err := barrier(w.WorldTeam()); err != nil {
			return err
		}
		got, err := w.G(w.Context(), b.Address(), 8, 0)
		if want := uint64(each * w.N() * (w.N() + 1) / 2); err == nil && got != want {
			return fmt.Errorf("sum %d, want %d", got, want)
		}
		return err
	})
}

func TestBadArgumentsAreRefusedBeforeAnythingMoves(t *testing.T) {
	both(t, []int{2}, world.Options{}, func(w *world.World) error {
		b, err := alloc(w.WorldTeam(), 64, 0)
		if err != nil {
			return err
		}
		here := make([]byte, 8)
		for what, c := range map[string]struct {
			err  error
			want status.Code
		}{
			"PE below":   {w.Put(w.Context(), b.Address(), here, -1), status.InvalidPE},
			"PE beyond":  {w.Get(w.Context(), here, b.Address(), w.N()), status.InvalidPE},
			"ordinary":   {w.Put(w.Context(), uintptr(unsafe.Pointer(&here[0])), here, 0), status.NotSymmetric},
			"past end":   {w.Put(w.Context(), b.Address()+uintptr(64<<20)-4, here, 0), status.NotSymmetric},
			"misaligned": {second(w.Atomic(w.Context(), b.Address()+4, fabric.Atomic{Op: fabric.Add, Width: 8}, 0)), status.Misaligned},
			"operator":   {second(w.Atomic(w.Context(), b.Address(), fabric.Atomic{Op: 99, Width: 8}, 0)), status.InvalidArgument},
			"width":      {w.P(w.Context(), b.Address(), 1, 3, 0), status.InvalidArgument},
		} {
			if status.Of(c.err) != c.want {
				return fmt.Errorf("%s: %v", what, c.err)
			}
		}
		return barrier(w.WorldTeam())
	})
}

func second(_ uint64, err error) error { return err }
