package main

import "unsafe"

// pointer turns an address outside of Go's heap into a pointer for a C out-parameter.
func pointer(addr uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&addr)) }
