package main

// #include "internal.h"
import "C"

import (
	"fmt"
	"os"
	"runtime/debug"
	"unsafe"

	"goshmem/gocore/status"
)

// guard runs one export: a panic becomes a status, an error becomes its code, and both leave their words in this
// thread's text. The callback runs on the caller's thread, so the text is the caller's.
func guard(f func() error) (code C.int32_t) {
	defer func() {
		if r := recover(); r != nil {
			words := fmt.Sprintf("internal error: %v (a bug in shmem; please report it with this text)\n%s", r, debug.Stack())
			fmt.Fprintln(os.Stderr, "shmem: "+words)
			code = refuse(status.New(status.Internal, "", "%s", words))
		}
	}()
	if err := f(); err != nil {
		return refuse(err)
	}
	return C.GSHMEM_OK
}

// refuse leaves err's words and gives its code.
func refuse(err error) C.int32_t {
	if c, ok := err.(status.Code); ok && c >= 0 {
		return C.int32_t(c) // pending is not a failure and has no words
	}
	words := err.Error()
	p := unsafe.StringData(words)
	C.errtext_set((*C.char)(unsafe.Pointer(p)), C.size_t(len(words)))
	return C.int32_t(status.Of(err))
}
