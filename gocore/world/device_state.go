package world

import (
	"goshmem/gocore/config"
	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// openNPU opens an Ascend NPU through CANN.
func openNPU(id int, cfg *config.Config) (device.Device, error) {
	return nil, status.New(status.Unsupported, "device_open", "no driver of NPUs is linked in")
}

// reservedBytes is how much of each device heap belongs to the state for kernels.
func reservedBytes(n int) uint64 { return 0 }

// makeState makes the state for kernels, if there are kernels, and gives the part of the heap that is left for blocks.
func (x *accelerator) makeState() (first, end uint64, err error) {
	return 0, x.heap.Size(), nil
}
