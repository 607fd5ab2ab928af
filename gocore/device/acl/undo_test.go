package acl

import (
	"fmt"
	"testing"

	"goshmem/gocore/device"
	"goshmem/gocore/device/state"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endings are calls that give something back. When one is refused, what it should have given back stays; nobody can do better.
var endings = map[string]bool{
	"aclrtUnmapMem": true, "aclrtFreePhysical": true, "aclrtReleaseMemAddress": true, "aclrtIpcMemClose": true, "aclrtFree": true, "aclrtHostUnregister": true,
}

// everyFailure lets each call that f makes fail in turn, on each passage, and checks that what f left behind is what was there before. f
// undoes what it did when it succeeds.
func everyFailure(t *testing.T, d *Device, code int, f func() error) (failed int) {
	t.Helper()
	before := Held()
	for _, e := range d.b.entries() {
		if endings[e.name] || e.name == "aclrtGetCurrentContext" || e.name == "aclrtSetCurrentContext" {
			continue // the context is asked for before every call
		}
		for passage := 1; passage < 9; passage++ {
			require.True(t, inject(fmt.Sprintf("%s:%d:%d", e.name, passage, code)))
			err := f()
			inject("")
			require.Equal(t, before, Held(), "%s, call %d: %v", e.name, passage, err)
			if err == nil {
				break
			}
			failed++
			assert.ErrorContains(t, err, fmt.Sprintf("%s gave %d", e.name, code))
		}
	}
	return failed
}

func TestFailedHeapLeavesNothing(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 1, bare: true},
		{chip: "910_93", n: 1, bare: true},
		{chip: "910B1", n: 1, bare: true, release: "cann-8.1"},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		d := p.open()
		heap := func() error {
			h, err := d.NewHeap(1, 0, 1)
			if err != nil {
				return err
			}
			return h.Close()
		}
		n := everyFailure(t, d, 207001, heap)
		assert.GreaterOrEqual(t, n, 5, "reserve, malloc, map, clear, export")
		everyFailure(t, d, 207000, func() error { // where another way is found, it is used
			_ = heap()
			return nil
		})
	})
}

// TestFailedMappingLeavesNothing lets each call of Map and Unmap fail, for each way of sharing.
func TestFailedMappingLeavesNothing(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 2, bare: true},
		{chip: "910_93", n: 2, bare: true},
		{chip: "910B1", n: 2, bare: true, release: "cann-8.1"},
		{chip: "950", n: 2, bare: true, fail: "aclrtMapMem:0:207000"},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		d := p.open()
		h, err := d.NewHeap(1, p.me, 2)
		require.NoError(t, err)
		defer func() { assert.NoError(t, h.Close()) }()
		cards := p.meet(h.Card())
		require.NoError(t, h.Admit(1-p.me, cards[1-p.me]))
		p.meet(nil)
		if p.me == 0 {
			n := everyFailure(t, d, 507899, func() error {
				if err := h.Map(1, cards[1]); err != nil {
					assert.Zero(t, h.Base(1))
					return err
				}
				return h.Unmap(1)
			})
			assert.GreaterOrEqual(t, n, 1)
			require.NoError(t, h.Map(1, cards[1]), "and it still can be mapped")
			require.NoError(t, h.Unmap(1))
		}
		p.meet(nil)
	})
}

func TestFailedStateLeavesNothing(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	h, err := d.NewHeap(state.Reserved+1, 0, 1)
	require.NoError(t, err)
	defer func() { assert.NoError(t, h.Close()) }()
	before := Held()
	for _, call := range []string{"aclrtCreateStream", "aclrtMallocHost", "aclrtMalloc", "aclrtMemset", "aclrtMemsetAsync", "aclrtMemcpyAsync", "aclrtSynchronizeStreamWithTimeout"} {
		for passage := 1; ; passage++ {
			require.True(t, inject(fmt.Sprintf("%s:%d:507899", call, passage)))
			s, err := state.New(d, state.Options{N: 1, Heap: h})
			inject("")
			if err == nil {
				require.NoError(t, s.Close())
			}
			assert.Equal(t, before, Held(), "%s, call %d: %v", call, passage, err)
			if err == nil {
				assert.Greater(t, passage, 1, call)
				break
			}
		}
	}
}

func TestPeersOutOfReach(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 2, bare: true, env: []string{"ACLEMU_DEVICES=16"}})
	if p == nil {
		return
	}
	d, err := Open(Options{Device: 8 * p.me}) // 910B devices reach those of their own eight
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	h, err := d.NewHeap(4<<20, p.me, 2)
	require.NoError(t, err)
	cards := p.meet(h.Card())
	err = h.Map(1-p.me, cards[1-p.me])
	assert.ErrorIs(t, err, status.PeerUnreachable)
	assert.ErrorContains(t, err, fmt.Sprintf("device %d cannot reach device %d", 8*p.me, 8*(1-p.me)))
	assert.Zero(t, h.Base(1-p.me))
	write(t, d, h.Base(p.me)+5, pattern(3, 50))
	assert.Equal(t, pattern(3, 50), read(t, d, h.Base(p.me)+5, 50), "the heap works without the peer")

	wrong := func(change func(c *card), want status.Code, word string) {
		c, err := readCard(1-p.me, cards[1-p.me])
		require.NoError(t, err)
		change(c)
		err = h.Map(1-p.me, c.bytes())
		assert.ErrorIs(t, err, want)
		assert.ErrorContains(t, err, word)
	}
	wrong(func(c *card) { c.Size *= 2 }, status.Asymmetric, "8388608 bytes, here are 4194304")
	wrong(func(c *card) { c.PE = uint32(p.me) }, status.InvalidArgument, "not its card")
	wrong(func(c *card) { c.Magic++ }, status.InvalidArgument, "same kind of device")
	wrong(func(c *card) { c.Server[0]++ }, status.PeerUnreachable, "another server")
	wrong(func(c *card) { c.Physical = 99 }, status.PeerUnreachable, "ASCEND_RT_VISIBLE_DEVICES")
	wrong(func(c *card) { c.PID = h.(*Heap).card.PID }, status.PeerUnreachable, "in this process")
	assert.ErrorIs(t, h.Map(1-p.me, cards[1-p.me][1:]), status.InvalidArgument)
	p.meet(nil)
}

// TestHeapOfADeadOwner maps a heap that its owner has closed.
func TestHeapOfADeadOwner(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 2, bare: true}, {chip: "910_93", n: 2, bare: true}, {chip: "950", n: 2, bare: true, fail: "aclrtMapMem:0:207000"},
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		d := p.open()
		h, err := d.NewHeap(1, p.me, 2)
		require.NoError(t, err)
		cards := p.meet(h.Card())
		if p.me == 1 {
			require.NoError(t, h.Close())
		}
		p.meet(nil)
		if p.me == 0 {
			before := Held()
			err := h.Map(1, cards[1])
			assert.ErrorIs(t, err, status.PeerUnreachable)
			assert.ErrorContains(t, err, "507022 (memory of another process)")
			assert.Equal(t, before, Held())
			require.NoError(t, h.Close())
		}
		p.meet(nil)
	})
}

// TestDeviceClosesWhatIsOpen closes a device under its heap, memory, streams and a kernel that waits.
func TestDeviceClosesWhatIsOpen(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	_, err := d.NewHeap(1, 0, 1)
	require.NoError(t, err)
	_, err = d.Alloc(5)
	require.NoError(t, err)
	_, err = d.AllocHost(5)
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	_, err = d.AllocAt(5, 0x17FFBE000000)
	require.NoError(t, err)
	m, err := d.Record(s)
	require.NoError(t, err)
	require.NoError(t, d.FreeMark(m))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	for _, f := range []func() error{
		func() error { _, err := d.NewHeap(1, 0, 1); return err },
		func() error { _, err := d.AllocHost(1); return err },
		func() error { _, err := d.NewStream(); return err },
		func() error { return d.Copy(1, 2, 3, device.Own) },
		func() error { return d.Clear(1, 2, device.Own) },
		func() error { return d.Wait(soon(t), device.Own) },
		func() error { return d.Call(device.Own, func() {}) },
		func() error { return d.Launch("gshmem_k_quiet", 1, device.Own, 0) },
		func() error { _, err := d.Record(device.Own); return err },
		func() error { return d.WaitFor(device.Own, m) },
		func() error { return d.FreeMark(m) },
		func() error { _, err := d.AllocAt(1, 1<<40); return err },
	} {
		assert.ErrorIs(t, f(), status.StaleHandle)
	}
	assert.False(t, d.Holds(5))
}
