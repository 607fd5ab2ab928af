package acl

// #include <stdlib.h>
// #include <string.h>
// #include "runtime.h"
import "C"

import "unsafe"

func (b *binding) malloc(n uint64, hugeOnly bool) (uintptr, *failure) {
	var e C.gacl_error
	var at unsafe.Pointer
	policy := C.int(C.GACL_MALLOC_HUGE_FIRST)
	if hugeOnly {
		policy = C.GACL_MALLOC_HUGE_ONLY
	}
	C.gacl_aclrtMalloc(b.c, &e, &at, C.size_t(n), policy)
	return uintptr(at), done("aclrtMalloc", &e)
}

func (b *binding) freeMemory(at uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtFree(b.c, &e, pointerTo(at))
	return done("aclrtFree", &e)
}

func (b *binding) mallocHost(n uint64) (uintptr, *failure) {
	var e C.gacl_error
	var at unsafe.Pointer
	C.gacl_aclrtMallocHost(b.c, &e, &at, C.size_t(n))
	return uintptr(at), done("aclrtMallocHost", &e)
}

func (b *binding) freeHost(at uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtFreeHost(b.c, &e, pointerTo(at))
	return done("aclrtFreeHost", &e)
}

// registerHost maps host memory for kernels and locks it; where the release or the chip has no such call, the older one maps it.
func (b *binding) registerHost(at uintptr, n uint64) *failure {
	var e C.gacl_error
	C.gacl_aclrtHostRegisterV2(b.c, &e, pointerTo(at), C.uint64_t(n), C.GACL_HOST_MAPPED|C.GACL_HOST_PINNED)
	return done("aclrtHostRegisterV2", &e)
}

// registeredAt is where kernels find what registerHost has mapped.
func (b *binding) registeredAt(at uintptr) (uintptr, *failure) {
	var e C.gacl_error
	var out unsafe.Pointer
	C.gacl_aclrtHostGetDevicePointer(b.c, &e, pointerTo(at), &out, 0)
	return uintptr(out), done("aclrtHostGetDevicePointer", &e)
}

// mapHost is the older form of both.
func (b *binding) mapHost(at uintptr, n uint64) (uintptr, *failure) {
	var e C.gacl_error
	var out unsafe.Pointer
	C.gacl_aclrtHostRegister(b.c, &e, pointerTo(at), C.uint64_t(n), C.GACL_REGISTER_MAPPED, &out)
	return uintptr(out), done("aclrtHostRegister", &e)
}

func (b *binding) unregisterHost(at uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtHostUnregister(b.c, &e, pointerTo(at))
	return done("aclrtHostUnregister", &e)
}

// clearNow zeroes device memory and returns when it is zero.
func (b *binding) clearNow(at uintptr, n uint64) *failure {
	var e C.gacl_error
	C.gacl_aclrtMemset(b.c, &e, pointerTo(at), C.size_t(n), 0, C.size_t(n))
	return done("aclrtMemset", &e)
}

func (b *binding) clear(at uintptr, n uint64, stream uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtMemsetAsync(b.c, &e, pointerTo(at), C.size_t(n), 0, C.size_t(n), pointerTo(stream))
	return done("aclrtMemsetAsync", &e)
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
	var e C.gacl_error
	C.gacl_aclrtMemcpyAsync(b.c, &e, pointerTo(dst), C.size_t(n), pointerTo(src), C.size_t(n), direction(toDevice, fromDevice), pointerTo(stream))
	return done("aclrtMemcpyAsync", &e)
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
	var e C.gacl_error
	var n C.size_t
	what := b.what(device)
	C.gacl_aclrtMemGetAllocationGranularity(b.c, &e, &what, C.GACL_GRANULARITY_MINIMUM, &n)
	return uint64(n), done("aclrtMemGetAllocationGranularity", &e)
}

// reserve takes addresses: at expected, or anywhere when that is 0. huge is the kind of page, of which the documents of different
// releases say different things.
func (b *binding) reserve(n uint64, expected uintptr, huge bool) (uintptr, *failure) {
	var e C.gacl_error
	var at unsafe.Pointer
	flags := C.uint64_t(0)
	if huge {
		flags = 1
	}
	C.gacl_aclrtReserveMemAddress(b.c, &e, &at, C.size_t(n), 0, pointerTo(expected), flags)
	return uintptr(at), done("aclrtReserveMemAddress", &e)
}

func (b *binding) release(at uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtReleaseMemAddress(b.c, &e, pointerTo(at))
	return done("aclrtReleaseMemAddress", &e)
}

func (b *binding) mallocPhysical(n uint64, device int) (uintptr, *failure) {
	var e C.gacl_error
	var handle unsafe.Pointer
	what := b.what(device)
	C.gacl_aclrtMallocPhysical(b.c, &e, &handle, C.size_t(n), &what, 0)
	return uintptr(handle), done("aclrtMallocPhysical", &e)
}

func (b *binding) freePhysical(handle uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtFreePhysical(b.c, &e, pointerTo(handle))
	return done("aclrtFreePhysical", &e)
}

func (b *binding) mapMemory(at uintptr, n uint64, handle uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtMapMem(b.c, &e, pointerTo(at), C.size_t(n), 0, pointerTo(handle), 0)
	return done("aclrtMapMem", &e)
}

func (b *binding) unmapMemory(at uintptr) *failure {
	var e C.gacl_error
	C.gacl_aclrtUnmapMem(b.c, &e, pointerTo(at))
	return done("aclrtUnmapMem", &e)
}

// shared is a handle or a key as it travels to other processes.
type shared [C.GACL_FABRIC_BYTES]byte

// exportHandle makes physical memory known to other processes. It can be done once for a handle.
func (b *binding) exportHandle(handle uintptr, fabric bool) (out shared, f *failure) {
	var e C.gacl_error
	C.gacl_aclrtMemExportToShareableHandleV2(b.c, &e, pointerTo(handle), C.GACL_NO_PID_CHECK, shareType(fabric), unsafe.Pointer(&out))
	return out, done("aclrtMemExportToShareableHandleV2", &e)
}

func (b *binding) importHandle(from *shared, fabric bool) (uintptr, *failure) {
	var e C.gacl_error
	var handle unsafe.Pointer
	C.gacl_aclrtMemImportFromShareableHandleV2(b.c, &e, unsafe.Pointer(from), shareType(fabric), 0, &handle)
	return uintptr(handle), done("aclrtMemImportFromShareableHandleV2", &e)
}

func shareType(fabric bool) C.int {
	if fabric {
		return C.GACL_SHARE_FABRIC
	}
	return C.GACL_SHARE_DEFAULT
}

// exportListed is the older export: only processes on the handle's list may import.
func (b *binding) exportListed(handle uintptr) (uint64, *failure) {
	var e C.gacl_error
	var out C.uint64_t
	C.gacl_aclrtMemExportToShareableHandle(b.c, &e, pointerTo(handle), 0, 0, &out)
	return uint64(out), done("aclrtMemExportToShareableHandle", &e)
}

func (b *binding) list(handle uint64, pid int32) *failure {
	var e C.gacl_error
	one := C.int32_t(pid)
	C.gacl_aclrtMemSetPidToShareableHandle(b.c, &e, C.uint64_t(handle), &one, 1)
	return done("aclrtMemSetPidToShareableHandle", &e)
}

func (b *binding) importListed(handle uint64, device int) (uintptr, *failure) {
	var e C.gacl_error
	var out unsafe.Pointer
	C.gacl_aclrtMemImportFromShareableHandle(b.c, &e, C.uint64_t(handle), C.int32_t(device), &out)
	return uintptr(out), done("aclrtMemImportFromShareableHandle", &e)
}

func (b *binding) exportKey(at uintptr, n uint64) (out shared, f *failure) {
	var e C.gacl_error
	C.gacl_aclrtIpcMemGetExportKey(b.c, &e, pointerTo(at), C.size_t(n), (*C.char)(unsafe.Pointer(&out)), C.GACL_KEY_BYTES, C.GACL_NO_PID_CHECK)
	return out, done("aclrtIpcMemGetExportKey", &e)
}

func (b *binding) importKey(key *shared) (uintptr, *failure) {
	var e C.gacl_error
	var at unsafe.Pointer
	C.gacl_aclrtIpcMemImportByKey(b.c, &e, &at, (*C.char)(unsafe.Pointer(key)), C.GACL_IMPORT_PEER)
	return uintptr(at), done("aclrtIpcMemImportByKey", &e)
}

func (b *binding) closeKey(key *shared) *failure {
	var e C.gacl_error
	C.gacl_aclrtIpcMemClose(b.c, &e, (*C.char)(unsafe.Pointer(key)))
	return done("aclrtIpcMemClose", &e)
}

// moveHost copies between host addresses.
func moveHost(dst, src uintptr, n uint64) { C.memmove(pointerTo(dst), pointerTo(src), C.size_t(n)) }

// zeroHost clears host memory.
func zeroHost(at uintptr, n uint64) { C.memset(pointerTo(at), 0, C.size_t(n)) }
