package segment

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// mapShared maps size bytes of fd at a multiple of heapAlign, so that every alignment up to it holds for addresses as it does
// for offsets, on every PE. It reserves a little more, maps over the aligned part and gives the ends back.
func mapShared(fd int, size uint64) ([]byte, error) {
	total := size + heapAlign
	raw, err := unix.MmapPtr(-1, 0, nil, uintptr(total), unix.PROT_NONE, unix.MAP_PRIVATE|unix.MAP_ANONYMOUS|unix.MAP_NORESERVE)
	if err != nil {
		return nil, err
	}
	skip := -uint64(uintptr(raw)) & (heapAlign - 1)
	low := unsafe.Add(raw, skip)
	if _, err := unix.MmapPtr(fd, 0, low, uintptr(size), unix.PROT_READ|unix.PROT_WRITE, unix.MAP_SHARED|unix.MAP_NORESERVE|unix.MAP_FIXED); err != nil {
		_ = unix.MunmapPtr(raw, uintptr(total)) // the first failure is the one to report
		return nil, err
	}
	if skip > 0 {
		_ = unix.MunmapPtr(raw, uintptr(skip)) // cannot fail for a range just reserved
	}
	if rest := heapAlign - skip; rest > 0 {
		_ = unix.MunmapPtr(unsafe.Add(low, size), uintptr(rest))
	}
	return unsafe.Slice((*byte)(low), size), nil
}

func unmap(b []byte) error {
	return unix.MunmapPtr(unsafe.Pointer(unsafe.SliceData(b)), uintptr(len(b)))
}
