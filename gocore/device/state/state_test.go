package state

import (
	"context"
	"encoding/binary"
	"testing"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/device/host"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

// rig is one PE of a world of n on a device of host memory, whose peers 1 and up are not mapped.
type rig struct {
	t *testing.T
	d *host.Device
	h device.Heap
	s *State
}

func newRig(t *testing.T, me, n int) *rig {
	d, err := host.Open(host.Options{Late: 50 * time.Microsecond})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	h, err := d.NewHeap(Reserved+1, me, n)
	require.NoError(t, err)
	// Somebody used the memory before: what must be zero is made so.
	pinned, err := d.AllocHost(Reserved)
	require.NoError(t, err)
	for i := range bytesOf(pinned, int(Reserved)) {
		bytesOf(pinned, int(Reserved))[i] = 0xA5
	}
	require.NoError(t, d.Copy(h.Base(me)+uintptr(h.Size()-Reserved), pinned, Reserved, device.Own))
	require.NoError(t, d.Wait(context.Background(), device.Own))
	require.NoError(t, d.FreeHost(pinned))
	s, err := New(d, Options{Me: me, N: n, Heap: h})
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, s.Close()) })
	return &rig{t, d, h, s}
}

func (r *rig) read(at uintptr, n int) []byte {
	pinned, err := r.d.AllocHost(uint64(n))
	require.NoError(r.t, err)
	require.NoError(r.t, r.d.Copy(pinned, at, uint64(n), device.Own))
	require.NoError(r.t, r.d.Wait(context.Background(), device.Own))
	out := append([]byte(nil), bytesOf(pinned, n)...)
	require.NoError(r.t, r.d.FreeHost(pinned))
	return out
}

func (r *rig) i32(at uintptr) int { return int(int32(binary.LittleEndian.Uint32(r.read(at, 4)))) }

func (r *rig) u64(at uintptr) uintptr { return uintptr(binary.LittleEndian.Uint64(r.read(at, 8))) }

func TestStateTellsThePEs(t *testing.T) {
	r := newRig(t, 2, 5)
	at := r.s.Address()
	assert.Equal(t, []int{1, 2, 5}, []int{r.i32(at + stVersion), r.i32(at + stMe), r.i32(at + stN)})
	assert.Equal(t, uintptr(magic), r.u64(at+stMagic))
	assert.Equal(t, r.h.Base(2), r.u64(at+stHeapBase))
	assert.Equal(t, uintptr(r.h.Size()), r.u64(at+stHeapSize))
	for pe := range 5 {
		want, topo := uintptr(0), byte(0)
		if pe == 2 {
			want, topo = r.h.Base(2), topoMTE
		}
		assert.Equal(t, want, r.u64(r.u64(at+stPeers)+uintptr(8*pe)))
		assert.Equal(t, topo, r.read(at+stTopo+uintptr(pe), 1)[0])
	}
	assert.Equal(t, make([]byte, 8*maxTeams), r.read(at+stTeams, 8*maxTeams))
	pool := r.u64(at + stSyncPool)
	assert.Equal(t, r.h.Base(2)+uintptr(r.h.Size()), pool+uintptr(Reserved))
	assert.Equal(t, make([]byte, Reserved), r.read(pool, int(Reserved)))
	assert.Equal(t, make([]byte, line*maxTeams), r.read(r.u64(at+stSyncCounter), line*maxTeams))
	assert.Equal(t, 16<<10, r.i32(at+stMTE+ubSize))
	for engine, want := range []int{0, 191 << 10, 190 << 10, 189 << 10} {
		assert.Equal(t, want, r.i32(at+stMTE+uintptr(engine*ubBytes+ubAt)))
	}
}

func TestRefreshShowsNewPeers(t *testing.T) {
	r := newRig(t, 0, 2)
	other, err := r.d.NewHeap(r.h.Size(), 1, 2)
	require.NoError(t, err)
	require.NoError(t, r.h.Map(1, other.Card()))
	require.NoError(t, r.s.Refresh())
	assert.Equal(t, r.h.Base(1), r.u64(r.u64(r.s.Address()+stPeers)+8))
	assert.Equal(t, byte(topoMTE), r.read(r.s.Address()+stTopo+1, 1)[0])
	require.NoError(t, r.h.Unmap(1))
	require.NoError(t, r.s.Refresh())
	assert.Zero(t, r.u64(r.u64(r.s.Address()+stPeers)+8))
	assert.Zero(t, r.read(r.s.Address()+stTopo+1, 1)[0])
}

func TestTeams(t *testing.T) {
	r := newRig(t, 3, 8)
	at := r.s.Address()
	entry := at + stTeams + 8*2047
	require.NoError(t, r.s.SetTeam(2047, []int{1, 3, 7}, 1))
	team := r.u64(entry)
	assert.Equal(t, []int{1, 1, 0, 3, 2047}, []int{r.i32(team + tmMe), r.i32(team + tmStart), r.i32(team + tmStride), r.i32(team + tmN), r.i32(team + tmIndex)})
	forward := []int{1, 3, 7, -1, -1, -1, -1, -1}
	back := []int{-1, 0, -1, 1, -1, -1, -1, 2}
	for i := range 8 {
		assert.Equal(t, forward[i], r.i32(team+tmMapping+uintptr(4*i)), "rank %d", i)
		assert.Equal(t, back[i], r.i32(team+tmMapping+uintptr(4*(maxPEs+i))), "PE %d", i)
	}
	assert.Equal(t, -1, r.i32(team+tmMapping+4*(2*maxPEs-1)))
	core := r.u64(team + tmCoreSync)
	assert.Zero(t, core%line)
	assert.Equal(t, make([]byte, coreSyncBytes+line), r.read(core, coreSyncBytes+line))

	require.NoError(t, r.s.SetTeam(2047, []int{7, 5, 3}, 2), "a new team of the same index")
	assert.Equal(t, []int{2, 7, -2, 3}, []int{r.i32(r.u64(entry) + tmMe), r.i32(r.u64(entry) + tmStart), r.i32(r.u64(entry) + tmStride), r.i32(r.u64(entry) + tmN)})
	require.NoError(t, r.s.SetTeam(2047, []int{1, 2}, -1), "a team without this PE")
	assert.Zero(t, r.u64(entry))
	require.NoError(t, r.s.SetTeam(0, []int{3}, 0))
	assert.Equal(t, 1, r.i32(r.u64(at+stTeams)+tmStride))
	require.NoError(t, r.s.ClearTeam(0))
	require.NoError(t, r.s.ClearTeam(0))
	assert.Zero(t, r.u64(at+stTeams))
}

// TestTeamBeginsAnew leaves flags and counters behind, as barriers do, and sets the team again.
func TestTeamBeginsAnew(t *testing.T) {
	r := newRig(t, 0, 2)
	require.NoError(t, r.s.SetTeam(5, []int{0, 1}, 0))
	at := r.s.Address()
	mine := []uintptr{r.u64(at+stSyncPool) + 5*teamSyncBytes, r.u64(at+stSyncCounter) + 5*line}
	theirs := []uintptr{r.u64(at+stSyncPool) + 6*teamSyncBytes, r.u64(at+stSyncCounter) + 6*line}
	for _, word := range append(append([]uintptr(nil), mine...), theirs...) {
		require.NoError(t, r.s.put(word, []byte{9}))
	}
	require.NoError(t, r.s.SetTeam(5, []int{0, 1}, 0))
	for i := range mine {
		assert.Zero(t, r.read(mine[i], 1)[0])
		assert.Equal(t, byte(9), r.read(theirs[i], 1)[0], "another team's")
	}
}

// TestTeamIsStoppedAlone stops one of two teams while its device is busy, first for collectives and then for signals; a new team of its number begins anew.
func TestTeamIsStoppedAlone(t *testing.T) {
	r := newRig(t, 0, 2)
	at := r.s.Address()
	words := func(index int) uintptr { return r.u64(r.u64(at+stTeams+uintptr(8*index)) + tmStop) }
	require.NoError(t, r.s.SetTeam(5, []int{0, 1}, 0))
	require.NoError(t, r.s.SetTeam(6, []int{1, 0}, 1))
	assert.Zero(t, words(5)%line)
	read := func(index int) [2]int { return [2]int{r.i32(words(index)), r.i32(words(index) + 4)} }
	for _, c := range []struct {
		signals bool
		want    [2]int
	}{{false, [2]int{1, 0}}, {true, [2]int{1, 1}}, {false, [2]int{1, 1}}} {
		require.NoError(t, r.s.StopTeam(5, c.signals))
		assert.Equal(t, c.want, read(5), "%+v", c)
		assert.Equal(t, [2]int{}, read(6), "another team's")
	}
	for _, note := range []uintptr{0, 4} {
		require.NoError(t, r.s.put(words(6)+line+note, []byte{1}))
		for index, want := range map[int]bool{5: false, 6: true, 7: false} {
			got, err := r.s.TeamStopped(index)
			require.NoError(t, err)
			assert.Equal(t, want, got, "team %d", index)
		}
		require.NoError(t, r.s.SetTeam(6, []int{1, 0}, 1))
	}
	require.NoError(t, r.s.SetTeam(5, []int{0, 1}, 0))
	assert.Equal(t, [2]int{}, read(5))
	require.NoError(t, r.s.StopTeam(7, true), "no such team")
}

func TestAbortAndResume(t *testing.T) {
	r := newRig(t, 0, 1)
	word := r.u64(r.s.Address() + stAbort)
	assert.Zero(t, r.i32(word))
	hold := make(chan struct{})
	require.NoError(t, r.d.Call(device.Own, func() { <-hold }))
	require.NoError(t, r.s.Abort(-301), "while another stream is busy")
	aside, err := r.d.NewStream()
	require.NoError(t, err)
	pinned, err := r.d.AllocHost(4)
	require.NoError(t, err)
	require.NoError(t, r.d.Copy(pinned, word, 4, aside))
	require.NoError(t, r.d.Wait(context.Background(), aside))
	assert.Equal(t, int32(-301), int32(binary.LittleEndian.Uint32(bytesOf(pinned, 4))))
	close(hold)
	require.NoError(t, r.s.Resume())
	assert.Zero(t, r.i32(word))
	assert.ErrorIs(t, r.s.Abort(0), status.InvalidArgument)
}

func TestBufferOfKernels(t *testing.T) {
	r := newRig(t, 0, 1)
	require.NoError(t, r.s.SetBuffer(3, 64, 4096, 5))
	b := r.read(r.s.Address()+stMTE+3*ubBytes, ubBytes)
	assert.Equal(t, []byte{64, 0, 0, 0, 0, 0, 0, 0, 0, 16, 0, 0, 5, 0, 0, 0}, b)
	assert.Equal(t, 128, r.i32(r.s.Address()+stMTE+2*ubBytes+ubSize), "the others stay")
	for _, bad := range [][4]int64{{4, 0, 32, 0}, {-1, 0, 32, 0}, {0, 1, 32, 0}, {0, 0, 0, 0}, {0, 0, 33, 0}, {0, 0, 32, 6}, {0, -32, 32, 0}} {
		assert.ErrorIs(t, r.s.SetBuffer(int(bad[0]), bad[1], uint32(bad[2]), uint32(bad[3])), status.InvalidArgument, "%v", bad)
	}
}

func TestWrongTeamsAreRefused(t *testing.T) {
	r := newRig(t, 1, 3)
	for _, c := range []struct {
		index   int
		members []int
		me      int
		want    status.Code
	}{
		{-1, []int{1}, 0, status.InvalidArgument},
		{2048, []int{1}, 0, status.InvalidArgument},
		{1, nil, -1, status.InvalidArgument},
		{1, []int{1}, 1, status.InvalidArgument},
		{1, []int{0, 1}, -2, status.InvalidArgument},
		{1, []int{0, 1, 2, 0}, 1, status.InvalidArgument},
		{1, []int{0, 3}, -1, status.InvalidPE},
		{1, []int{0, 2}, 1, status.InvalidPE},
	} {
		assert.ErrorIs(t, r.s.SetTeam(c.index, c.members, c.me), c.want, "%+v", c)
	}
	assert.ErrorIs(t, r.s.ClearTeam(2048), status.InvalidArgument)
}

func TestClosedStateSaysSo(t *testing.T) {
	d, err := host.Open(host.Options{})
	require.NoError(t, err)
	defer d.Close()
	h, err := d.NewHeap(Reserved+1, 0, 1)
	require.NoError(t, err)
	_, err = New(d, Options{Me: 1, N: 1, Heap: h})
	assert.ErrorIs(t, err, status.InvalidArgument)
	s, err := New(d, Options{Me: 0, N: 1, Heap: h})
	require.NoError(t, err)
	require.NoError(t, s.SetTeam(0, []int{0}, 0))
	require.NoError(t, s.Close())
	require.NoError(t, s.Close())
	assert.ErrorIs(t, s.SetTeam(0, []int{0}, 0), status.Finalized)
	assert.ErrorIs(t, s.Abort(1), status.Finalized)
	assert.False(t, d.Holds(s.Address()), "its memory is free again")
}
