package hot

import (
	"encoding/binary"
	"runtime"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

const segmentBytes = 1 << 16

func mapped(t *testing.T, n int) []byte {
	t.Helper()
	m, err := syscall.Mmap(-1, 0, n, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED|syscall.MAP_ANON)
	require.NoError(t, err)
	t.Cleanup(func() { _ = syscall.Munmap(m) })
	return m
}

// pair is a world of two PEs whose memories are both in this process.
func pair(t *testing.T) (*World, [2][]byte) {
	t.Helper()
	w, err := New(0, 2, 7)
	require.NoError(t, err)
	var mem [2][]byte
	for pe := range mem {
		mem[pe] = mapped(t, segmentBytes)
		InitHeader(mem[pe], HeaderInfo{Me: pe, N: 2, Size: segmentBytes, Page: 4096, HeapOff: 4096, HeapLen: segmentBytes - 4096})
	}
	heap, err := w.AddSegment(mem[0][4096:], 4096, 0, Host)
	require.NoError(t, err)
	for pe := range mem {
		w.SetBase(heap, pe, mem[pe][4096:])
		w.SetWhole(pe, mem[pe])
	}
	t.Cleanup(func() {
		require.True(t, w.Close(time.Minute))
		w.Free()
	})
	return w, mem
}

func TestHeaderRoundTrip(t *testing.T) {
	m := mapped(t, segmentBytes)
	in := HeaderInfo{Me: 3, N: 5, Nonce: [16]byte{1, 2, 15: 9}, Size: 1, Page: 65536, ScratchOff: 3, ScratchLen: 4, HeapOff: 5, HeapLen: 6}
	_, err := ReadHeader(m, in.Nonce)
	require.ErrorIs(t, err, status.PeerUnreachable)
	InitHeader(m, in)
	out, err := ReadHeader(m, in.Nonce)
	require.NoError(t, err)
	require.Equal(t, in, out)
	require.Equal(t, layout.Magic, binary.LittleEndian.Uint64(m[layout.HdrMagic:]))
	require.Equal(t, in.HeapLen, binary.LittleEndian.Uint64(m[layout.HdrHeapLen:]))
	_, err = ReadHeader(m, [16]byte{9})
	require.ErrorContains(t, err, "nonce differs")
	m[layout.HdrVersion]++
	_, err = ReadHeader(m, in.Nonce)
	require.ErrorIs(t, err, status.VersionSkew)
}

func TestHeaderAlarms(t *testing.T) {
	h := HeaderAt(mapped(t, segmentBytes))
	code, by := h.Aborted()
	require.Zero(t, code)
	require.EqualValues(t, -1, by)
	h.Abort(7, 0)
	h.Abort(8, 1)
	code, by = h.Aborted()
	require.EqualValues(t, 7, code)
	require.EqualValues(t, 0, by)
	require.EqualValues(t, 2, h.Alarm())
	require.False(t, h.Closing())
	h.SetClosing()
	require.True(t, h.Closing())
}

func TestHandlesGoStale(t *testing.T) {
	w, err := New(0, 1, 1)
	require.NoError(t, err)
	first := w.Publish()
	require.NotZero(t, first)
	require.True(t, w.Close(time.Minute))
	w.Free()
	w, err = New(0, 1, 2)
	require.NoError(t, err)
	second := w.Publish()
	require.NotEqual(t, first, second)
	require.True(t, w.Close(time.Minute))
	w.Free()
}

func TestWaitUntilWidthsAndSigns(t *testing.T) {
	w, mem := pair(t)
	word := mem[0][4096:]
	for _, c := range []struct {
		width       int
		stored, arg uint64
		cmp         Cmp
		want        Result
	}{
		{1, 0xff, 1, GT, OK}, {1, 0xff, 0, LT | Signed, OK}, {1, 0xff, 0, GT | Signed, Pending},
		{2, 0x8000, 0, LT | Signed, OK}, {2, 0x8000, 0, GT, OK}, {2, 7, 0x10007, EQ, OK},
		{4, 0xffffffff, ^uint64(0), EQ | Signed, OK}, {4, 0xffffffff, 0xffffffff, LE, OK}, {4, 5, 5, NE, Pending},
		{8, 1 << 63, 0, LT | Signed, OK}, {8, 1 << 63, 0, GE, OK}, {8, 3, 4, GE, Pending},
		{3, 0, 0, EQ, Result(status.InvalidArgument)}, {4, 0, 0, 6, Result(status.InvalidArgument)},
	} {
		binary.LittleEndian.PutUint64(word, c.stored)
		var s Wait
		s.Reset(Forever)
		got := w.WaitUntil(word[:c.width], c.cmp, c.arg, &s, 0)
		require.Equal(t, c.want, got, "%+v", c)
	}
	var s Wait
	s.Reset(Forever)
	require.Equal(t, Result(status.Misaligned), w.WaitUntil(word[1:5], EQ, 0, &s, 0))
}

func TestWaitHonoursDeadlineAndUntil(t *testing.T) {
	w, mem := pair(t)
	for _, d := range []time.Duration{200 * time.Microsecond, 5 * time.Millisecond, 50 * time.Millisecond} {
		var s Wait
		begin := Now()
		s.Reset(begin + int64(d))
		require.Equal(t, Pending, w.WaitUntil(mem[0][4096:4104], EQ, 1, &s, Forever))
		took := time.Duration(Now() - begin)
		require.GreaterOrEqual(t, took, d)
		require.Less(t, took, d+20*time.Second)
	}
}

func TestAlarmIsSeenOncePerWait(t *testing.T) {
	w, mem := pair(t)
	w.MarkDead(1)
	require.True(t, w.Dead(1))
	require.False(t, w.Dead(0))
	require.False(t, w.Dead(2))
	var s Wait
	s.Reset(Forever)
	require.Equal(t, Slow, w.WaitUntil(mem[0][4096:4104], EQ, 1, &s, Now()+int64(20*time.Second)))
	require.Equal(t, Pending, w.WaitUntil(mem[0][4096:4104], EQ, 1, &s, Now()+int64(time.Millisecond)))
	HeaderAt(mem[0]).Raise()
	require.Equal(t, Slow, w.WaitUntil(mem[0][4096:4104], EQ, 1, &s, Now()+int64(20*time.Second)))
}

func TestRingWakesSleeper(t *testing.T) {
	w, mem := pair(t)
	word := (*uint64)(unsafe.Pointer(&mem[0][4096]))
	done := make(chan Result)
	go func() {
		var s Wait
		s.Reset(Now() + int64(time.Minute))
		done <- w.WaitUntil(mem[0][4096:4104], EQ, 5, &s, Forever)
	}()
	time.Sleep(20 * time.Millisecond) // it sleeps by now; if not, the test is only easier
	atomic.StoreUint64(word, 5)
	w.RingSelf()
	require.Equal(t, OK, <-done)
}

func TestIdleWaiterIsCheap(t *testing.T) {
	w, mem := pair(t)
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	cpu := func() time.Duration { // of this thread: others may still have to do with the tests before
		var u unix.Rusage
		require.NoError(t, unix.Getrusage(unix.RUSAGE_THREAD, &u))
		return time.Duration(u.Utime.Nano() + u.Stime.Nano())
	}
	before := cpu()
	var s Wait
	s.Reset(Now() + int64(500*time.Millisecond))
	require.Equal(t, Pending, w.WaitUntil(mem[0][4096:4104], EQ, 5, &s, Forever))
	require.Less(t, cpu()-before, 100*time.Millisecond)
}
