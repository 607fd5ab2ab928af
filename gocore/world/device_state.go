package world

import (
	"os"
	"strings"

	"goshmem/gocore/config"
	"goshmem/gocore/device"
	"goshmem/gocore/device/acl"
	"goshmem/gocore/device/state"
)

// openNPU opens an Ascend NPU through CANN.
func openNPU(id int, at *acl.Place, cfg *config.Config) (device.Device, error) {
	return acl.Open(acl.Options{Device: id, At: at, Library: cfg.ACLLibrary, Kernels: cfg.Kernels})
}

// Here is the NPU that the calling thread has set, nil without one. Worlds come up on threads of their own, so whoever starts one asks
// before. spec is the device that is wanted, "" the environment's; where none is, nothing is looked for.
func Here(spec string) *acl.Place {
	if spec == "" {
		spec = os.Getenv("SHMEM_DEVICE")
	}
	if s, err := parseSpec(spec); err != nil || s.kind != "npu" {
		return nil
	}
	if p, ok := acl.Here(acl.Options{Library: os.Getenv("SHMEM_ACL_LIBRARY")}); ok {
		return &p
	}
	return nil
}

// reserved is how much of the end of the heap belongs to the state for kernels. It is set aside whether or not there are kernels
// here, so that the heaps of all PEs are equal.
func (x *accelerator) reserved() uint64 {
	if x.kind == "host" {
		return 0
	}
	return state.Reserved
}

// makeState makes the state for kernels, where there are some.
func (x *accelerator) makeState() error {
	if x.reserved() == 0 || strings.HasPrefix(x.facts.Kernels, "none") {
		return nil
	}
	s, err := state.New(x.dev, state.Options{Me: x.w.me, N: x.w.n, Heap: x.heap})
	if err != nil {
		return err
	}
	x.state = s
	return nil
}

// SetKernelBuffer moves the staging buffer that kernels of this library use on an engine. No kernel may be running. Without kernels it does nothing.
func (w *World) SetKernelBuffer(engine int, at uint64, size, event uint32) error {
	x, err := w.needDevice("set_kernel_buffer")
	if err != nil || x.state == nil {
		return err
	}
	s, ok := x.state.(*state.State)
	if !ok {
		return nil
	}
	return s.SetBuffer(engine, int64(at), size, event)
}
