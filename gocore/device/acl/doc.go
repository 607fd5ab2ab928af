// Package acl is Ascend NPUs as devices, through the CANN runtime (libascendcl.so).
//
// The runtime is opened when a device is, never before; nothing of CANN is needed to build. entries.def lists every entry point
// that is called, with the release that brought it and what is lost without it; a required one that is missing makes [Open] fail
// and name it, an optional one has another way or costs what the list says, and [device.Facts] shows it.
//
// The runtime keeps the current device per thread, and goroutines move between threads. So every call makes the device's context
// current first and gives the thread back what it had (runtime.c); that is one look-up when nothing changes. A process in which
// somebody else has initialised the runtime (torch_npu, a program of its own) is served alike: this package initialises and sets the
// device only where nobody did, never finalizes, and resets the device only when it set it.
//
// No call blocks a thread for long: [Device.Wait] asks the runtime in slices of at most 50 ms and looks at its context between them.
//
// Heaps are shared between processes in the best of four ways that chip and runtime have: virtual memory with fabric handles
// (910_93), with default handles, with the older handles (releases before 8.5.0, which keep a list of processes), and keys of plain
// memory where memory cannot be mapped. A peer that none of them reaches stays unmapped, with the reason.
package acl
