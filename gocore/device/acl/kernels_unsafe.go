package acl

// #include <stdlib.h>
// #include "runtime.h"
//
// static inline int gacl_launch_packed(gacl_runtime *r, gacl_error *e, void *f, uint32_t blocks, void *stream, int batch, void *args, size_t size)
// {
//     gacl_launch_attribute a = {GACL_ATTRIBUTE_SCHEDULE, {GACL_SCHEDULE_BATCH}};
//     gacl_launch_config c = {&a, 1};
//     return gacl_aclrtLaunchKernelWithHostArgs(r, e, f, blocks, stream, batch ? &c : NULL, args, size, NULL, 0);
// }
//
// static inline int gacl_launch_listed(gacl_runtime *r, gacl_error *e, void *f, uint32_t blocks, void *stream, int batch, void *args)
// {
//     gacl_launch_attribute a = {GACL_ATTRIBUTE_SCHEDULE, {GACL_SCHEDULE_BATCH}};
//     gacl_launch_config c = {&a, 1};
//     return gacl_aclrtLaunchKernelWithConfig(r, e, f, blocks, stream, batch ? &c : NULL, args, NULL);
// }
import "C"

import "unsafe"

func (b *binding) loadBinary(path string) (uintptr, *failure) {
	text := C.CString(path)
	defer C.free(unsafe.Pointer(text))
	return given("aclrtBinaryLoadFromFile", func(e *C.gacl_error, out *unsafe.Pointer) { C.gacl_aclrtBinaryLoadFromFile(b.c, e, text, nil, out) })
}

func (b *binding) unloadBinary(binary uintptr) *failure {
	return asked("aclrtBinaryUnLoad", func(e *C.gacl_error) { C.gacl_aclrtBinaryUnLoad(b.c, e, pointerTo(binary)) })
}

func (b *binding) function(binary uintptr, name string) (uintptr, *failure) {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return given("aclrtBinaryGetFunction", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtBinaryGetFunction(b.c, e, pointerTo(binary), text, out)
	})
}

func batchFlag(batch bool) C.int {
	if batch {
		return 1
	}
	return 0
}

// launchFunction starts a kernel of a binary. The arguments are read before it returns.
func (b *binding) launchFunction(f uintptr, blocks int, stream uintptr, batch bool, args []uint64) *failure {
	var e C.gacl_error
	C.gacl_launch_packed(b.c, &e, pointerTo(f), C.uint32_t(blocks), pointerTo(stream), batchFlag(batch),
		unsafe.Pointer(unsafe.SliceData(args)), C.size_t(len(args)*8))
	if e.code != codeAbsent {
		return done("aclrtLaunchKernelWithHostArgs", &e)
	}
	return b.launchListed(f, blocks, stream, batch, args)
}

// launchListed is the way of releases before 8.5.0.
func (b *binding) launchListed(f uintptr, blocks int, stream uintptr, batch bool, args []uint64) *failure {
	var e C.gacl_error
	var list, parameter unsafe.Pointer
	if C.gacl_aclrtKernelArgsInit(b.c, &e, pointerTo(f), &list) != 0 {
		return done("aclrtKernelArgsInit", &e)
	}
	for i := range args {
		if C.gacl_aclrtKernelArgsAppend(b.c, &e, list, unsafe.Pointer(&args[i]), 8, &parameter) != 0 {
			return done("aclrtKernelArgsAppend", &e)
		}
	}
	if C.gacl_aclrtKernelArgsFinalize(b.c, &e, list) != 0 {
		return done("aclrtKernelArgsFinalize", &e)
	}
	C.gacl_launch_listed(b.c, &e, pointerTo(f), C.uint32_t(blocks), pointerTo(stream), batchFlag(batch), list)
	return done("aclrtLaunchKernelWithConfig", &e)
}

// launchEntry starts a kernel through the gshmem_launch of a library of kernels.
func (b *binding) launchEntry(launch uintptr, name string, blocks int, stream uintptr, args []uint64) *failure {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return asked("gshmem_launch", func(e *C.gacl_error) {
		C.gacl_launch(b.c, e, pointerTo(launch), text, C.uint32_t(blocks), unsafe.Pointer(unsafe.SliceData(args)), C.size_t(len(args)*8), pointerTo(stream))
	})
}

// startsTogether asks a library of kernels whether all blocks of its launches start together.
func startsTogether(f uintptr) bool { return C.gacl_together(pointerTo(f)) != 0 }
