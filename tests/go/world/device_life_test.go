package world_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/shmemtest"
	"goshmem/gocore/status"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

// How a device comes up in a world, and how it goes.

func TestADeviceComesUpInARunningWorld(t *testing.T) {
	for _, n := range []int{1, 2, 5} {
		shmemtest.Run(t, n, world.Options{}, func(w *world.World) error {
			if _, err := allocOn(w.WorldTeam(), 64, true); status.Of(err) != status.Unsupported || !strings.Contains(err.Error(), "gshmem_device_open") {
				return fmt.Errorf("without a device: %v", err)
			}
			if err := do(w.OpenDevice("none", nil, 0, world.Default, -1)); err != nil {
				return err
			}
			if w.N() > 1 {
				err := do(w.OpenDevice("host", nil, uint64(w.Me()+1)<<21, world.Default, -1))
				if status.Of(err) != status.Mismatch || !strings.Contains(err.Error(), "4194304") {
					return fmt.Errorf("unequal sizes: %v", err)
				}
			}
			for range 2 { // the second finds it
				if err := do(w.OpenDevice("host", nil, deviceHeap, world.Default, -1)); err != nil {
					return err
				}
			}
			b, err := allocOn(w.WorldTeam(), 1000, true)
			if err != nil {
				return err
			}
			next := (w.Me() + 1) % w.N()
			if err := w.P(w.Context(), b.Address(), uint64(w.Me()+5), 8, next); err != nil {
				return err
			}
			if err := barrier(w.WorldTeam()); err != nil {
				return err
			}
			if v, err := w.G(w.Context(), b.Address(), 8, next); err != nil || v != uint64(w.Me()+5) {
				return fmt.Errorf("%d, %v", v, err)
			}
			var info struct {
				Device struct {
					Kind  string        `json:"kind"`
					Facts *device.Facts `json:"facts"`
				} `json:"device"`
			}
			if err := json.Unmarshal(w.Info(), &info); err != nil || info.Device.Kind != "host" || info.Device.Facts == nil {
				return fmt.Errorf("info: %s", w.Info())
			}
			return barrier(w.WorldTeam())
		})
	}
}

func TestDeviceMemoryOutlivesItsWorldWhileItIsHeld(t *testing.T) {
	before := shmemtest.Held()
	worlds := shmemtest.Up(t, 2, world.Options{Device: "host", DeviceBytes: deviceHeap})
	held := make([]*world.Block, 2)
	errs := make(chan error, 2)
	for pe, w := range worlds {
		go func() {
			b, err := allocOn(w.WorldTeam(), 4096, true)
			held[pe] = b
			errs <- err
		}()
	}
	require.NoError(t, <-errs)
	require.NoError(t, <-errs)
	shmemtest.Down(t, worlds)
	require.Greater(t, shmemtest.Held().Files, before.Files, "the device's memory stays")
	require.ErrorIs(t, worlds[0].PutAny(worlds[0].Context(), held[0].Address(), held[0].Address(), 8, 1, false), status.Finalized)
	for _, b := range held {
		b.Drop()
	}
	for until := time.Now().Add(30 * time.Second); ; time.Sleep(10 * time.Millisecond) {
		now := shmemtest.Held() // what earlier tests left may go meanwhile
		if now.Files <= before.Files && now.Goroutines <= before.Goroutines && now.Maps <= before.Maps {
			return
		}
		require.True(t, time.Now().Before(until), "before %+v, now %+v", before, now)
	}
}

func TestDeviceNamesThatMeanNothingAreRefused(t *testing.T) {
	for _, name := range []string{"gpu", "npu:", "npu:-1", "npu:x", "host:1:2"} {
		_, err := world.New(t.Context(), world.Options{Me: 0, N: 1, Method: "single", Device: name})
		require.ErrorIs(t, err, status.BadConfig, name)
		require.ErrorContains(t, err, name)
	}
}
