package acl

import (
	"context"
	"fmt"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestMemoryAndCopies(t *testing.T) {
	parallel(t, chips, func(t *testing.T, chip string) {
		p := over(t, setting{chip: chip, n: 1, bare: true})
		if p == nil {
			return
		}
		d := p.open()
		for i, n := range []int{1, 63, 64, 4099, 3<<20 + 5} {
			a, err := d.Alloc(uint64(n + 2))
			require.NoError(t, err)
			b, err := d.Alloc(uint64(n + 2))
			require.NoError(t, err)
			assert.Equal(t, make([]byte, n+2), read(t, d, a, n+2), "new memory is zero")
			write(t, d, a, pattern(i, n+2))
			require.NoError(t, d.Copy(b+1, a+1, uint64(n), device.Own))
			assert.Equal(t, append(append([]byte{0}, pattern(i, n+2)[1:n+1]...), 0), read(t, d, b, n+2))
			require.NoError(t, d.Clear(a+1, uint64(n), device.Own))
			assert.Equal(t, append(append(pattern(i, 1), make([]byte, n)...), pattern(i, n+2)[n+1]), read(t, d, a, n+2))
			require.NoError(t, d.Free(a))
			require.NoError(t, d.Free(b))
		}
		pageable(t, d)
		refused(t, d)
	})
}

// pageable copies from and to memory that the runtime does not know, which belongs to the caller again when Copy returns.
func pageable(t *testing.T, d *Device) {
	at, err := d.Alloc(5000)
	require.NoError(t, err)
	host := make([]byte, 5000)
	copy(host, pattern(7, 5000))
	pin := new(runtime.Pinner)
	defer pin.Unpin()
	pin.Pin(&host[0])
	require.NoError(t, d.Copy(at, addressOf(host), 5000, device.Own))
	clear(host)
	require.NoError(t, d.Copy(addressOf(host), at, 5000, device.Own))
	assert.Equal(t, pattern(7, 5000), host)
	require.NoError(t, d.Free(at))
}

func refused(t *testing.T, d *Device) {
	at, err := d.Alloc(100)
	require.NoError(t, err)
	_, pinned := buffer(t, d, 100)
	assert.True(t, d.Holds(at) && d.Holds(at+99))
	assert.False(t, d.Holds(at+100) || d.Holds(pinned) || d.Holds(0))
	assert.ErrorIs(t, d.Copy(pinned, at, 101, device.Own), status.InvalidArgument)
	assert.ErrorIs(t, d.Copy(0, at, 1, device.Own), status.InvalidArgument)
	assert.NoError(t, d.Copy(0, at, 0, device.Own))
	assert.ErrorIs(t, d.Clear(pinned, 1, device.Own), status.InvalidArgument)
	assert.ErrorIs(t, d.Free(pinned), status.InvalidArgument)
	assert.ErrorIs(t, d.FreeHost(at), status.InvalidArgument)
	_, err = d.Alloc(0)
	assert.ErrorIs(t, err, status.InvalidArgument)
	_, err = d.Alloc(1 << 50)
	assert.ErrorIs(t, err, status.NoMemory)
	assert.ErrorContains(t, err, "SHMEM_DEVICE_SIZE")
	require.NoError(t, d.Free(at))
	require.NoError(t, d.FreeHost(pinned))
}

func TestStreamsMarksAndCalls(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	s, err := d.NewStream()
	require.NoError(t, err)
	hold, order := make(chan struct{}), []int{}
	require.NoError(t, d.Call(s, func() { <-hold; order = append(order, 1) }))
	require.NoError(t, d.Call(s, func() { order = append(order, 2) }))
	m, err := d.Record(s)
	require.NoError(t, err)
	require.NoError(t, d.WaitFor(device.Own, m))
	require.NoError(t, d.Call(device.Own, func() { order = append(order, 3) }))
	require.NoError(t, d.FreeMark(m), "while a stream waits for it")
	for _, after := range []time.Duration{20 * time.Millisecond, 120 * time.Millisecond} {
		ctx, cancel := context.WithTimeout(context.Background(), after)
		begun := time.Now()
		assert.ErrorIs(t, d.Wait(ctx, device.Own), status.Timeout)
		assert.WithinRange(t, time.Now(), begun.Add(after-10*time.Millisecond), begun.Add(after+20*time.Second), "a deadline is met")
		cancel()
	}
	ctx, cancel := context.WithCancelCause(context.Background())
	time.AfterFunc(10*time.Millisecond, func() { cancel(status.At(status.PeerDead, "put", 3, "gone")) })
	begun := time.Now()
	assert.ErrorIs(t, d.Wait(ctx, device.Own), status.PeerDead)
	assert.Less(t, time.Since(begun), 20*time.Second)
	close(hold)
	require.NoError(t, d.Wait(soon(t), device.Own))
	assert.Equal(t, []int{1, 2, 3}, order)
	require.NoError(t, d.FreeStream(s))
	assert.ErrorIs(t, d.FreeStream(s), status.StaleHandle)
	assert.ErrorIs(t, d.FreeStream(device.Own), status.StaleHandle)
	var host atomic.Bool
	a, from := buffer(t, d, 9)
	b, to := buffer(t, d, 9)
	copy(a, pattern(3, 9))
	require.NoError(t, d.Call(device.Own, func() { host.Store(true) }))
	require.NoError(t, d.Copy(to, from, 9, device.Own), "host to host, in the stream's order")
	require.NoError(t, d.Wait(soon(t), device.Own))
	assert.Equal(t, a, b)
	assert.True(t, host.Load())
}

// TestFailedWorkIsReportedOnce lets the work itself fail, not the call.
func TestFailedWorkIsReportedOnce(t *testing.T) {
	p := over(t, setting{chip: "910_93", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	at, err := d.Alloc(64)
	require.NoError(t, err)
	require.True(t, inject("task:aclrtMemsetAsync:1:507035"))
	require.NoError(t, d.Clear(at, 64, device.Own))
	err = d.Wait(soon(t), device.Own)
	assert.ErrorIs(t, err, status.Internal)
	assert.ErrorContains(t, err, "507035 (kernel trapped)")
	assert.ErrorContains(t, err, "injected", "the runtime's own words")
	inject("")
	assert.NoError(t, d.Wait(soon(t), device.Own))
}

// TestAnyThread works on threads that have set no device, and on one that has set another, which it keeps.
func TestAnyThread(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true, env: []string{"ACLEMU_DEVICES=3"}})
	if p == nil {
		return
	}
	d := p.open()
	caller := bindLoaded(t)
	var wait sync.WaitGroup
	for i := range 8 {
		wait.Go(func() {
			runtime.LockOSThread()
			defer runtime.UnlockOSThread()
			var before uintptr
			if i%2 == 1 {
				assert.Nil(t, caller.setDevice(2))
				before, _ = caller.context()
			}
			for range 20 {
				at, err := d.Alloc(700)
				assert.NoError(t, err)
				write(t, d, at, pattern(i, 700))
				assert.Equal(t, pattern(i, 700), read(t, d, at, 700))
				assert.NoError(t, d.Free(at))
			}
			if i%2 == 1 {
				after, f := caller.context()
				assert.Nil(t, f)
				assert.Equal(t, before, after)
			}
		})
	}
	wait.Wait()
}

// TestCostOfAnyThread prints what making the context current costs; it fails only when that is out of proportion.
func TestCostOfAnyThread(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true, env: []string{"ACLEMU_SCHEDULE=eager"}})
	if p == nil {
		return
	}
	d := p.open()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cost := func(f func()) time.Duration {
		best := time.Hour
		for range 20 {
			begun := time.Now()
			for range 1000 {
				f()
			}
			best = min(best, time.Since(begun)/1000)
		}
		return best
	}
	with := cost(func() { _, _ = d.b.deviceCount() })
	own := d.b.c.context
	d.b.use(0)
	without := cost(func() { _, _ = d.b.deviceCount() })
	d.b.use(uintptr(own))
	fmt.Printf("a call %v, with the context made current %v\n", without, with)
	assert.Less(t, with, without+20*time.Microsecond)
}
