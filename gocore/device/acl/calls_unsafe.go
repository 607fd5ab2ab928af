package acl

// #cgo LDFLAGS: -ldl
// #include <stdlib.h>
// #include "runtime.h"
import "C"

import (
	"runtime"
	"unsafe"
)

// binding is the loaded runtime: one method for each entry point, that gives nil or the failure.
type binding struct{ c *C.gacl_runtime }

// entry is a line of entries.def, and whether the loaded runtime has it.
type entry struct {
	name, since, lost string
	required, present bool
}

// pointerTo must stay a call: inlined, it makes go 1.26 compile some copies wrongly.
//
//go:noinline
func pointerTo(at uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&at)) }

func take(text *C.char) string {
	defer C.free(unsafe.Pointer(text))
	return C.GoString(text)
}

// done is the outcome of a call.
func done(call string, e *C.gacl_error) *failure {
	if e.code == 0 {
		return nil
	}
	f := &failure{call: call, code: int(e.code)}
	if e.text != nil {
		f.text = take(e.text)
	}
	return f
}

// asked makes a call and words its failure.
func asked(call string, f func(e *C.gacl_error)) *failure {
	var e C.gacl_error
	f(&e)
	return done(call, &e)
}

// given is a call that gives an address or a handle, 0 when it fails.
func given(call string, f func(e *C.gacl_error, out *unsafe.Pointer)) (uintptr, *failure) {
	var out unsafe.Pointer
	failed := asked(call, func(e *C.gacl_error) { f(e, &out) })
	return uintptr(out), failed
}

// number is a call that gives one.
func number[T ~int32 | ~uint32 | ~int64 | ~uint64](call string, f func(e *C.gacl_error, out *T)) (T, *failure) {
	var out T
	failed := asked(call, func(e *C.gacl_error) { f(e, &out) })
	return out, failed
}

// open opens a library; already takes it only when the process has it. The text says why it could not.
func open(path string, already bool) (unsafe.Pointer, string) {
	name := C.CString(path)
	defer C.free(unsafe.Pointer(name))
	var why *C.char
	only := C.int(0)
	if already {
		only = 1
	}
	library := C.gacl_open(name, only, &why)
	if library == nil {
		return nil, take(why)
	}
	return library, ""
}

// symbol is the address of a library's function, 0 when it has none of that name.
func symbol(library unsafe.Pointer, name string) uintptr {
	text := C.CString(name)
	defer C.free(unsafe.Pointer(text))
	return uintptr(C.gacl_symbol(library, text))
}

// origin is the file that an address came from.
func origin(address uintptr) string { return C.GoString(C.gacl_origin(pointerTo(address))) }

// home is the file that this package is linked into.
func home() string { return C.GoString(C.gacl_origin(C.gacl_open)) }

// bind looks the entry points up. Their table goes with the binding, the library stays loaded: threads of it may run.
func bind(library unsafe.Pointer) *binding {
	b := &binding{C.gacl_bind(library)}
	runtime.AddCleanup(b, func(c *C.gacl_runtime) { C.free(unsafe.Pointer(c)) }, b.c)
	return b
}

func (b *binding) symbol(name string) uintptr { return symbol(b.c.library, name) }

// entries is the list of entries.def, as the loaded runtime has it.
func (b *binding) entries() []entry {
	var all []entry
	for i := C.int(0); ; i++ {
		e := C.gacl_look(b.c, i)
		if e.name == nil {
			return all
		}
		all = append(all, entry{C.GoString(e.name), C.GoString(e.since), C.GoString(e.lost), e.required != 0, e.present != 0})
	}
}

func (b *binding) socName() string {
	return C.GoString(C.gacl_soc(b.c)) // "" when the runtime gives none
}

func (b *binding) init() *failure {
	return asked("aclInit", func(e *C.gacl_error) { C.gacl_aclInit(b.c, e, nil) })
}

func (b *binding) interfaceVersion() (v [3]int32, f *failure) {
	var major, minor, patch C.int32_t
	f = asked("aclrtGetVersion", func(e *C.gacl_error) { C.gacl_aclrtGetVersion(b.c, e, &major, &minor, &patch) })
	return [3]int32{int32(major), int32(minor), int32(patch)}, f
}

func (b *binding) packageVersion(name string) (string, *failure) {
	text, out := C.CString(name), (*C.char)(C.calloc(1, 512))
	defer C.free(unsafe.Pointer(text))
	defer C.free(unsafe.Pointer(out))
	f := asked("aclsysGetVersionStr", func(e *C.gacl_error) { C.gacl_aclsysGetVersionStr(b.c, e, text, out) })
	return C.GoString(out), f
}

func (b *binding) setDevice(id int) *failure {
	return asked("aclrtSetDevice", func(e *C.gacl_error) { C.gacl_aclrtSetDevice(b.c, e, C.int32_t(id)) })
}

func (b *binding) resetDevice(id int) *failure {
	return asked("aclrtResetDevice", func(e *C.gacl_error) { C.gacl_aclrtResetDevice(b.c, e, C.int32_t(id)) })
}

func (b *binding) getDevice() (int, *failure) {
	n, f := number("aclrtGetDevice", func(e *C.gacl_error, out *C.int32_t) { C.gacl_aclrtGetDevice(b.c, e, out) })
	return int(n), f
}

func (b *binding) deviceCount() (int, *failure) {
	n, f := number("aclrtGetDeviceCount", func(e *C.gacl_error, out *C.uint32_t) { C.gacl_aclrtGetDeviceCount(b.c, e, out) })
	return int(n), f
}

func (b *binding) vectorCores(id int) (int, *failure) {
	n, f := number("aclrtGetDeviceInfo", func(e *C.gacl_error, out *C.int64_t) {
		C.gacl_aclrtGetDeviceInfo(b.c, e, C.uint32_t(id), C.GACL_VECTOR_CORES, out)
	})
	return int(n), f
}

// context is the current one of this thread.
func (b *binding) context() (uintptr, *failure) {
	return given("aclrtGetCurrentContext", func(e *C.gacl_error, out *unsafe.Pointer) { C.gacl_aclrtGetCurrentContext(b.c, e, out) })
}

func (b *binding) setContext(c uintptr) *failure {
	return asked("aclrtSetCurrentContext", func(e *C.gacl_error) { C.gacl_aclrtSetCurrentContext(b.c, e, pointerTo(c)) })
}

// use makes every later call run in a context, on whatever thread.
func (b *binding) use(c uintptr) { b.c.context = pointerTo(c) }

func (b *binding) canAccessPeer(id, peer int) (bool, *failure) {
	n, f := number("aclrtDeviceCanAccessPeer", func(e *C.gacl_error, out *C.int32_t) {
		C.gacl_aclrtDeviceCanAccessPeer(b.c, e, out, C.int32_t(id), C.int32_t(peer))
	})
	return n != 0, f
}

func (b *binding) enablePeerAccess(peer int) *failure {
	return asked("aclrtDeviceEnablePeerAccess", func(e *C.gacl_error) { C.gacl_aclrtDeviceEnablePeerAccess(b.c, e, C.int32_t(peer), 0) })
}

// bareTgid is the process id that lists of processes want: the host's, also inside a container.
func (b *binding) bareTgid() (int32, *failure) {
	n, f := number("aclrtDeviceGetBareTgid", func(e *C.gacl_error, out *C.int32_t) { C.gacl_aclrtDeviceGetBareTgid(b.c, e, out) })
	return int32(n), f
}

// physical is the number of a device on its server, whatever this process sees of it.
func (b *binding) physical(id int) (int, *failure) {
	logic, f := number("aclrtGetLogicDevIdByUserDevId", func(e *C.gacl_error, out *C.int32_t) {
		C.gacl_aclrtGetLogicDevIdByUserDevId(b.c, e, C.int32_t(id), out)
	})
	if f != nil {
		return 0, f
	}
	n, f := number("aclrtGetPhyDevIdByLogicDevId", func(e *C.gacl_error, out *C.int32_t) { C.gacl_aclrtGetPhyDevIdByLogicDevId(b.c, e, logic, out) })
	return int(n), f
}
