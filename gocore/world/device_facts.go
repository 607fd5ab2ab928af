package world

import "fmt"

// DeviceStats is the present use of this PE's heap on the device.
func (w *World) DeviceStats() (HeapStat, error) {
	x, err := w.needDevice("device_stats")
	if err != nil {
		return HeapStat{}, err
	}
	return w.statsOf(x.arena), nil
}

// The kinds of memory an address can be of; the numbers are those of gshmem.h (GSHMEM_MEMORY_*).
const (
	MemoryOther = iota
	MemoryHost
	MemoryDevice
	MemoryOnDevice
)

// KindOf says what an address is: symmetric memory of the host or of the device, other memory of the device, or anything else.
func (w *World) KindOf(at uintptr) int {
	x := w.device()
	switch {
	case w.host.covers(at, 0):
		return MemoryHost
	case x.symmetric(at, 0):
		return MemoryDevice
	case x.holds(at):
		return MemoryOnDevice
	}
	return MemoryOther
}

func (x *accelerator) String() string {
	return fmt.Sprintf("%s %d (%s)", x.facts.Name, x.facts.ID, x.kind)
}

// DeviceState is the device address of the state that kernels take first, 0 without kernels.
func (w *World) DeviceState() (uintptr, error) {
	x, err := w.needDevice("device_state")
	if err != nil || x.state == nil {
		return 0, err
	}
	return x.state.Address(), nil
}
