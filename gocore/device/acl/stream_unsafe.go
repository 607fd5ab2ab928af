package acl

// #include <stdint.h>
// #include <stdlib.h>
// #include "runtime.h"
//
// extern void gacl_called(uintptr_t);
// extern void gacl_host(void *);
// static inline int gacl_call(gacl_runtime *r, gacl_error *e, void *stream, uintptr_t which)
// {
//     return gacl_aclrtLaunchHostFunc(r, e, stream, gacl_host, (void *)which);
// }
import "C"

import (
	"runtime/cgo"
	"unsafe"
)

func (b *binding) createStream() (uintptr, *failure) {
	return given("aclrtCreateStream", func(e *C.gacl_error, out *unsafe.Pointer) { C.gacl_aclrtCreateStream(b.c, e, out) })
}

func (b *binding) destroyStream(s uintptr) *failure {
	return asked("aclrtDestroyStreamForce", func(e *C.gacl_error) { C.gacl_aclrtDestroyStreamForce(b.c, e, pointerTo(s)) })
}

// synchronize waits for a stream for at most so many milliseconds.
func (b *binding) synchronize(s uintptr, milliseconds int) *failure {
	return asked("aclrtSynchronizeStreamWithTimeout", func(e *C.gacl_error) {
		C.gacl_aclrtSynchronizeStreamWithTimeout(b.c, e, pointerTo(s), C.int32_t(milliseconds))
	})
}

func (b *binding) createEvent() (uintptr, *failure) {
	return given("aclrtCreateEventWithFlag", func(e *C.gacl_error, out *unsafe.Pointer) {
		C.gacl_aclrtCreateEventWithFlag(b.c, e, out, C.GACL_EVENT_SYNC)
	})
}

func (b *binding) destroyEvent(v uintptr) *failure {
	return asked("aclrtDestroyEvent", func(e *C.gacl_error) { C.gacl_aclrtDestroyEvent(b.c, e, pointerTo(v)) })
}

func (b *binding) record(v, s uintptr) *failure {
	return asked("aclrtRecordEvent", func(e *C.gacl_error) { C.gacl_aclrtRecordEvent(b.c, e, pointerTo(v), pointerTo(s)) })
}

func (b *binding) streamWait(s, v uintptr) *failure {
	return asked("aclrtStreamWaitEvent", func(e *C.gacl_error) { C.gacl_aclrtStreamWaitEvent(b.c, e, pointerTo(s), pointerTo(v)) })
}

// reached says whether an event has come to pass; a failure of the question counts as yes, so that nobody asks for ever.
func (b *binding) reached(v uintptr) bool {
	var e C.gacl_error
	var state C.int
	C.gacl_aclrtQueryEventStatus(b.c, &e, pointerTo(v), &state)
	return done("aclrtQueryEventStatus", &e) != nil || state != 0
}

// call queues a host function; handle holds a *hostCall.
func (b *binding) call(s uintptr, handle cgo.Handle) *failure {
	return asked("aclrtLaunchHostFunc", func(e *C.gacl_error) { C.gacl_call(b.c, e, pointerTo(s), C.uintptr_t(handle)) })
}

// gacl_called runs on a thread of the runtime, when the stream has come to a host function.
//
//export gacl_called
func gacl_called(which C.uintptr_t) { runCall(cgo.Handle(which)) }
