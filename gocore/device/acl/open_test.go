package acl

import (
	"encoding/binary"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"

	"goshmem/gocore/device"
	"goshmem/gocore/status"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestNoRuntimeIsSaid(t *testing.T) {
	_, err := Open(Options{Device: -1, Library: "", Getenv: func(string) string { return "" }})
	assert.ErrorIs(t, err, status.Unsupported)
	assert.ErrorContains(t, err, "libascendcl.so was not found")
	assert.ErrorContains(t, err, "SHMEM_ACL_LIBRARY")
	assert.Nil(t, Held())
}

// TestMissingEntryPointsAreNamed opens a library that has some of what is required.
func TestMissingEntryPointsAreNamed(t *testing.T) {
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	folder := t.TempDir()
	source, library := filepath.Join(folder, "old.c"), filepath.Join(folder, "libold.so")
	require.NoError(t, os.WriteFile(source, []byte(`
int aclInit(const char *c) { return 0; }
int aclrtGetVersion(int *a, int *b, int *c) { *a = 1, *b = 2, *c = 3; return 0; }
`), 0o600))
	out, err := exec.Command(cc, "-shared", "-fPIC", "-o", library, source).CombinedOutput()
	require.NoError(t, err, string(out))
	_, err = Open(Options{Library: library})
	assert.ErrorIs(t, err, status.Unsupported)
	for _, word := range []string{library, "interface 1.2.3", "aclrtSetDevice (CANN 8.1.RC1; needed for devices)", "aclrtGetSocName", "aclrtMalloc ", "install CANN"} {
		assert.ErrorContains(t, err, word)
	}
	assert.NotContains(t, err.Error(), "aclrtLaunchHostFunc", "an optional one")
	assert.NotContains(t, err.Error(), "aclInit ")
}

func TestFacts(t *testing.T) {
	names := map[string][]string{"910B1": {"Ascend910B1", "2201"}, "910_93": {"Ascend910_9391", "2201"}, "950": {"Ascend950PR_9589", "3510"}}
	parallel(t, chips, func(t *testing.T, chip string) {
		p := over(t, setting{chip: chip, n: 1})
		if p == nil {
			return
		}
		f := p.open().Facts()
		assert.Equal(t, names[chip], []string{f.Name, f.Arch})
		assert.Equal(t, "CANN 8.5.0", f.Runtime)
		assert.Equal(t, 48, f.Cores)
		assert.Equal(t, chip == "950", f.Atomics)
		assert.True(t, f.Emulated)
		assert.Empty(t, f.Missing)
		assert.Contains(t, f.Kernels, "libgshmem_kernels_cpu_"+f.Arch+".so")
		assert.Contains(t, f.Library, "libascendcl.so")
	})
}

// TestDeviceChoice opens devices in the ways that Options has.
func TestDeviceChoice(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true, env: []string{"ACLEMU_DEVICES=4", "LOCAL_RANK=6"}})
	if p == nil {
		return
	}
	runtime.LockOSThread()
	id := func(o Options) int {
		d, err := Open(o)
		require.NoError(t, err)
		defer func() { assert.NoError(t, d.Close()) }()
		return d.Facts().ID
	}
	assert.Equal(t, 2, id(Options{Device: -1}), "LOCAL_RANK 6 of 4 devices")
	assert.Equal(t, 3, id(Options{Device: 3}))
	_, err := Open(Options{Device: 4})
	assert.ErrorIs(t, err, status.InvalidArgument)
	assert.ErrorContains(t, err, "ASCEND_RT_VISIBLE_DEVICES")

	caller := bindLoaded(t)
	require.Nil(t, caller.setDevice(1))
	assert.Equal(t, 1, id(Options{Device: -1}), "the one that the thread has set")
	before, f := caller.context()
	require.Nil(t, f)
	assert.Equal(t, 2, id(Options{Device: 2}))
	after, f := caller.context()
	require.Nil(t, f, "the caller's device was not reset")
	assert.Equal(t, before, after, "the thread keeps its context")
	require.Nil(t, caller.resetDevice(1))
}

// bindLoaded is the runtime as the rest of the program sees it.
func bindLoaded(t *testing.T) *binding {
	library, why := open(libraryName, true)
	require.NotNil(t, library, why)
	return bind(library)
}

// TestTwoRuntimesAreRefused names another copy of the library than the one that is loaded.
func TestTwoRuntimesAreRefused(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	loaded := d.Facts().Library
	text, err := os.ReadFile(loaded)
	require.NoError(t, err)
	other := filepath.Join(t.TempDir(), "libascendcl.so")
	require.NoError(t, os.WriteFile(other, text, 0o700))
	_, err = Open(Options{Library: other})
	assert.ErrorIs(t, err, status.BadConfig)
	assert.ErrorContains(t, err, loaded)
	again, err := Open(Options{Library: loaded})
	require.NoError(t, err, "the same one by name")
	require.NoError(t, again.Close())
}

// TestOpenUndoes lets each call of Open fail in turn.
func TestOpenUndoes(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1})
	if p == nil {
		return
	}
	for _, call := range []string{"aclInit", "aclrtGetDeviceCount", "aclrtSetDevice", "aclrtGetCurrentContext", "aclrtCreateStream"} {
		if call == "aclrtGetCurrentContext" {
			continue // asked for whether the thread has one, so its failure is an answer
		}
		if !inject(call + ":0:507899") { // the library is not loaded before the first Open
			d, err := Open(Options{Device: 0})
			require.NoError(t, err)
			require.NoError(t, d.Close())
			require.True(t, inject(call+":0:507899"))
		}
		_, err := Open(Options{Device: 0})
		assert.ErrorIs(t, err, status.System, call)
		assert.ErrorContains(t, err, call+" gave 507899 (driver error)")
		inject("")
		for kind, n := range Held() {
			assert.Zero(t, n, "%s left %s", call, kind)
		}
	}
	d := p.open()
	require.NoError(t, d.Close())
	_, err := d.Alloc(1)
	assert.ErrorIs(t, err, status.StaleHandle)
}

// TestWithoutKernels says where kernels were looked for.
func TestWithoutKernels(t *testing.T) {
	p := over(t, setting{chip: "950", n: 1, bare: true})
	if p == nil {
		return
	}
	d := p.open()
	assert.True(t, strings.HasPrefix(d.Facts().Kernels, "none: "), d.Facts().Kernels)
	err := d.Launch("gshmem_k_quiet", 1, 0, 5)
	assert.ErrorIs(t, err, status.Unsupported)
	assert.ErrorContains(t, err, "libgshmem_kernels_cpu_3510.so")
	assert.ErrorContains(t, err, "SHMEM_KERNELS")
}

// launcher is a library of kernels with a launcher of its own, as bisheng's is. It writes what it was told to the host address that
// is its third argument.
const launcher = `
#include <stdint.h>
#include <string.h>
#ifdef TOGETHER
int32_t gshmem_starts_together(void) { return TOGETHER; }
#endif
int32_t gshmem_launch(const char *name, uint32_t blocks, const void *args, size_t size, void *stream)
{
    uint64_t in[3], out[5];
    if (size != 24 || strcmp(name, "gshmem_k_allgather") == 0) return -1;
    memcpy(in, args, size);
    out[0] = blocks, out[1] = in[0], out[2] = in[1], out[3] = stream != 0, out[4] = strlen(name);
    memcpy((void *)(uintptr_t)in[2], out, sizeof out);
    return 0;
}
`

func TestKernelsWithALauncher(t *testing.T) {
	p := over(t, setting{chip: "910_93", n: 1, bare: true})
	if p == nil {
		return
	}
	p.launcher(7, "-DTOGETHER=1")
	p.launcher(1, "-DTOGETHER=0")
	p.launcher(1, "-UTOGETHER")
}

// launcher starts a kernel of 7 blocks through a library with a launcher; want is how many it is told.
func (p *pe) launcher(want uint64, option string) {
	t := p.t
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("there is no C compiler")
	}
	folder := t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(folder, "k.c"), []byte(launcher), 0o600))
	library := filepath.Join(folder, "libgshmem_kernels.so")
	out, err := exec.Command(cc, option, "-shared", "-fPIC", "-o", library, filepath.Join(folder, "k.c")).CombinedOutput()
	require.NoError(t, err, string(out))
	d, err := Open(Options{Device: 0, Kernels: folder})
	require.NoError(t, err)
	defer func() { assert.NoError(t, d.Close()) }()
	assert.Equal(t, library, d.Facts().Kernels)
	mem, at := buffer(t, d, 40)
	require.NoError(t, d.kernelsFor("gshmem_k_barrier", 7, uint64(at), 11, 22))
	for i, want := range []uint64{want, 11, 22, 1, uint64(len("gshmem_k_barrier"))} {
		assert.Equal(t, want, binary.NativeEndian.Uint64(mem[8*i:]))
	}
	err = d.Launch("gshmem_k_quiet", 1, device.Own, 5)
	assert.ErrorIs(t, err, status.Unsupported, "the library is of another version")
	assert.ErrorContains(t, err, "gshmem_launch gave -3 (no such kernel)")
	require.NoError(t, d.FreeHost(at))
}

// kernelsFor starts a kernel with arguments that the table does not have.
func (d *Device) kernelsFor(name string, blocks int, out uint64, args ...uint64) error {
	f, err := d.kernels.start(d.b, name, blocks, d.own, append(args, out))
	if err == nil && f != nil {
		err = f.as("launch", -1)
	}
	return err
}

// TestModelKernelsAreNotForDevices: over a real runtime the CPU model's library is refused.
func TestModelKernelsAreNotForDevices(t *testing.T) {
	p := over(t, setting{chip: "910B1", n: 1})
	if p == nil {
		return
	}
	d := p.open()
	emulated := d.Facts().Kernels
	d.facts.Emulated = false
	_, why := d.openKernels(emulated)
	assert.Contains(t, why, "CPU model")
	k := d.findKernels(Options{Kernels: filepath.Dir(emulated)})
	assert.Contains(t, k.where, "libgshmem_kernels_npu_2201.so is no file")
	d.facts.Arch = ""
	assert.Contains(t, d.findKernels(Options{}).where, "there are no kernels for")
}
