package acl

import (
	"fmt"
	"os"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// Host memory that kernels reach. The runtime maps it at an address of the device's, which only kernels may use: copies take the host's.
// Documented for 910B and 910_93, and for the 950PR from CANN 9.1 on; the runtime has the last word. The memory must begin on a page,
// and memory that the runtime has not allocated itself wants a kernel newer than Linux 5.10.

// Register implements [device.Device].
func (d *Device) Register(at uintptr, bytes uint64) (uintptr, error) {
	const op = "register host memory"
	if err := d.sized(op, bytes); err != nil {
		return 0, err
	}
	page := uint64(os.Getpagesize())
	if uint64(at)%page != 0 || bytes%page != 0 {
		return 0, status.New(status.Misaligned, op, "[%#x, +%d) is not whole pages of %d bytes", at, bytes, page)
	}
	if _, _, _, taken := d.places.Find(at); taken {
		return 0, status.New(status.InvalidArgument, op, "%#x is registered or the device's already", at)
	}
	if release := linux(); !newer(release, 5, 10) {
		return 0, status.New(status.Unsupported, op, "this is Linux %s, and CANN registers memory that it has not allocated on kernels newer than 5.10 only; use device memory", release)
	}
	there, locked, f := d.mapForKernels(at, bytes)
	if f != nil {
		return 0, f.as(op, -1)
	}
	d.places.Add(at, bytes, place{kind: registered, window: there, locked: locked})
	if there != at {
		d.places.Add(there, bytes, place{kind: window, window: at})
	}
	return there, nil
}

// mapForKernels registers host memory in the best way there is: locked for copies, or mapped only. Nothing is left behind when it fails.
func (d *Device) mapForKernels(at uintptr, bytes uint64) (there uintptr, locked bool, f *failure) {
	if f = d.b.registerHost(at, bytes); f.unsupported() {
		there, f = d.b.mapHost(at, bytes)
		return there, false, f
	}
	if f != nil {
		return 0, false, f
	}
	if there, f = d.b.registeredAt(at); f != nil {
		_ = d.b.unregisterHost(at) // the first failure is the one to report
	}
	return there, true, f
}

// Unregister implements [device.Device].
func (d *Device) Unregister(at uintptr) error {
	if _, _, p, ok := d.places.Find(at); ok && p.kind == registered && p.window != at {
		d.places.Remove(p.window)
	}
	return d.free("unregister host memory", at, registered, registered)
}

// linux is the release of the running kernel.
func linux() string {
	var u unix.Utsname
	if unix.Uname(&u) != nil {
		return ""
	}
	return unix.ByteSliceToString(u.Release[:])
}

// newer says whether a kernel's release is after the one given; what cannot be read is.
func newer(release string, major, minor int) bool {
	var a, b int
	if n, _ := fmt.Sscanf(release, "%d.%d", &a, &b); n < 2 {
		return true
	}
	return a > major || a == major && b > minor
}
