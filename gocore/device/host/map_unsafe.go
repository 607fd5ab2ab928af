package host

import (
	"unsafe"

	"goshmem/gocore/status"

	"golang.org/x/sys/unix"
)

// mapping is memory as this process sees it: at is the address that is given out, shadow where it can be read and written.
// They are the same for pinned host memory.
type mapping struct {
	at, shadow uintptr
	size       uintptr
	raw        uintptr // the reservation around at, and its size
	rawSize    uintptr
	heap       bool // ends with its heap only
}

func newFile(size uint64) (int, error) {
	fd, err := unix.MemfdCreate("shmem-device", unix.MFD_CLOEXEC)
	if err != nil {
		return -1, status.Wrap(status.System, "device memory", err, "memfd_create")
	}
	if err := unix.Ftruncate(fd, int64(size)); err != nil {
		closeFile(fd)
		return -1, status.Wrap(status.NoMemory, "device memory", err, "%d bytes", size)
	}
	return fd, nil
}

func closeFile(fd int) { _ = unix.Close(fd) } // a descriptor is gone after close whatever it returns

// pointerTo must stay a call: inlined, it makes go 1.26 compile a copy of known size wrongly ("disjointTypes").
//
//go:noinline
func pointerTo(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

// mapTwice maps a file: addresses without access, aligned to page, and the shadow.
func mapTwice(fd int, bytes uint64) (mapping, error) {
	size := uintptr(bytes)
	raw, err := unix.MmapPtr(-1, 0, nil, size+page, unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return mapping{}, mapError(err, bytes)
	}
	shadow, err := unix.MmapPtr(fd, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE)
	if err != nil {
		_ = unix.MunmapPtr(raw, size+page) // the first failure is the one to report
		return mapping{}, mapError(err, bytes)
	}
	at := (uintptr(raw) + page - 1) &^ (page - 1)
	return mapping{at: at, shadow: uintptr(shadow), size: size, raw: uintptr(raw), rawSize: size + page}, nil
}

func mapPlain(bytes uint64) (mapping, error) {
	size := uintptr(bytes)
	p, err := unix.MmapPtr(-1, 0, nil, size, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS)
	if err != nil {
		return mapping{}, mapError(err, bytes)
	}
	return mapping{at: uintptr(p), shadow: uintptr(p), size: size}, nil
}

func mapError(err error, bytes uint64) error {
	return status.Wrap(status.NoMemory, "device memory", err, "%d bytes of addresses are refused; ask for less, or raise the address-space limit (ulimit -v)", bytes)
}

func (m mapping) unmap() error {
	err := unix.MunmapPtr(pointerTo(m.shadow), m.size)
	if m.raw != 0 {
		err = unix.MunmapPtr(pointerTo(m.raw), m.rawSize)
	}
	if err != nil {
		return status.Wrap(status.System, "unmap device memory", err, "%d bytes at %#x", m.size, m.at)
	}
	return nil
}

func bytesAt(at uintptr, n uint64) []byte { return unsafe.Slice((*byte)(pointerTo(at)), n) }

func moveBytes(dst, src uintptr, n uint64) {
	if n > 0 {
		copy(bytesAt(dst, n), bytesAt(src, n))
	}
}

func clearBytes(dst uintptr, n uint64) {
	if n > 0 {
		clear(bytesAt(dst, n))
	}
}
