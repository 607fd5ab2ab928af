package acl

import (
	"fmt"
	"os"
	"testing"

	"goshmem/gocore/device"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// pages is memory that several processes could have mapped, as hosts' heaps are.
func pages(t *testing.T, n int) ([]byte, uintptr) {
	fd, err := unix.MemfdCreate("acl-test", unix.MFD_CLOEXEC)
	require.NoError(t, err)
	defer unix.Close(fd)
	size := n * os.Getpagesize()
	require.NoError(t, unix.Ftruncate(fd, int64(size)))
	mem, err := unix.Mmap(fd, 0, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED)
	require.NoError(t, err)
	t.Cleanup(func() { assert.NoError(t, unix.Munmap(mem)) })
	return mem, addressOf(mem)
}

func TestKernelsReachRegisteredMemory(t *testing.T) {
	parallel(t, []setting{
		{chip: "910B1", n: 1}, {chip: "910_93", n: 1}, {chip: "910B1", n: 1, release: "cann-8.1"},
		{chip: "950", n: 1, env: []string{"ACLEMU_CANN=9.1.0"}},
		{chip: "910_93", n: 1, fail: "aclrtHostRegisterV2:0:207000"}, // the older call is there
	}, func(t *testing.T, s setting) {
		p := over(t, s)
		if p == nil {
			return
		}
		w := p.world()
		mem, at := pages(t, 5)
		there, err := w.d.Register(at, uint64(len(mem)))
		require.NoError(t, err)
		assert.NotEqual(t, at, there)
		copy(mem, pattern(3, len(mem)))
		own := uint64(w.me)
		w.run("gshmem_k_put", 1, w.at(0), uint64(there)+7, uint64(len(mem)-7), own)
		w.run("gshmem_k_get", 1, uint64(there)+1, w.at(5), 1000, own)
		w.wait()
		assert.Equal(t, pattern(3, len(mem))[7:], read(t, w.d, uintptr(w.at(0)), len(mem)-7), "host memory to the device by a kernel")
		want := pattern(3, len(mem))
		copy(want[1:1001], pattern(3, len(mem))[12:])
		assert.Equal(t, want, mem, "and back")

		require.NoError(t, w.d.Copy(uintptr(w.at(100)), at+50, 300, device.Own), "copies take the host's address")
		w.wait()
		assert.Equal(t, want[50:350], read(t, w.d, uintptr(w.at(100)), 300))
		err = w.d.Copy(uintptr(w.at(100)), there+50, 300, device.Own)
		assert.ErrorIs(t, err, status.InvalidArgument)
		assert.ErrorContains(t, err, fmt.Sprintf("%#x", at+50))
		err = w.d.Copy(at+uintptr(len(mem))-5, uintptr(w.at(0)), 6, device.Own)
		assert.ErrorIs(t, err, status.InvalidArgument, "it ends there")
		assert.False(t, w.d.Holds(at))
		assert.False(t, w.d.Holds(there))
		assert.Equal(t, s.release == "" && s.fail == "", w.d.Locked(at+1), "the older call only maps")

		_, err = w.d.Register(at, uint64(len(mem)))
		assert.ErrorIs(t, err, status.InvalidArgument, "twice")
		assert.ErrorIs(t, w.d.Unregister(at+uintptr(os.Getpagesize())), status.InvalidArgument)
		assert.ErrorIs(t, w.d.Unregister(there), status.InvalidArgument)
		assert.ErrorIs(t, w.d.FreeHost(at), status.InvalidArgument)
		require.NoError(t, w.d.Unregister(at))
		assert.ErrorIs(t, w.d.Unregister(at), status.InvalidArgument)
		_, err = w.d.Register(at+1, 4096)
		assert.ErrorIs(t, err, status.Misaligned)
		_, err = w.d.Register(at, 100)
		assert.ErrorIs(t, err, status.Misaligned)
		_, err = w.d.Register(at, 0)
		assert.ErrorIs(t, err, status.InvalidArgument)
		_, err = w.d.Register(at, uint64(len(mem)))
		assert.NoError(t, err, "once more; Close ends it")
	})
}

func TestChipsThatRegisterNothing(t *testing.T) {
	p := over(t, setting{chip: "950", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	_, at := pages(t, 1)
	_, err := d.Register(at, uint64(os.Getpagesize()))
	assert.ErrorIs(t, err, status.Unsupported)
	assert.ErrorContains(t, err, "this chip or driver lacks it")
	assert.ErrorContains(t, err, "register_chip")
}

func TestKernelsOfLinuxAreCompared(t *testing.T) {
	for release, want := range map[string]bool{"5.10.0-136.oe2203": false, "5.10": false, "5.9.1": false, "4.19.90": false, "5.11-rc1": true, "5.15.0": true,
		"6.1.0": true, "10.2": true, "": true, "strange": true, "6.x": true, "5.10+": false} {
		assert.Equal(t, want, newer(release, 5, 10), release)
	}
}
