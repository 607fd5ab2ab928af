package world_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"
)

// reached is a world whose device reaches host memory, and what each PE works with.
type reached struct {
	*world.World
	far, mine *world.Block // symmetric in host memory; on the own device
	next      int
}

const reachedSize = 70_001

// reachHost runs a case in worlds whose devices reach host memory, without and with mapped peers.
func reachHost(t *testing.T, f func(w reached, mapped bool) error) {
	t.Setenv("SHMEM_HOST_DEVICE_LATE_US", "300")
	for _, transport := range []string{"auto", "tcp"} {
		for _, n := range []int{1, 2, 3, 5} {
			t.Run(fmt.Sprintf("%s/%d", transport, n), func(t *testing.T) {
				shmemtest.Run(t, n, world.Options{Device: "host", DeviceBytes: deviceHeap, HeapBytes: 48 << 20, Transport: transport}, func(w *world.World) error {
					far, err := alloc(w.WorldTeam(), 2*reachedSize, 0)
					if err != nil {
						return err
					}
					if _, err := w.DeviceAddress(far.Address(), w.Me()); status.Of(err) != status.Unsupported || !strings.Contains(err.Error(), "gshmem_device_reach_host") {
						return fmt.Errorf("before: %v", err)
					}
					for range 2 { // the second finds it done
						if err := do(w.ReachHost(world.Default, -1)); err != nil {
							return err
						}
					}
					mine, err := w.AllocLocal(reachedSize, 0, world.Want{OnDevice: true})
					if err != nil {
						return err
					}
					return f(reached{w, far, mine, (w.Me() + 1) % w.N()}, transport != "tcp" || n == 1)
				})
			})
		}
	}
}

func TestDeviceAddressesOfHostMemory(t *testing.T) {
	reachHost(t, func(w reached, mapped bool) error {
		for pe := range w.N() {
			got, err := w.DeviceAddress(w.far.Address()+5, pe)
			if pe != w.Me() && !mapped {
				if status.Of(err) != status.Unsupported || !strings.Contains(err.Error(), "SHMEM_TRANSPORT=tcp") {
					return fmt.Errorf("of PE %d: %v", pe, err)
				}
				continue
			}
			want, err2 := w.Ptr(w.far.Address()+5, pe) // the pretended device has the host's addresses
			if err != nil || err2 != nil || got != want {
				return fmt.Errorf("of PE %d: %#x, %v; %#x, %v", pe, got, err, want, err2)
			}
		}
		if at, err := w.DeviceAddress(w.mine.Address(), w.Me()); err != nil || at != w.mine.Address() {
			return fmt.Errorf("device memory: %#x, %v", at, err)
		}
		if _, err := w.DeviceAddress(1, 0); status.Of(err) != status.NotSymmetric {
			return fmt.Errorf("address 1: %v", err)
		}
		if _, err := w.DeviceAddress(w.far.Address(), w.N()); status.Of(err) != status.InvalidPE {
			return fmt.Errorf("PE %d: %v", w.N(), err)
		}
		return barrier(w.WorldTeam())
	})
}

// The stream stands still until this PE lets it go on, so a put or get that waited for it would time out.
func TestTransfersToReachedHostMemoryDoNotWait(t *testing.T) {
	reachHost(t, func(w reached, mapped bool) error {
		sig, err := alloc(w.WorldTeam(), 64, 0)
		if err != nil {
			return err
		}
		if err := store(w.World, w.mine.Address(), pattern(w.Me(), reachedSize)); err != nil {
			return err
		}
		s, err := w.NewStream()
		if err != nil {
			return err
		}
		if mapped || w.next == w.Me() {
			if err := w.SignalWaitOnStream(sig.Address(), 3, 1, s); err != nil {
				return err
			}
		}
		if err := w.PutOnStream(w.far.Address()+3, w.mine.Address(), reachedSize, w.next, s); err != nil {
			return err
		}
		if err := w.GetOnStream(w.mine.Address(), w.far.Address()+3, reachedSize, w.next, s); err != nil {
			return err
		}
		if mapped && bytesOf(w.far)[3] != 0 && w.N() == 1 {
			return fmt.Errorf("the put has run before its turn")
		}
		if err := w.P(w.Context(), sig.Address(), 1, 4, w.Me()); err != nil {
			return err
		}
		if err := do(w.WaitStream(s, world.Default, 0)); err != nil {
			return err
		}
		if err := barrier(w.WorldTeam()); err != nil {
			return err
		}
		before := (w.Me() + w.N() - 1) % w.N()
		want := append(append(make([]byte, 3), pattern(before, reachedSize)...), make([]byte, 9)...)
		if got := bytesOf(w.far)[:len(want)]; !bytes.Equal(got, want) {
			return fmt.Errorf("what PE %d put is not there, or more than it", before)
		}
		if err := expect(w.World, "what was got back", w.mine.Address(), pattern(w.Me(), reachedSize)); err != nil {
			return err
		}
		if err := w.PutOnStream(w.far.Address(), w.mine.Address(), 2*reachedSize+1<<30, w.next, s); status.Of(err) != status.NotSymmetric {
			return fmt.Errorf("past the heap: %v", err)
		}
		if err := w.FreeStream(s); err != nil {
			return err
		}
		return barrier(w.WorldTeam())
	})
}

// What is freed stays with the process, because devices hold its pages; new memory is zero all the same.
func TestReachedHostMemoryIsKeptAndZeroWhenNew(t *testing.T) {
	reachHost(t, func(w reached, _ bool) error {
		const large = 33 << 20
		for range 2 {
			r, block, err := w.WorldTeam().Alloc(large, 0, world.Want{Zero: true}, world.Default, -1)
			if err := do(r, err); err != nil {
				return err
			}
			b := block()
			if i := bytes.IndexFunc(bytesOf(b), func(r rune) bool { return r != 0 }); i >= 0 {
				return fmt.Errorf("byte %d of new memory is not zero", i)
			}
			for i := 0; i < large; i += 4096 {
				bytesOf(b)[i+w.Me()] = 7
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			b.Drop()
			if err := do(w.WorldTeam().Collect(world.Default, -1)); err != nil {
				return err
			}
		}
		return barrier(w.WorldTeam())
	})
}

func TestHostMemoryIsReachedFromInitOn(t *testing.T) {
	t.Setenv("SHMEM_DEVICE_HOST", "yes")
	for _, n := range []int{1, 3} {
		shmemtest.Run(t, n, world.Options{Device: "host", DeviceBytes: deviceHeap, HeapBytes: 8 << 20}, func(w *world.World) error {
			b, err := alloc(w.WorldTeam(), 64, 0)
			if err != nil {
				return err
			}
			for pe := range w.N() {
				if _, err := w.DeviceAddress(b.Address(), pe); err != nil {
					return err
				}
			}
			if !strings.Contains(string(w.Info()), `"reaches_host":true`) && !strings.Contains(string(w.Info()), `"reaches_host": true`) {
				return fmt.Errorf("info: %s", w.Info())
			}
			return barrier(w.WorldTeam())
		})
	}
	shmemtest.Run(t, 2, world.Options{HeapBytes: 8 << 20}, func(w *world.World) error { return barrier(w.WorldTeam()) }) // without a device it is nobody's
}
