package acl

// #include <stdlib.h>
// #include "runtime.h"
import "C"

import "unsafe"

// Held is what an emulated runtime says that this process holds, by kind, so that tests see what was left behind. It is nil over
// a real runtime, and when none is loaded.
func Held() map[string]uint64 {
	library, _ := open(libraryName, true)
	if library == nil || symbol(library, "aclemu_live") == 0 {
		return nil
	}
	held := map[string]uint64{}
	for _, kind := range []string{"malloc", "map", "ipc", "pinned", "registered"} {
		held[kind] = ask(symbol(library, "aclemu_live"), kind)
	}
	for _, kind := range []string{"handles", "reservations", "events"} {
		held[kind] = uint64(C.gacl_ask_plain(pointerTo(symbol(library, "aclemu_live_"+kind))))
	}
	return held
}

// inject makes calls of an emulated runtime fail: "point:passage:code", "" for none any more. False over a real one.
func inject(text string) bool {
	library, _ := open(libraryName, true)
	if library == nil || symbol(library, "aclemu_inject") == 0 {
		return false
	}
	if text == "" {
		C.gacl_ask(pointerTo(symbol(library, "aclemu_inject")), nil)
	} else {
		ask(symbol(library, "aclemu_inject"), text)
	}
	return true
}

func ask(f uintptr, text string) uint64 {
	c := C.CString(text)
	defer C.free(unsafe.Pointer(c))
	return uint64(C.gacl_ask(pointerTo(f), c))
}
