package host

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/memory"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func open(t *testing.T, o Options) *Device {
	d, err := Open(o)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, d.Close()) })
	return d
}

func soon(t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
	t.Cleanup(cancel)
	return ctx
}

func pattern(pe, n int) []byte {
	b := make([]byte, n)
	for i := range b {
		b[i] = byte(pe*37 + i*11 + i>>8 + 1)
	}
	return b
}

// read copies device memory to the host and waits.
func read(t *testing.T, d *Device, at uintptr, n int) []byte {
	b := make([]byte, n)
	require.NoError(t, d.Copy(addressOf(b), at, uint64(n), device.Own))
	runtime.KeepAlive(b)
	return b
}

func write(t *testing.T, d *Device, at uintptr, b []byte) {
	require.NoError(t, d.Copy(at, addressOf(b), uint64(len(b)), device.Own))
	runtime.KeepAlive(b)
}

func TestMemoryIsToldApartAndZero(t *testing.T) {
	d := open(t, Options{})
	at, err := d.Alloc(5000)
	require.NoError(t, err)
	pinned, err := d.AllocHost(300)
	require.NoError(t, err)
	assert.True(t, d.Holds(at) && d.Holds(at+4999))
	assert.False(t, d.Holds(at-1) || d.Holds(at+5000) || d.Holds(pinned) || d.Holds(0))
	assert.Equal(t, make([]byte, 5000), read(t, d, at, 5000))
	assert.Equal(t, make([]byte, 300), view(pinned, 300))
	assert.ErrorIs(t, d.Copy(pinned, at, 5001, device.Own), status.InvalidArgument)
	assert.ErrorIs(t, d.Free(pinned), status.InvalidArgument)
	assert.ErrorIs(t, d.Free(at+1), status.InvalidArgument)
	assert.ErrorIs(t, d.FreeHost(at), status.InvalidArgument)
	assert.NoError(t, d.Free(0))
	require.NoError(t, d.Free(at))
	assert.ErrorIs(t, d.Free(at), status.InvalidArgument)
	require.NoError(t, d.FreeHost(pinned))
	assert.False(t, d.Holds(at))
}

func TestStreamsRunInOrderAndLate(t *testing.T) {
	d := open(t, Options{Late: 200 * time.Microsecond})
	s, err := d.NewStream()
	require.NoError(t, err)
	pinned, err := d.AllocHost(64)
	require.NoError(t, err)
	at, err := d.Alloc(64)
	require.NoError(t, err)
	hold := make(chan struct{})
	require.NoError(t, d.Call(s, func() { <-hold }))
	copy(view(pinned, 64), pattern(1, 64))
	require.NoError(t, d.Copy(at, pinned, 64, s))
	require.NoError(t, d.Clear(at+60, 4, s))
	mark, err := d.Record(s)
	require.NoError(t, err)
	require.NoError(t, d.WaitFor(device.Own, mark))
	assert.Equal(t, make([]byte, 64), viewShadow(d, at), "asynchronous: nothing has happened yet")
	ctx, cancel := context.WithTimeout(context.Background(), 20*time.Millisecond)
	defer cancel()
	assert.ErrorIs(t, d.Wait(ctx, device.Own), status.Timeout)
	require.NoError(t, d.FreeMark(mark))
	assert.ErrorIs(t, d.FreeMark(mark), status.StaleHandle)
	close(hold)
	require.NoError(t, d.Wait(soon(t), device.Own))
	assert.Equal(t, append(pattern(1, 60), 0, 0, 0, 0), read(t, d, at, 64))
	require.NoError(t, d.FreeStream(s))
	assert.ErrorIs(t, d.Wait(soon(t), s), status.StaleHandle)
	assert.ErrorIs(t, d.FreeStream(device.Own), status.InvalidArgument)
}

func viewShadow(d *Device, at uintptr) []byte {
	_, _, p, _ := d.places.Find(at)
	return view(p.shadow, 64)
}

func TestNoKernels(t *testing.T) {
	d := open(t, Options{})
	assert.ErrorIs(t, d.Launch("gshmem_k_put", 1, device.Own, 1), status.Unsupported)
}

func TestCloseEndsWhatWaits(t *testing.T) {
	d, err := Open(Options{})
	require.NoError(t, err)
	s, err := d.NewStream()
	require.NoError(t, err)
	var ran atomic.Bool
	mark := &mark{make(chan struct{})}
	d.marks[77] = mark
	require.NoError(t, d.WaitFor(s, 77))
	require.NoError(t, d.Call(s, func() { ran.Store(true) }))
	require.NoError(t, d.Close())
	require.NoError(t, d.Close())
	assert.False(t, ran.Load())
	_, err = d.Alloc(1)
	assert.ErrorIs(t, err, status.StaleHandle)
	assert.ErrorIs(t, d.Wait(soon(t), s), status.StaleHandle)
}

func TestHeapsOfOneProcessReachEachOther(t *testing.T) {
	const n, size = 3, 4 << 20
	var devices []*Device
	var heaps []device.Heap
	for pe := range n {
		d := open(t, Options{ID: pe})
		h, err := d.NewHeap(size-5, pe, n)
		require.NoError(t, err)
		devices, heaps = append(devices, d), append(heaps, h)
		assert.Equal(t, memory.Device, h.Kind())
		assert.Equal(t, uint64(size), h.Size())
	}
	for pe, h := range heaps {
		for peer, other := range heaps {
			if peer != pe {
				require.NoError(t, h.Map(peer, other.Card()))
				assert.ErrorIs(t, h.Map(peer, other.Card()), status.InvalidArgument)
			}
		}
		next := (pe + 1) % n
		write(t, devices[pe], h.Base(next)+100, pattern(pe, 999))
	}
	for pe, h := range heaps {
		want := append(append(make([]byte, 100), pattern((pe+n-1)%n, 999)...), make([]byte, 50)...)
		assert.Equal(t, want, read(t, devices[pe], h.Base(pe), len(want)))
		assert.ErrorIs(t, h.Commit(size-1, 2), status.NotSymmetric)
		require.NoError(t, h.Unmap((pe+1)%n))
		assert.Zero(t, h.Base((pe+1)%n))
		require.NoError(t, h.Close())
		require.NoError(t, h.Close())
	}
}

func TestCardsThatDoNotFit(t *testing.T) {
	d := open(t, Options{})
	small, err := d.NewHeap(page, 0, 2)
	require.NoError(t, err)
	large, err := d.NewHeap(2*page, 1, 2)
	require.NoError(t, err)
	assert.ErrorIs(t, small.Map(1, large.Card()), status.Asymmetric)
	assert.ErrorIs(t, small.Map(1, []byte("x")), status.InvalidArgument)
	card := large.Card()
	require.NoError(t, large.Close())
	peer, err := d.NewHeap(2*page, 0, 2)
	require.NoError(t, err)
	assert.ErrorIs(t, peer.Map(1, card), status.PeerUnreachable, "its owner has closed it")
}

// TestHeapOfAnotherProcess runs this test binary again as the peer.
func TestHeapOfAnotherProcess(t *testing.T) {
	d := open(t, Options{})
	h, err := d.NewHeap(page, 0, 2)
	require.NoError(t, err)
	defer h.Close()
	if card := os.Getenv("HOST_DEVICE_CARD"); card != "" {
		other, err := d.NewHeap(page, 1, 2)
		require.NoError(t, err)
		var b []byte
		_, err = fmt.Sscanf(card, "%x", &b)
		require.NoError(t, err)
		require.NoError(t, other.Map(0, b))
		write(t, d, other.Base(0)+7, pattern(1, 333))
		return
	}
	cmd := exec.Command(os.Args[0], "-test.run=^TestHeapOfAnotherProcess$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("HOST_DEVICE_CARD=%x", h.Card()))
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, string(out))
	assert.Equal(t, pattern(1, 333), read(t, d, h.Base(0)+7, 333))
}

func TestNothingIsLeft(t *testing.T) {
	count := func() (int, int) {
		fds, err := os.ReadDir("/proc/self/fd")
		require.NoError(t, err)
		return len(fds), runtime.NumGoroutine()
	}
	files, routines := count()
	for range 20 {
		d, err := Open(Options{})
		require.NoError(t, err)
		_, err = d.NewHeap(page, 0, 2)
		require.NoError(t, err)
		_, err = d.NewStream()
		require.NoError(t, err)
		_, err = d.Alloc(10)
		require.NoError(t, err)
		require.NoError(t, d.Close())
	}
	f, r := count()
	for end := time.Now().Add(30 * time.Second); (f > files || r > routines) && time.Now().Before(end); f, r = count() {
		time.Sleep(time.Millisecond) // a goroutine is counted for a moment after its last word
	}
	assert.LessOrEqual(t, f, files) // what earlier tests left may go meanwhile
	assert.LessOrEqual(t, r, routines)
}

func TestRegisteredMemoryIsPinned(t *testing.T) {
	d, err := Open(Options{Late: time.Millisecond})
	require.NoError(t, err)
	mem, err := unix.Mmap(-1, 0, 2*os.Getpagesize(), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	require.NoError(t, err)
	defer func() { assert.NoError(t, unix.Munmap(mem)) }()
	at := addressOf(mem)
	there, err := d.Register(at, uint64(len(mem)))
	require.NoError(t, err)
	assert.Equal(t, at, there)
	assert.False(t, d.Holds(at))
	assert.True(t, d.Locked(at+5))
	assert.False(t, d.Locked(at+uintptr(len(mem))))
	_, err = d.Register(at, uint64(len(mem)))
	assert.ErrorIs(t, err, status.InvalidArgument)
	_, err = d.Register(at, 3)
	assert.ErrorIs(t, err, status.Misaligned)
	assert.ErrorIs(t, d.FreeHost(at), status.InvalidArgument)
	hold := make(chan struct{})
	require.NoError(t, d.Call(device.Own, func() { <-hold }))
	own, err := d.Alloc(64)
	require.NoError(t, err)
	require.NoError(t, d.Copy(own, at, 64, device.Own), "does not wait")
	close(hold)
	require.NoError(t, d.Wait(context.Background(), device.Own))
	require.NoError(t, d.Unregister(at))
	assert.ErrorIs(t, d.Unregister(at), status.InvalidArgument)
	_, err = d.Register(at, uint64(len(mem)))
	require.NoError(t, err)
	require.NoError(t, d.Close())
	mem[0] = 1 // it is still the owner's
	_, err = d.Register(at, uint64(len(mem)))
	assert.ErrorIs(t, err, status.StaleHandle)
}
