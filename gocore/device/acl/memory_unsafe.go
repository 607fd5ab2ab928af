package acl

// #include <stdlib.h>
// #include <string.h>
// #include "runtime.h"
import "C"

import "unsafe"

func (b *binding) malloc(n uint64, hugeOnly bool) (uintptr, *failure) {
	policy := C.int(C.GACL_MALLOC_HUGE_FIRST)
	if hugeOnly {
		policy = C.GACL_MALLOC_HUGE_ONLY
	}
	return given("aclrtMalloc", func(e *C.gacl_error, out *unsafe.Pointer) { C.gacl_aclrtMalloc(b.c, e, out, C.size_t(n), policy) })
}

func (b *binding) freeMemory(at uintptr) *failure {
	return asked("aclrtFree", func(e *C.gacl_error) { C.gacl_aclrtFree(b.c, e, pointerTo(at)) })
}

func (b *binding) mallocHost(n uint64) (uintptr, *failure) {
	return given("aclrtMallocHost", func(e *C.gacl_error, out *unsafe.Pointer) { C.gacl_aclrtMallocHost(b.c, e, out, C.size_t(n)) })
}

func (b *binding) freeHost(at uintptr) *failure {
	return asked("aclrtFreeHost", func(e *C.gacl_error) { C.gacl_aclrtFreeHost(b.c, e, pointerTo(at)) })
}

// registerHost maps host memory for kernels and locks it.
func (b *binding) registerHost(at uintptr, n uint64) *failure {
	return asked("aclrtHostRegisterV2", func(e *C.gacl_error) {
		C.gacl_aclrtHostRegisterV2(b.c, e, pointerTo(at), C.uint64_t(n), C.GACL_HOST_MAPPED|C.GACL_HOST_PINNED)
	})
}

// registeredAt is where kernels find what registerHost has mapped.
func (b *binding) registeredAt(at uintptr) (uintptr, *failure) {
	return given("aclrtHostGetDevicePointer", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtHostGetDevicePointer(b.c, e, pointerTo(at), out, 0)
	})
}

// mapHost is the older form of both; it says nothing of locking.
func (b *binding) mapHost(at uintptr, n uint64) (uintptr, *failure) {
	return given("aclrtHostRegister", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtHostRegister(b.c, e, pointerTo(at), C.uint64_t(n), C.GACL_REGISTER_MAPPED, out)
	})
}

func (b *binding) unregisterHost(at uintptr) *failure {
	return asked("aclrtHostUnregister", func(e *C.gacl_error) { C.gacl_aclrtHostUnregister(b.c, e, pointerTo(at)) })
}

// clearNow zeroes device memory and returns when it is zero.
func (b *binding) clearNow(at uintptr, n uint64) *failure {
	return asked("aclrtMemset", func(e *C.gacl_error) { C.gacl_aclrtMemset(b.c, e, pointerTo(at), C.size_t(n), 0, C.size_t(n)) })
}

func (b *binding) clear(at uintptr, n uint64, stream uintptr) *failure {
	return asked("aclrtMemsetAsync", func(e *C.gacl_error) {
		C.gacl_aclrtMemsetAsync(b.c, e, pointerTo(at), C.size_t(n), 0, C.size_t(n), pointerTo(stream))
	})
}

// direction is where the two sides of a copy are.
func direction(toDevice, fromDevice bool) C.int {
	switch {
	case toDevice && fromDevice:
		return C.GACL_DEVICE_TO_DEVICE
	case toDevice:
		return C.GACL_HOST_TO_DEVICE
	case fromDevice:
		return C.GACL_DEVICE_TO_HOST
	}
	return C.GACL_HOST_TO_HOST
}

func (b *binding) copy(dst, src uintptr, n uint64, toDevice, fromDevice bool, stream uintptr) *failure {
	return asked("aclrtMemcpyAsync", func(e *C.gacl_error) {
		C.gacl_aclrtMemcpyAsync(b.c, e, pointerTo(dst), C.size_t(n), pointerTo(src), C.size_t(n), direction(toDevice, fromDevice), pointerTo(stream))
	})
}

// onDevice says whether the runtime knows an address as device memory. What it does not know is none.
func (b *binding) onDevice(at uintptr) bool {
	var e C.gacl_error
	var p C.gacl_pointer
	C.gacl_aclrtPointerGetAttributes(b.c, &e, pointerTo(at), &p)
	return done("aclrtPointerGetAttributes", &e) == nil && p.location._type == C.GACL_LOCATION_DEVICE
}

func (b *binding) what(device int) C.gacl_physical {
	return C.gacl_physical{attribute: C.GACL_HBM_HUGE, location: C.gacl_location{id: C.uint32_t(device), _type: C.GACL_LOCATION_DEVICE}}
}

func (b *binding) granularity(device int) (uint64, *failure) {
	what := b.what(device)
	n, f := number("aclrtMemGetAllocationGranularity", func(e *C.gacl_error, out *C.size_t) {
		C.gacl_aclrtMemGetAllocationGranularity(b.c, e, &what, C.GACL_GRANULARITY_MINIMUM, out)
	})
	return uint64(n), f
}

// reserve takes addresses: at expected, or anywhere when that is 0. huge is the kind of page, of which the documents of different
// releases say different things.
func (b *binding) reserve(n uint64, expected uintptr, huge bool) (uintptr, *failure) {
	flags := C.uint64_t(0)
	if huge {
		flags = 1
	}
	return given("aclrtReserveMemAddress", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtReserveMemAddress(b.c, e, out, C.size_t(n), 0, pointerTo(expected), flags)
	})
}

func (b *binding) release(at uintptr) *failure {
	return asked("aclrtReleaseMemAddress", func(e *C.gacl_error) { C.gacl_aclrtReleaseMemAddress(b.c, e, pointerTo(at)) })
}

func (b *binding) mallocPhysical(n uint64, device int) (uintptr, *failure) {
	what := b.what(device)
	return given("aclrtMallocPhysical", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtMallocPhysical(b.c, e, out, C.size_t(n), &what, 0)
	})
}

func (b *binding) freePhysical(handle uintptr) *failure {
	return asked("aclrtFreePhysical", func(e *C.gacl_error) { C.gacl_aclrtFreePhysical(b.c, e, pointerTo(handle)) })
}

func (b *binding) mapMemory(at uintptr, n uint64, handle uintptr) *failure {
	return asked("aclrtMapMem", func(e *C.gacl_error) { C.gacl_aclrtMapMem(b.c, e, pointerTo(at), C.size_t(n), 0, pointerTo(handle), 0) })
}

func (b *binding) unmapMemory(at uintptr) *failure {
	return asked("aclrtUnmapMem", func(e *C.gacl_error) { C.gacl_aclrtUnmapMem(b.c, e, pointerTo(at)) })
}

// shared is a handle or a key as it travels to other processes.
type shared [C.GACL_FABRIC_BYTES]byte

// exportHandle makes physical memory known to other processes. It can be done once for a handle.
func (b *binding) exportHandle(handle uintptr, fabric bool) (out shared, f *failure) {
	f = asked("aclrtMemExportToShareableHandleV2", func(e *C.gacl_error) {
		C.gacl_aclrtMemExportToShareableHandleV2(b.c, e, pointerTo(handle), C.GACL_NO_PID_CHECK, shareType(fabric), unsafe.Pointer(&out))
	})
	return out, f
}

func (b *binding) importHandle(from *shared, fabric bool) (uintptr, *failure) {
	return given("aclrtMemImportFromShareableHandleV2", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtMemImportFromShareableHandleV2(b.c, e, unsafe.Pointer(from), shareType(fabric), 0, out)
	})
}

func shareType(fabric bool) C.int {
	if fabric {
		return C.GACL_SHARE_FABRIC
	}
	return C.GACL_SHARE_DEFAULT
}

// exportListed is the older export: only processes on the handle's list may import.
func (b *binding) exportListed(handle uintptr) (uint64, *failure) {
	n, f := number("aclrtMemExportToShareableHandle", func(e *C.gacl_error, out *C.uint64_t) {
		C.gacl_aclrtMemExportToShareableHandle(b.c, e, pointerTo(handle), 0, 0, out)
	})
	return uint64(n), f
}

func (b *binding) list(handle uint64, pid int32) *failure {
	one := C.int32_t(pid)
	return asked("aclrtMemSetPidToShareableHandle", func(e *C.gacl_error) { C.gacl_aclrtMemSetPidToShareableHandle(b.c, e, C.uint64_t(handle), &one, 1) })
}

func (b *binding) importListed(handle uint64, device int) (uintptr, *failure) {
	return given("aclrtMemImportFromShareableHandle", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtMemImportFromShareableHandle(b.c, e, C.uint64_t(handle), C.int32_t(device), out)
	})
}

func (b *binding) exportKey(at uintptr, n uint64) (out shared, f *failure) {
	f = asked("aclrtIpcMemGetExportKey", func(e *C.gacl_error) {
		C.gacl_aclrtIpcMemGetExportKey(b.c, e, pointerTo(at), C.size_t(n), (*C.char)(unsafe.Pointer(&out)), C.GACL_KEY_BYTES, C.GACL_NO_PID_CHECK)
	})
	return out, f
}

func (b *binding) importKey(key *shared) (uintptr, *failure) {
	return given("aclrtIpcMemImportByKey", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtIpcMemImportByKey(b.c, e, out, (*C.char)(unsafe.Pointer(key)), C.GACL_IMPORT_PEER)
	})
}

func (b *binding) closeKey(key *shared) *failure {
	return asked("aclrtIpcMemClose", func(e *C.gacl_error) { C.gacl_aclrtIpcMemClose(b.c, e, (*C.char)(unsafe.Pointer(key))) })
}

// moveHost copies between host addresses.
func moveHost(dst, src uintptr, n uint64) { C.memmove(pointerTo(dst), pointerTo(src), C.size_t(n)) }

// zeroHost clears host memory.
func zeroHost(at uintptr, n uint64) { C.memset(pointerTo(at), 0, C.size_t(n)) }
