// Package shmemtest runs N PEs in one process, for Go tests of packages above world.
//
// Each PE is a world of its own on a goroutine, with real segments and a real rendezvous, so everything but the process
// boundary is as in production. A watchdog dumps all stacks when the PEs take too long, and a leak check compares
// descriptors and goroutines before and after.
package shmemtest

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"sync"
	"testing"
	"time"

	"goshmem/gocore/bootstrap"
	"goshmem/gocore/world"

	"github.com/stretchr/testify/require"
)

// Limit is how long Run lets the PEs work before the watchdog ends the test.
const Limit = 4 * time.Minute

// Run makes n PEs, calls f for each on its own goroutine, and finalizes them. A failing PE fails the test by name.
func Run(t testing.TB, n int, o world.Options, f func(w *world.World) error) {
	t.Helper()
	defer watchdog(t)()
	worlds := Up(t, n, o)
	errs := make([]error, n)
	each(n, func(pe int) { errs[pe] = f(worlds[pe]) })
	for pe, err := range errs {
		require.NoError(t, err, "PE %d", pe)
	}
	Down(t, worlds)
}

// Up brings n PEs of one new world up.
func Up(t testing.TB, n int, o world.Options) []*world.World {
	t.Helper()
	offer, err := bootstrap.NewOffer("lo")
	require.NoError(t, err)
	worlds, errs := make([]*world.World, n), make([]error, n)
	each(n, func(pe int) {
		mine := o
		mine.Me, mine.N, mine.Method, mine.UID = pe, n, bootstrap.UID, offer.UID
		if mine.Timeout == 0 {
			mine.Timeout = time.Minute
		}
		if mine.HeapBytes == 0 {
			mine.HeapBytes = 64 << 20
		}
		if pe == 0 {
			mine.FindOffer = func([]byte) *bootstrap.Offer { return offer }
		}
		worlds[pe], errs[pe] = world.New(context.Background(), mine)
	})
	for pe, err := range errs {
		require.NoError(t, err, "PE %d comes up", pe)
	}
	return worlds
}

// Down finalizes PEs together.
func Down(t testing.TB, worlds []*world.World) {
	t.Helper()
	errs := make([]error, len(worlds))
	each(len(worlds), func(pe int) { errs[pe] = worlds[pe].Finalize(time.Minute) })
	for pe, err := range errs {
		require.NoError(t, err, "PE %d finalizes", pe)
	}
}

func each(n int, f func(pe int)) {
	var wg sync.WaitGroup
	for pe := range n {
		wg.Add(1)
		go func() {
			defer wg.Done()
			f(pe)
		}()
	}
	wg.Wait()
}

// watchdog panics with all stacks unless the returned func is called in time.
func watchdog(t testing.TB) func() {
	timer := time.AfterFunc(Limit, func() {
		buf := make([]byte, 1<<20)
		panic(fmt.Sprintf("%s hangs\n%s", t.Name(), buf[:runtime.Stack(buf, true)]))
	})
	return func() { timer.Stop() }
}

// Resources is what a process holds that must not grow.
type Resources struct{ Files, Goroutines, Maps int }

// Held counts them now.
func Held() Resources {
	runtime.GC()
	fds, _ := os.ReadDir("/proc/self/fd") // unreadable counts as nothing, on both sides of a comparison
	maps, _ := os.ReadFile("/proc/self/maps")
	segments := 0
	for i := 0; i+8 < len(maps); i++ {
		if string(maps[i:i+8]) == "goshmem-" {
			segments++
		}
	}
	return Resources{Files: len(fds), Goroutines: runtime.NumGoroutine(), Maps: segments}
}
