package world_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/device"
	"goshmem/gocore/fabric"
	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

// The device of these tests is host memory without access, worked on late by goroutines (package device/host): following one of its
// addresses is a fault, and what nobody waited for is not done.

const deviceHeap = 8 << 20

// onDevice runs a case with a device of each PE.
func onDevice(t *testing.T, ns []int, f func(w *world.World) error) {
	t.Setenv("SHMEM_HOST_DEVICE_LATE_US", "300")
	for _, n := range ns {
		t.Run(fmt.Sprint(n), func(t *testing.T) {
			shmemtest.Run(t, n, world.Options{Device: "host", DeviceBytes: deviceHeap}, f)
		})
	}
}

func allocOn(t *world.Team, bytes uint64, zero bool) (*world.Block, error) {
	r, block, err := t.Alloc(bytes, 0, world.Want{Zero: zero, OnDevice: true}, world.Default, -1)
	if err := do(r, err); err != nil {
		return nil, err
	}
	return block(), nil
}

// pattern is bytes that differ by PE and place.
func pattern(pe int, n uint64) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(pe*37 + i*11 + i>>8 + 1)
	}
	return b
}

// local is host memory with these bytes, at an address that does not move.
func local(w *world.World, b []byte) (*world.Block, error) {
	m, err := w.AllocLocal(uint64(len(b)), 0, world.Want{})
	if err == nil {
		copy(bytesOf(m), b)
	}
	return m, err
}

// load reads own device memory.
func load(w *world.World, at uintptr, n uint64) ([]byte, error) {
	m, err := local(w, make([]byte, n))
	if err != nil {
		return nil, err
	}
	defer m.Drop()
	if err := w.GetAny(w.Context(), m.Address(), at, n, w.Me(), false); err != nil {
		return nil, err
	}
	return bytes.Clone(bytesOf(m)), nil
}

func store(w *world.World, at uintptr, b []byte) error {
	m, err := local(w, b)
	if err != nil {
		return err
	}
	defer m.Drop()
	return w.PutAny(w.Context(), at, m.Address(), uint64(len(b)), w.Me(), false)
}

func expect(w *world.World, what string, at uintptr, want []byte) error {
	got, err := load(w, at, uint64(len(want)))
	if err == nil && !bytes.Equal(got, want) {
		i := 0
		for got[i] == want[i] {
			i++
		}
		err = fmt.Errorf("%s: byte %d of %d is %d, not %d", what, i, len(want), got[i], want[i])
	}
	return err
}

func TestDeviceBlocksLieAtTheSameOffsetAreZeroAndComeBack(t *testing.T) {
	onDevice(t, counts, func(w *world.World) error {
		for round := range 3 {
			var held []*world.Block
			for _, size := range []uint64{0, 1, 65, 4097, 3 << 20} {
				b, err := allocOn(w.WorldTeam(), size, true)
				if err != nil {
					return err
				}
				if !b.OnDevice() || size > 0 && w.KindOf(b.Address()) != world.MemoryDevice {
					return fmt.Errorf("size %d is of kind %d", size, w.KindOf(b.Address()))
				}
				if err := expect(w, fmt.Sprintf("round %d, size %d", round, size), b.Address(), make([]byte, size)); err != nil {
					return err
				}
				if err := store(w, b.Address(), pattern(w.Me(), size)); err != nil {
					return err
				}
				held = append(held, b)
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			next := (w.Me() + 1) % w.N()
			for _, b := range held {
				m, err := local(w, make([]byte, b.Size()))
				if err != nil {
					return err
				}
				if err := w.GetAny(w.Context(), m.Address(), b.Address(), b.Size(), next, false); err != nil {
					return err
				}
				if !bytes.Equal(bytesOf(m), pattern(next, b.Size())) {
					return fmt.Errorf("size %d of PE %d differs", b.Size(), next)
				}
				m.Drop()
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			for i := range held {
				held[(i*3+w.Me())%len(held)].Drop()
			}
		}
		if err := do(w.WorldTeam().Collect(world.Default, -1)); err != nil {
			return err
		}
		s, err := w.DeviceStats()
		if err == nil && (s.Used != 0 || s.Blocks != 0) {
			err = fmt.Errorf("after all were dropped and collected: %+v", s)
		}
		return err
	})
}

func TestEveryMixOfMemoryMoves(t *testing.T) {
	const size, pad = 70003, 64
	onDevice(t, []int{1, 2, 3}, func(w *world.World) error {
		me, next, before := w.Me(), (w.Me()+1)%w.N(), (w.Me()+w.N()-1)%w.N()
		for _, remote := range []bool{false, true} {
			for _, here := range []bool{false, true} {
				what := fmt.Sprintf("symmetric side on device %v, local side %v", remote, here)
				r, block, err := w.WorldTeam().Alloc(size+2*pad, 0, world.Want{Zero: true, OnDevice: remote}, world.Default, -1)
				if err := do(r, err); err != nil {
					return err
				}
				b := block()
				mine, err := w.AllocLocal(size+2*pad, 0, world.Want{Zero: true, OnDevice: here})
				if err != nil {
					return err
				}
				if err := put(w, mine.Address(), pattern(me, size+2*pad)); err != nil {
					return err
				}
				if err := w.PutAny(w.Context(), b.Address()+pad, mine.Address()+pad, size, next, false); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				if err := barrier(w.WorldTeam()); err != nil {
					return err
				}
				want := make([]byte, size+2*pad)
				copy(want[pad:], pattern(before, size+2*pad)[pad:pad+size])
				if err := get(w, what+": put", b.Address(), want); err != nil {
					return err
				}
				if err := put(w, mine.Address(), make([]byte, size+2*pad)); err != nil {
					return err
				}
				if err := w.GetAny(w.Context(), mine.Address()+pad, b.Address()+pad, size, next, true); err != nil {
					return fmt.Errorf("%s: %w", what, err)
				}
				if err := w.Quiet(w.Context(), world.Default); err != nil {
					return err
				}
				copy(want[pad:], pattern(me, size+2*pad)[pad:pad+size])
				if err := get(w, what+": get", mine.Address(), want); err != nil {
					return err
				}
				if err := barrier(w.WorldTeam()); err != nil {
					return err
				}
				b.Drop()
				mine.Drop()
			}
		}
		return nil
	})
}

// put and get reach own memory of either kind.
func put(w *world.World, at uintptr, b []byte) error {
	if w.KindOf(at) == world.MemoryDevice {
		return store(w, at, b)
	}
	block, err := w.BlockOf(at)
	if err == nil {
		copy(bytesOf(block)[at-block.Address():], b)
	}
	return err
}

func get(w *world.World, what string, at uintptr, want []byte) error {
	if w.KindOf(at) == world.MemoryDevice {
		return expect(w, what, at, want)
	}
	block, err := w.BlockOf(at)
	if err == nil && !bytes.Equal(bytesOf(block)[at-block.Address():][:len(want)], want) {
		err = fmt.Errorf("%s differs", what)
	}
	return err
}

func TestStridedSingleValuesAndSignalsOnADevice(t *testing.T) {
	onDevice(t, []int{1, 2, 3}, func(w *world.World) error {
		me, next, before := w.Me(), (w.Me()+1)%w.N(), (w.Me()+w.N()-1)%w.N()
		b, err := allocOn(w.WorldTeam(), 4096, true)
		if err != nil {
			return err
		}
		src, err := local(w, pattern(me, 300))
		if err != nil {
			return err
		}
		if err := w.IputAny(w.Context(), b.Address()+80, src.Address(), -3, 2, 3, 20, next); err == nil {
			return fmt.Errorf("a stride that leaves the heap was taken")
		}
		if err := w.IputAny(w.Context(), b.Address()+2048, src.Address(), 5, 3, 3, 20, next); err != nil {
			return err
		}
		if err := w.P(w.Context(), b.Address()+1, 0x1122334455667788+uint64(me), 8, next); err != nil { // not aligned
			return err
		}
		sig := b.Address() + 4088
		if err := w.PutSignalAny(w.Context(), b.Address()+16, src.Address(), 100, sig, int(fabric.SignalSet), uint64(100+me), next); err != nil {
			return err
		}
		if err := do(w.WaitUntil(sig, 8, false, 0, uint64(100+before), int64(10*time.Second), -1)); err != nil {
			return err
		}
		if err := expect(w, "put with a signal", b.Address()+16, pattern(before, 100)); err != nil {
			return err
		}
		if v, err := w.G(w.Context(), b.Address()+1, 8, me); err != nil || v != 0x1122334455667788+uint64(before) {
			return fmt.Errorf("p: %#x, %v", v, err)
		}
		want := make([]byte, 300)
		for i := range 20 {
			copy(want[i*15:], pattern(before, 300)[i*9:i*9+3])
		}
		if err := expect(w, "iput", b.Address()+2048, want); err != nil {
			return err
		}
		back, err := local(w, make([]byte, 60))
		if err != nil {
			return err
		}
		if err := w.IgetAny(w.Context(), back.Address(), b.Address()+2048, 1, 5, 3, 20, next); err != nil {
			return err
		}
		for i := range 20 {
			if !bytes.Equal(bytesOf(back)[3*i:3*i+3], pattern(me, 300)[i*9:i*9+3]) {
				return fmt.Errorf("iget: element %d", i)
			}
		}
		for _, op := range []fabric.AtomicOp{fabric.Swap, fabric.CompareSwap, fabric.Xor, fabric.Add} {
			if _, err := w.Atomic(w.Context(), sig, fabric.Atomic{Op: op, Width: 8}, me); status.Of(err) != status.Unsupported || !strings.Contains(err.Error(), "host memory") {
				return fmt.Errorf("atomic %d: %v", op, err)
			}
		}
		if v, err := w.Atomic(w.Context(), sig, fabric.Atomic{Op: fabric.Fetch, Width: 8}, me); err != nil || v != uint64(100+before) {
			return fmt.Errorf("fetch: %d, %v", v, err)
		}
		return barrier(w.WorldTeam())
	})
}

func TestWaitsForDeviceWordsKeepTheirDeadline(t *testing.T) {
	onDevice(t, []int{2}, func(w *world.World) error {
		b, err := allocOn(w.WorldTeam(), 64, true)
		if err != nil {
			return err
		}
		if yes, err := w.Test(b.Address(), 4, true, 4, 1); err != nil || !yes {
			return fmt.Errorf("0 < 1 is %v, %v", yes, err)
		}
		began := time.Now()
		err = do(w.WaitUntil(b.Address(), 4, true, 4, ^uint64(0), int64(300*time.Millisecond), -1)) // 0 < -1, signed: never
		if took := time.Since(began); status.Of(err) != status.Timeout || took < 290*time.Millisecond || took > 20*time.Second {
			return fmt.Errorf("after %v: %v", took, err)
		}
		if !strings.Contains(err.Error(), "limit 300ms") {
			return err
		}
		if err := barrier(w.WorldTeam()); err != nil {
			return err
		}
		if w.Me() == 0 {
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			return w.P(w.Context(), b.Address(), 7, 4, 1)
		}
		r, err := w.WaitUntil(b.Address(), 4, false, 3, 7, int64(time.Minute), 0)
		if err != nil {
			return err
		}
		if ended, _ := r.Wait(time.Millisecond); ended {
			return fmt.Errorf("the word is there before it was written")
		}
		if err := barrier(w.WorldTeam()); err != nil {
			return err
		}
		if _, err := r.Wait(-1); err != nil || r.Result()[0] != 7 {
			return fmt.Errorf("%v %v", r.Result(), err)
		}
		return nil
	})
}

func TestStreamsKeepTheirOrder(t *testing.T) {
	onDevice(t, []int{1, 2, 3}, func(w *world.World) error {
		const size = 5000
		me, next, before := w.Me(), (w.Me()+1)%w.N(), (w.Me()+w.N()-1)%w.N()
		b, err := allocOn(w.WorldTeam(), 2*size, true)
		if err != nil {
			return err
		}
		src, err := w.AllocLocal(size, 0, world.Want{OnDevice: true})
		if err != nil {
			return err
		}
		if err := store(w, src.Address(), pattern(me, size)); err != nil {
			return err
		}
		one, err := w.NewStream()
		if err != nil {
			return err
		}
		two, err := w.NewStream()
		if err != nil {
			return err
		}
		for _, step := range []func() error{
			func() error { return w.PutOnStream(b.Address(), src.Address(), size, next, one) },
			func() error { return w.WorldTeam().BarrierOnStream(one) },
			func() error { return w.JoinStreams(two, one) },
			func() error { return w.GetOnStream(b.Address()+size, b.Address(), size, before, two) },
			func() error { return w.QuietOnStream(two) },
			func() error { return do(w.WaitStream(two, world.Default, 0)) },
		} {
			if err := step(); err != nil {
				return err
			}
		}
		if err := expect(w, "put on a stream", b.Address(), pattern(before, size)); err != nil {
			return err
		}
		if err := expect(w, "get after a barrier", b.Address()+size, pattern((before+w.N()-1)%w.N(), size)); err != nil {
			return err
		}
		if err := w.WorldTeam().CollectiveOnStream(coll.Call{Op: coll.AllGather, In: src.Address(), Out: b.Address(), Count: 8}, one); status.Of(err) != status.Unsupported {
			return fmt.Errorf("without kernels: %v", err)
		}
		for _, s := range []device.Stream{one, two} {
			if err := w.FreeStream(s); err != nil {
				return err
			}
		}
		return barrier(w.WorldTeam())
	})
}

func TestAStreamThatWaitsForAPeerTimesOutByName(t *testing.T) {
	onDevice(t, []int{2}, func(w *world.World) error {
		b, err := alloc(w.WorldTeam(), 8, 0)
		if err != nil {
			return err
		}
		if w.Me() == 0 {
			if err := w.WorldTeam().BarrierOnStream(device.Own); err != nil {
				return err
			}
			err := do(w.WaitStream(device.Own, int64(200*time.Millisecond), 0))
			if status.Of(err) != status.Timeout || !strings.Contains(err.Error(), "barrier_on_stream") {
				return fmt.Errorf("got %v", err)
			}
			r, err := w.WaitStream(device.Own, world.Default, 0)
			if err != nil {
				return err
			}
			if ended, _ := r.Wait(10 * time.Millisecond); ended {
				return fmt.Errorf("the barrier ended before PE 1 came")
			}
			if err := letGo(w, b, 1); err != nil {
				return err
			}
			_, err = r.Wait(-1)
			return err
		}
		if err := held(w, b); err != nil {
			return err
		}
		if err := w.WorldTeam().BarrierOnStream(device.Own); err != nil {
			return err
		}
		return do(w.WaitStream(device.Own, world.Default, -1))
	})
}

func TestAbortEndsWhatWaitsOnADevice(t *testing.T) {
	t.Setenv("SHMEM_HOST_DEVICE_LATE_US", "300")
	worlds := shmemtest.Up(t, 2, world.Options{Device: "host", DeviceBytes: deviceHeap})
	require.NoError(t, worlds[0].WorldTeam().BarrierOnStream(device.Own))
	r, err := worlds[0].WaitStream(device.Own, world.Default, 0)
	require.NoError(t, err)
	worlds[1].Abort(3)
	began := time.Now()
	_, err = r.Wait(2 * time.Minute)
	require.ErrorIs(t, err, status.Aborted)
	require.Less(t, time.Since(began), 30*time.Second)
	require.ErrorIs(t, worlds[0].WorldTeam().BarrierOnStream(device.Own), status.Aborted)
	shmemtest.Down(t, worlds)
}

func TestUnequalWishesOnADeviceAreErrorsEverywhere(t *testing.T) {
	onDevice(t, []int{2, 3}, func(w *world.World) error {
		r, _, err := w.WorldTeam().Alloc(64, 0, world.Want{OnDevice: w.Me() == 0}, world.Default, -1)
		if err = do(r, err); status.Of(err) != status.Asymmetric || !strings.Contains(err.Error(), "PE 0: 64 bytes on the device, PE 1: 64 bytes") {
			return fmt.Errorf("got %v", err)
		}
		if _, err := allocOn(w.WorldTeam(), deviceHeap+1, true); status.Of(err) != status.HeapFull || !strings.Contains(err.Error(), "SHMEM_DEVICE_SIZE") {
			return fmt.Errorf("got %v", err)
		}
		b, err := allocOn(w.WorldTeam(), 64, true)
		if err != nil {
			return err
		}
		if _, err := w.WorldTeam().Collective(coll.Call{Op: coll.Broadcast, In: b.Address(), Out: b.Address(), Count: 8}, world.How{}, world.Default, -1); status.Of(err) != status.Unsupported {
			return fmt.Errorf("a collective took device memory: %v", err)
		}
		if err := w.PutAny(w.Context(), b.Address()+deviceHeap, b.Address(), 8, 0, false); status.Of(err) != status.NotSymmetric {
			return fmt.Errorf("got %v", err)
		}
		return w.WorldTeam().Health()
	})
}
