package acl

import (
	"fmt"
	"os"
	"testing"

	"goshmem/gocore/device"
	"goshmem/gocore/device/state"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// endings are calls that give something back. When one is refused, what it should have given back stays; nobody can do better.
var endings = map[string]bool{
	"aclrtUnmapMem": true, "aclrtFreePhysical": true, "aclrtReleaseMemAddress": true, "aclrtIpcMemClose": true, "aclrtFree": true, "aclrtFreeHost": true,
	"aclrtHostUnregister": true,
}

// everyFailure lets each call that f makes fail in turn, on each passage, and checks that what f left behind is what was there before. f
// undoes what it did when it succeeds. Where f finds another way, that is no failure.
func everyFailure(t *testing.T, d *Device, code int, f func() error) (failed int) {
	t.Helper()
	before := Held()
	for _, e := range d.b.entries() {
		if endings[e.name] || e.name == "aclrtGetCurrentContext" || e.name == "aclrtSetCurrentContext" {
			continue // the context is asked for before every call
		}
		for passage := 1; ; passage++ {
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

// undone is something that makes calls of the runtime, each of which may fail.
type undone struct {
	name  string
	over  []setting
	code  int // that they fail with
	least int // failures that are expected
	// begin gives what is done again and again, by PE 0, and what ends it.
	begin func(p *pe, d *Device) (again func() error, end func())
}

var undos = []undone{
	{"heap", []setting{{chip: "910B1", n: 1}, {chip: "910_93", n: 1}, {chip: "910B1", n: 1, release: "cann-8.1"}}, 207001, 5, makeHeap}, // reserve, malloc, map, clear, export
	{"heap by another way", []setting{{chip: "910B1", n: 1}, {chip: "910_93", n: 1}, {chip: "910B1", n: 1, release: "cann-8.1"}}, 207000, 0, func(p *pe, d *Device) (func() error, func()) {
		again, end := makeHeap(p, d)
		return func() error { _ = again(); return nil }, end // where another way is found, it is used
	}},
	{"mapping", []setting{{chip: "910B1", n: 2}, {chip: "910_93", n: 2}, {chip: "910B1", n: 2, release: "cann-8.1"}, {chip: "950", n: 2, fail: "aclrtMapMem:0:207000"}}, 507899, 1, mapPeer},
	{"state", []setting{{chip: "910B1", n: 1}}, 507899, 12, makeState},
	{"registration", []setting{{chip: "910B1", n: 1}, {chip: "910_93", n: 1, release: "cann-8.1"}}, 507899, 1, registerPages},
}

func makeHeap(_ *pe, d *Device) (func() error, func()) {
	return func() error {
		h, err := d.NewHeap(1, 0, 1)
		if err != nil {
			return err
		}
		return h.Close()
	}, func() {}
}

func mapPeer(p *pe, d *Device) (func() error, func()) {
	h, err := d.NewHeap(1, p.me, 2)
	require.NoError(p.t, err)
	cards := p.meet(h.Card())
	require.NoError(p.t, h.Admit(1-p.me, cards[1-p.me]))
	p.meet(nil)
	again := func() error {
		if err := h.Map(1, cards[1]); err != nil {
			assert.Zero(p.t, h.Base(1))
			return err
		}
		return h.Unmap(1)
	}
	return again, func() {
		if p.me == 0 {
			assert.NoError(p.t, again(), "and it still can be mapped")
		}
		p.meet(nil)
		assert.NoError(p.t, h.Close())
	}
}

func makeState(p *pe, d *Device) (func() error, func()) {
	h, err := d.NewHeap(state.Reserved+1, 0, 1)
	require.NoError(p.t, err)
	return func() error {
		s, err := state.New(d, state.Options{N: 1, Heap: h})
		if err != nil {
			return err
		}
		err = s.SetHostHeap(state.HostHeap{Low: 1 << 40, Size: 4096, Bases: []uintptr{1 << 41}})
		if end := s.Close(); err == nil {
			err = end
		}
		return err
	}, func() { assert.NoError(p.t, h.Close()) }
}

func registerPages(p *pe, d *Device) (func() error, func()) {
	_, at := pages(p.t, 2)
	return func() error {
		if _, err := d.Register(at, uint64(2*os.Getpagesize())); err != nil {
			return err
		}
		return d.Unregister(at)
	}, func() {}
}

// TestFailuresLeaveNothing lets each call fail in everything that is listed.
func TestFailuresLeaveNothing(t *testing.T) {
	for _, u := range undos {
		t.Run(u.name, func(t *testing.T) {
			parallel(t, u.over, func(t *testing.T, s setting) {
				s.bare = true
				p := over(t, s)
				if p == nil {
					return
				}
				d := p.open()
				again, end := u.begin(p, d)
				defer end()
				if p.me == 0 {
					assert.GreaterOrEqual(t, everyFailure(t, d, u.code, again), u.least)
				}
			})
		})
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
