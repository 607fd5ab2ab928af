// Package device is memory and streams of an accelerator, as the world needs them.
//
// A [Device] is one accelerator that this process uses: package acl drives Ascend NPUs through CANN, package host is a
// device made of host memory and a thread, for tests of everything above without any emulator. Device memory is named by its
// address, which the CPU never follows.
package device

import (
	"context"

	"goshmem/gocore/memory"
)

// Stream is a queue of a device as its own runtime names it (an aclrtStream); Own is the library's.
type Stream uintptr

// Own is the stream that the library made for itself.
const Own Stream = 0

// Facts is what shmem.info() shows of a device.
type Facts struct {
	Name     string   `json:"name"`     // "Ascend910B1"
	Arch     string   `json:"arch"`     // of the kernels: "2201", "3510"
	ID       int      `json:"id"`       // as the runtime counts
	Runtime  string   `json:"runtime"`  // version of CANN
	Library  string   `json:"library"`  // which libascendcl.so
	Kernels  string   `json:"kernels"`  // which library of kernels, or why there is none
	Sharing  string   `json:"sharing"`  // how peers map the heap and why: "vmm default", "vmm fabric", "ipc"
	Cores    int      `json:"cores"`    // vector cores: the most blocks that may wait for each other
	Atomics  bool     `json:"atomics"`  // scalar atomics on global memory (950)
	Missing  []string `json:"missing"`  // entry points that are absent, with the CANN version that brings each, and what it costs
	Emulated bool     `json:"emulated"` // the runtime says of itself that it is no hardware
	Fixed    string   `json:"fixed"`    // whether kernels that are not passed the state find it at the fixed address, and why not
}

// Device is one accelerator. All methods may be called from any goroutine and thread; each sets the device on the thread it
// runs on. Work given to a stream runs later, in the stream's order; an error of it is reported by the next Wait of that stream.
// Errors carry the runtime's own words.
type Device interface {
	Facts() Facts

	// NewHeap reserves address space for the symmetric heap of n PEs and makes this PE's part real and zero.
	NewHeap(bytes uint64, me, n int) (Heap, error)
	// Alloc is plain memory of this device, zero; Free ends it. Free(0) does nothing.
	Alloc(bytes uint64) (uintptr, error)
	Free(at uintptr) error
	// AllocHost is pinned host memory that the device can reach; the CPU may follow its address.
	AllocHost(bytes uint64) (uintptr, error)
	FreeHost(at uintptr) error
	// Register lets this device's kernels reach host memory that the caller has mapped, and gives the address under which they do; copies
	// go on taking the host's own. at and bytes are whole pages. The memory is locked, all of it, until Unregister, which comes before
	// it is unmapped and after all work that uses it; Close ends what is left. Where chip, runtime or kernel cannot, it fails and says why.
	Register(at uintptr, bytes uint64) (uintptr, error)
	Unregister(at uintptr) error
	// Locked says whether host memory is locked for copies, so that they are queued and not done during the call: that of AllocHost is, that of
	// Register where the runtime can.
	Locked(at uintptr) bool
	// AllocAt is Alloc at an address of the caller's choice, for the one that kernels know. Where the chip or the runtime does
	// not let it choose, or the place is taken, it fails, and Facts says why. Free ends it.
	AllocAt(bytes uint64, at uintptr) (uintptr, error)

	// Holds says whether an address is memory of this device (own, mapped of a peer, or any other that its runtime gave out).
	Holds(at uintptr) bool

	// Copy queues n bytes from src to dst, each of them device memory (a peer's mapped part included) or host memory.
	// Host memory must stay until the copy is waited for, unless it is pageable: then the call returns when it was read or written,
	// so it waits for the stream's earlier work, without a deadline. Who needs one copies from or to AllocHost memory and waits.
	Copy(dst, src uintptr, n uint64, s Stream) error
	// Clear queues n zero bytes.
	Clear(dst uintptr, n uint64, s Stream) error
	// Launch queues a kernel of kernels/include/kernel_table.def with its arguments, the state's address first. blocks 0 lets the device choose.
	// It fails at once when there is no library of kernels, the kernel is unknown, or the number of arguments is not the table's.
	Launch(kernel string, blocks int, s Stream, args ...uint64) error
	// Call queues a host function: it runs on a thread of the runtime when the stream comes to it. It must not call the device.
	Call(s Stream, f func()) error
	// Wait returns when all work queued to the stream is done, or ctx ends; it gives the first failure of that work.
	Wait(ctx context.Context, s Stream) error

	NewStream() (Stream, error)
	FreeStream(Stream) error
	// Record marks the present end of stream s; WaitFor makes stream s wait for the mark; FreeMark ends it.
	Record(s Stream) (Mark, error)
	WaitFor(s Stream, m Mark) error
	FreeMark(Mark) error

	// Close ends what this package made. It never finalizes a runtime that somebody else may use.
	Close() error
}

// Mark is a point in a stream (an aclrtEvent).
type Mark uintptr

// Heap is the symmetric heap on a device: this PE's memory, and the peers' as mapped here.
type Heap interface {
	memory.Region // Kind is Device; Commit checks bounds only: the memory is there
	// Base is where a PE's heap begins in this process, 0 when it is not mapped; one's own is always there.
	Base(pe int) uintptr
	// Card is what a peer needs to map this PE's part: opaque, safe to send, bound to this process.
	Card() []byte
	// Admit lets a peer map this PE's part, where the runtime keeps a list of who may. Call it for every peer's card, meet all
	// PEs, then Map.
	Admit(pe int, card []byte) error
	// Map maps a peer's part. An error says why the peer is out of reach; the heap stays usable without it.
	Map(pe int, card []byte) error
	// Unmap ends the mapping of a peer, before its owner frees the memory. Closing unmaps all.
	Unmap(pe int) error
}

// State is the struct in device memory that kernels find PEs, teams and the abort word through (kernels/include/device/shmem_state.h).
type State interface {
	// Address is the first argument of every kernel.
	Address() uintptr
	// SetTeam fills entry index: members[i] is the world PE of rank i, me this PE's rank, -1 when it is none of them.
	// All members call it and meet before any of them launches a kernel of the team; no kernel of its index may be running.
	SetTeam(index int, members []int, me int) error
	// ClearTeam ends an entry. No kernel of the team may be running.
	ClearTeam(index int) error
	// Abort ends every wait of every running kernel: a PE died, a timeout, or abort(). Works while kernels run. reason is not 0.
	// It stays: kernels that start later do not wait either.
	Abort(reason int32) error
	// StopTeam ends the waits of one team's kernels; with signals, waits for single signals on its behalf as well. Works while kernels run, and
	// stays until SetTeam. TeamStopped says whether a wait has ended because of it; of a team that is not set, false.
	StopTeam(index int, signals bool) error
	TeamStopped(index int) (bool, error)
	// Resume lets kernels wait again. The aborted ones must have ended, on all PEs. What their barriers knew is lost: meet, then call
	// Resume and SetTeam for each team that goes on, on all its members, and meet again.
	Resume() error
	// Refresh tells kernels which peers are mapped now. No kernel may be running.
	Refresh() error
	Close() error
}
