// Command capi is libshmem.so: the C ABI of include/gshmem.h over the Go core, and nothing else.
//
// The public names are C functions (shim_*.c) so that hot calls never enter Go; what they do not finish comes to the
// exports here, each of which is one body under guard.
package main

// #cgo CFLAGS: -std=gnu11 -O3 -Wall -Wextra -Wno-unused-parameter -I${SRCDIR}/include -I${SRCDIR}/../gocore/hot -fvisibility=hidden
// #cgo LDFLAGS: -Wl,--unresolved-symbols=ignore-all
// #include "internal.h"
import "C"

func main() {}
