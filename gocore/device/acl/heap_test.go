package acl

import (
	"context"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"testing"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/device/state"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

const userBytes = 4 << 20

// world is what the core makes of a device: heap, state and team 0.
type world struct {
	*pe
	d *Device
	h device.Heap
	s *state.State
}

func (p *pe) world() *world {
	p.t.Helper()
	d := p.open()
	w := &world{pe: p, d: d, h: p.heap(d)}
	s, err := state.New(d, state.Options{Me: p.me, N: p.n, Heap: w.h})
	require.NoError(p.t, err)
	w.s = s
	var all []int
	for i := range p.n {
		all = append(all, i)
	}
	require.NoError(p.t, s.SetTeam(0, all, p.me))
	p.meet(nil)
	p.t.Cleanup(func() {
		p.meet(nil) // no kernel of a peer reads here any more
		assert.NoError(p.t, s.Close())
		for peer := range p.n {
			if peer != p.me {
				assert.NoError(p.t, w.h.Unmap(peer))
			}
		}
		p.meet(nil)
		assert.NoError(p.t, w.h.Close())
	})
	return w
}

// heap makes the heap and maps all peers.
func (p *pe) heap(d *Device) device.Heap {
	p.t.Helper()
	h, err := d.NewHeap(userBytes+state.Reserved, p.me, p.n)
	require.NoError(p.t, err)
	cards := p.meet(h.Card())
	for peer, c := range cards {
		if peer != p.me {
			require.NoError(p.t, h.Admit(peer, c))
		}
	}
	p.meet(nil)
	for peer, c := range cards {
		if peer != p.me {
			require.NoError(p.t, h.Map(peer, c))
		}
	}
	p.meet(nil)
	return h
}

func (w *world) run(name string, blocks int, args ...uint64) {
	w.t.Helper()
	require.NoError(w.t, w.d.Launch(name, blocks, device.Own, append([]uint64{uint64(w.s.Address())}, args...)...))
}

func (w *world) wait() {
	w.t.Helper()
	require.NoError(w.t, w.d.Wait(soon(w.t), device.Own))
}

// at is an address in this PE's heap.
func (w *world) at(off int) uint64 { return uint64(w.h.Base(w.me)) + uint64(off) }

// kernels runs the kernels that hosts start, and compares with the oracle.
func (w *world) kernels() {
	const target, gathered, reduced = 4096, 1 << 20, 2 << 20
	next, before := (w.me+1)%w.n, (w.me+w.n-1)%w.n
	for i, n := range []int{1, 31, 4099, 100003} {
		src, err := w.d.Alloc(uint64(n))
		require.NoError(w.t, err)
		dst, err := w.d.Alloc(uint64(n))
		require.NoError(w.t, err)
		write(w.t, w.d, src, pattern(w.me, n))
		w.run("gshmem_k_put", 2, w.at(target+1), uint64(src), uint64(n), uint64(next))
		w.run("gshmem_k_barrier", 1+i%3, 0)
		w.run("gshmem_k_get", 0, uint64(dst), w.at(target+1), uint64(n), uint64(next))
		w.run("gshmem_k_allgather", 1+i, 0, w.at(gathered), uint64(src), uint64(n))
		w.allreduce(reduced, n, i%2 == 0)
		w.wait()
		came := append(append([]byte{0}, pattern(before, n)...), 0)
		assert.Equal(w.t, came, read(w.t, w.d, uintptr(w.at(target)), n+2), "put, with the bytes around it")
		assert.Equal(w.t, pattern(w.me, n), read(w.t, w.d, dst, n), "get")
		for pe := range w.n {
			assert.Equal(w.t, pattern(pe, n), read(w.t, w.d, uintptr(w.at(gathered+pe*n)), n), "allgather from %d", pe)
		}
		w.meet(nil)
		require.NoError(w.t, w.d.Clear(uintptr(w.at(target)), uint64(n+2), device.Own))
		w.wait()
		require.NoError(w.t, w.d.Free(src))
		require.NoError(w.t, w.d.Free(dst))
		w.meet(nil)
	}
}

// numbers are a PE's values: small integers, so that any order of adding gives the same floats.
func numbers(pe, n int) []byte {
	r := rand.New(rand.NewPCG(uint64(pe), 7))
	var b []byte
	for range n {
		b = binary.LittleEndian.AppendUint32(b, math.Float32bits(float32(r.IntN(2000)-1000)))
	}
	return b
}

func (w *world) allreduce(off, n int, oneShot bool) {
	n = min(n, 5000)
	src, dst := off, off+64<<10
	write(w.t, w.d, uintptr(w.at(src)), numbers(w.me, n))
	w.meet(nil)
	name := "gshmem_k_allreduce_two_shot"
	if oneShot {
		name = "gshmem_k_allreduce_one_shot"
	}
	w.run(name, 2, 0, w.at(dst), w.at(src), uint64(n), 0, 0)
	w.wait()
	got := read(w.t, w.d, uintptr(w.at(dst)), 4*n)
	sum := make([]float32, n)
	for pe := range w.n {
		b := numbers(pe, n)
		for i := range sum {
			sum[i] += math.Float32frombits(binary.LittleEndian.Uint32(b[4*i:]))
		}
	}
	for i := range sum {
		require.Equal(w.t, sum[i], math.Float32frombits(binary.LittleEndian.Uint32(got[4*i:])), "element %d of %d", i, n)
	}
	w.meet(nil)
}

func TestKernelsBetweenProcesses(t *testing.T) {
	sharing := map[string]string{"910B1": "vmm default", "910_93": "vmm fabric", "950": "vmm default"}
	var all []setting
	for i, chip := range chips {
		for _, n := range []int{1, 2, 4} {
			all = append(all, setting{chip: chip, n: n, seed: 10*i + n})
		}
	}
	parallel(t, all, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		w := p.world()
		assert.Equal(t, sharing[s.chip], w.d.Facts().Sharing)
		if s.chip == "950" {
			assert.Contains(t, w.d.Facts().Fixed, "aclrtReserveMemAddress")
		} else {
			assert.Equal(t, "yes", w.d.Facts().Fixed)
			assert.Equal(t, uintptr(0x17FFBE000000), w.s.Address())
		}
		w.kernels()
		w.copies()
	})
}

// TestTwoPEsOfOneDevice has both processes on device 0, as a machine with one NPU would.
func TestTwoPEsOfOneDevice(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 2}, {chip: "910B1", n: 2, release: "cann-8.1"}, {chip: "950", n: 2, fail: "aclrtMapMem:0:207000"},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		p.device = func(int) int { return 0 }
		w := p.world()
		assert.Equal(t, 0, w.d.Facts().ID)
		w.kernels()
		w.copies()
	})
}

// copies moves between all kinds of memory and each peer's part, by the host.
func (w *world) copies() {
	const off = 3 << 20
	here, to := buffer(w.t, w.d, 99)
	there, from := buffer(w.t, w.d, 99)
	copy(there, pattern(w.me, 99))
	require.NoError(w.t, w.d.Copy(to, from, 99, device.Own), "host to host")
	w.wait()
	assert.Equal(w.t, pattern(w.me, 99), here)
	require.NoError(w.t, w.d.FreeHost(to))
	require.NoError(w.t, w.d.FreeHost(from))
	for peer := range w.n {
		own := pattern(w.me*8+peer, 777)
		spot := w.h.Base(peer) + off + uintptr(1024*w.me)
		write(w.t, w.d, spot, own)
		assert.Equal(w.t, own, read(w.t, w.d, spot, 777), "host to peer and back")
		mine, err := w.d.Alloc(777)
		require.NoError(w.t, err)
		require.NoError(w.t, w.d.Copy(mine, spot, 777, device.Own))
		w.wait()
		assert.Equal(w.t, own, read(w.t, w.d, mine, 777), "peer to device")
		require.NoError(w.t, w.d.Copy(spot+1, mine, 776, device.Own))
		w.wait()
		require.NoError(w.t, w.d.Free(mine))
		assert.True(w.t, w.d.Holds(spot))
	}
	w.meet(nil)
	for peer := range w.n {
		own := pattern(peer*8+w.me, 777)
		assert.Equal(w.t, append(own[:1:1], own[:776]...), read(w.t, w.d, uintptr(w.at(off+1024*peer)), 777))
	}
	w.meet(nil)
}

// TestOtherReleases runs on releases that have other ways of sharing and launching.
func TestOtherReleases(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", release: "cann-8.1", n: 3},
		{chip: "910_93", release: "cann-8.1", n: 2},
		{chip: "950", release: "cann-9.2", n: 2},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		w := p.world()
		f := w.d.Facts()
		if s.release == "cann-8.1" {
			assert.Contains(t, f.Sharing, "vmm default, listed processes; not vmm ")
			assert.Contains(t, f.Sharing, "aclrtMemExportToShareableHandleV2")
			assert.Contains(t, f.Missing, "aclrtLaunchHostFunc (CANN 8.5.0): host functions in a stream")
			assert.Contains(t, f.Runtime, "before 8.5.0")
			assert.Equal(t, 40, f.Cores)
			err := w.d.Call(device.Own, func() {})
			assert.ErrorIs(t, err, status.Unsupported)
			assert.ErrorContains(t, err, "aclrtLaunchHostFunc")
		} else {
			assert.Empty(t, f.Missing)
		}
		w.kernels()
		w.copies()
	})
}

// TestKeysWhereMemoryCannotBeMapped lets the runtime refuse physical memory.
func TestKeysWhereMemoryCannotBeMapped(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 2, fail: "aclrtMallocPhysical:0:207000"},
		{chip: "950", n: 3, fail: "aclrtReserveMemAddress:0:200001"},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		w := p.world()
		assert.Contains(t, w.d.Facts().Sharing, "ipc; not vmm default: ")
		w.kernels()
		w.copies()
	})
}

// TestNoWayOfSharing has neither mapped memory nor keys.
func TestNoWayOfSharing(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true, fail: "aclrtMallocPhysical:0:207000;aclrtIpcMemGetExportKey:0:207000"})
	if p == nil {
		return
	}
	_, err := p.open().NewHeap(1, 0, 1)
	assert.ErrorIs(t, err, status.Unsupported)
	assert.ErrorContains(t, err, "aclrtMallocPhysical")
	assert.ErrorContains(t, err, "aclrtIpcMemGetExportKey")
}

// TestAbortEndsAWaitingKernel waits for a signal that nobody sends.
func TestAbortEndsAWaitingKernel(t *testing.T) {
	parallel(t, chips, func(t *testing.T, chip string) {
		p := over(t, setting{chip: chip, n: 2})
		if p == nil {
			return
		}
		w := p.world()
		for range 2 {
			if p.me == 0 {
				w.run("gshmem_k_signal_wait", 1, w.at(64), 0, 5, 0, 0)
				w.run("gshmem_k_barrier", 2, 0)
				ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond)
				assert.ErrorIs(t, w.d.Wait(ctx, device.Own), status.Timeout)
				cancel()
				begun := time.Now()
				require.NoError(t, w.s.Abort(int32(status.PeerDead)))
				require.NoError(t, w.d.Wait(soon(t), device.Own))
				assert.Less(t, time.Since(begun), 30*time.Second)
			}
			p.meet(nil)
			require.NoError(t, w.s.Resume())
			require.NoError(t, w.s.SetTeam(0, []int{0, 1}, p.me))
			p.meet(nil)
			w.run("gshmem_k_barrier", 1, 0)
			w.wait()
		}
		w.kernels()
	})
}

// TestLaunchesThatAreWrong are refused before anything runs.
func TestLaunchesThatAreWrong(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1})
	if p == nil {
		return
	}
	w := p.world()
	state := uint64(w.s.Address())
	assert.ErrorIs(t, w.d.Launch("gshmem_k_nothing", 1, device.Own, state), status.InvalidArgument)
	assert.ErrorIs(t, w.d.Launch("gshmem_k_barrier", 1, device.Own, state), status.InvalidArgument)
	assert.ErrorIs(t, w.d.Launch("gshmem_k_barrier", 49, device.Own, state, 0), status.InvalidArgument)
	assert.ErrorIs(t, w.d.Launch("gshmem_k_barrier", -1, device.Own, state, 0), status.InvalidArgument)
	assert.NoError(t, w.d.Launch("gshmem_k_barrier", 48, device.Own, state, 0))
	w.wait()
}

// TestBlocksStartTogether: the runtime refuses more blocks than cores when they shall start together, so it has been told. Both
// ways of launching tell it.
func TestBlocksStartTogether(t *testing.T) {
	for _, release := range []string{"", "cann-8.1"} {
		t.Run("release"+release, func(t *testing.T) {
			p := over(t, setting{chip: "910B1", n: 1, release: release})
			if p == nil {
				return
			}
			w := p.world()
			f, failed := w.d.kernels.function(w.d.b, "gshmem_k_barrier")
			require.Nil(t, failed)
			failed = w.d.b.launchFunction(f, 49, w.d.own, true, []uint64{uint64(w.s.Address()), 0})
			require.NotNil(t, failed)
			assert.Contains(t, failed.text, "batch mode")
			w.d.facts.Cores = 60 // Launch itself refuses more than it believes there are
			assert.ErrorContains(t, w.d.Launch("gshmem_k_barrier", 49, device.Own, uint64(w.s.Address()), 0), "batch mode")
		})
	}
}

// TestTwoStatesOfOneDevice: the fixed address is the first one's.
func TestTwoStatesOfOneDevice(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1})
	if p == nil {
		return
	}
	w := p.world()
	second, err := state.New(w.d, state.Options{Me: 0, N: 1, Heap: w.h})
	require.NoError(t, err)
	assert.NotEqual(t, w.s.Address(), second.Address())
	assert.Contains(t, w.d.Facts().Fixed, "no: ")
	require.NoError(t, second.Close())
}
