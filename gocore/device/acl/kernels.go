package acl

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"sync"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// kernels is the library of kernels, in one of two forms: with a launcher of its own (what bisheng makes of
// kernels/launch/npu.cpp), or a binary whose functions the runtime launches by name (the CPU model's, over an emulated runtime).
type kernels struct {
	where  string  // the file, or why there is none
	launch uintptr // gshmem_launch
	apart  bool    // its launcher cannot have all blocks of a kernel start together
	binary uintptr

	mu        *sync.Mutex // guards functions
	functions map[string]uintptr
}

// findKernels opens the first library of kernels that is there. That there is none is no failure: Launch says why.
func (d *Device) findKernels(o Options) kernels {
	if d.facts.Arch == "" {
		return kernels{where: fmt.Sprintf("none: there are no kernels for %q; 910B, 910_93 and 950 have some", d.facts.Name)}
	}
	var tried []string
	for _, path := range kernelFiles(o, d.facts.Arch, d.facts.Emulated) {
		if info, err := os.Stat(path); err != nil || info.IsDir() {
			tried = append(tried, path+" is no file")
			continue
		}
		k, why := d.openKernels(path)
		if why == "" {
			return k
		}
		tried = append(tried, path+": "+why)
	}
	return kernels{where: "none: " + strings.Join(tried, "; ") + "; build them (./build.sh kernels) and name the file or its folder by SHMEM_KERNELS"}
}

// kernelFiles lists where the library may be, the best first.
func kernelFiles(o Options, arch string, emulated bool) []string {
	name := "libgshmem_kernels_npu_" + arch + ".so"
	if emulated {
		name = "libgshmem_kernels_cpu_" + arch + ".so"
	}
	folder := filepath.Dir(home())
	if o.Kernels != "" {
		if info, err := os.Stat(o.Kernels); err != nil || !info.IsDir() {
			return []string{absolute(o.Kernels)}
		}
		folder = o.Kernels
	}
	return []string{absolute(filepath.Join(folder, name)), absolute(filepath.Join(folder, "libgshmem_kernels.so"))}
}

func absolute(path string) string {
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}

// openKernels opens one library; the text says why it cannot be used.
func (d *Device) openKernels(path string) (kernels, string) {
	k := kernels{where: path, mu: new(sync.Mutex), functions: map[string]uintptr{}}
	library, why := open(path, false)
	switch {
	case library != nil && symbol(library, "gshmem_launch") != 0:
		k.launch = symbol(library, "gshmem_launch")
		k.apart = !startsTogether(symbol(library, "gshmem_starts_together"))
		return k, ""
	case library != nil && symbol(library, "km_launch") != 0 && !d.facts.Emulated:
		return k, "it is of the CPU model of the kernels, and this is a real device"
	case library == nil && d.facts.Emulated:
		return k, printable(why)
	}
	binary, f := d.b.loadBinary(path)
	if f != nil {
		return k, f.words()
	}
	k.binary = binary
	return k, ""
}

func (k *kernels) unload(b *binding) *failure {
	if k.binary == 0 {
		return nil
	}
	return b.unloadBinary(k.binary)
}

// Launch implements [device.Device]. Kernels of more than one block start all blocks together, because they may wait for each
// other; where a library of kernels cannot have that, they get one block. blocks 0 is [device.Kernel.Blocks]; more than Facts().Cores are refused.
func (d *Device) Launch(name string, blocks int, s device.Stream, args ...uint64) error {
	op := "launch " + name
	if err := d.usable(op); err != nil {
		return err
	}
	kernel, ok := device.FindKernel(name)
	if !ok {
		return status.New(status.InvalidArgument, op, "there is no kernel of that name")
	}
	if err := kernel.Check(args); err != nil {
		return err
	}
	if blocks == 0 {
		blocks = kernel.Blocks(args, d.facts.Cores)
	}
	if blocks < 0 || blocks > d.facts.Cores {
		return status.New(status.InvalidArgument, op, "%d blocks; %s has %d cores that run together", blocks, d.facts.Name, d.facts.Cores)
	}
	f, err := d.kernels.start(d.b, name, blocks, d.stream(s), args)
	if err == nil && f != nil {
		err = f.as(op, -1)
	}
	return err
}

func (k *kernels) start(b *binding, name string, blocks int, stream uintptr, args []uint64) (*failure, error) {
	if k.launch != 0 {
		if k.apart { // the work is the same: blocks share it
			blocks = 1
		}
		return b.launchEntry(k.launch, name, blocks, stream, args), nil
	}
	if k.binary == 0 {
		return nil, status.New(status.Unsupported, "launch "+name, "kernels: %s", k.where)
	}
	function, f := k.function(b, name)
	if f != nil {
		return f, nil
	}
	return b.launchFunction(function, blocks, stream, blocks > 1, args), nil
}

// function is the runtime's handle of a kernel, asked for once.
func (k *kernels) function(b *binding, name string) (uintptr, *failure) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if f, ok := k.functions[name]; ok {
		return f, nil
	}
	f, failed := b.function(k.binary, name)
	if failed == nil {
		k.functions[name] = f
	}
	return f, failed
}
