package world

import (
	"strings"

	"goshmem/gocore/config"
	"goshmem/gocore/device"
	"goshmem/gocore/device/acl"
	"goshmem/gocore/device/state"
)

// openNPU opens an Ascend NPU through CANN.
func openNPU(id int, cfg *config.Config) (device.Device, error) {
	return acl.Open(acl.Options{Device: id, Library: cfg.ACLLibrary, Kernels: cfg.Kernels})
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
