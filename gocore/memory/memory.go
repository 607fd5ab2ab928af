// Package memory is the small interface of anything a symmetric heap can be made of.
//
// Package segment implements it for host memory (memfd, named file, Go heap); device memory implements it over a
// device's virtual-memory calls. Callers above speak to this interface and look at [Kind] only where bytes cannot be
// touched by the CPU.
package memory

import "fmt"

// Kind says who can touch the bytes of a region.
type Kind uint8

// The kinds of memory. The numbers of Host and Device are those of hot.h (HOT_KIND_*).
const (
	// Host is memory the CPU loads and stores.
	Host Kind = 1
	// Device is memory only a device reaches; Bytes is nil.
	Device Kind = 2
)

// String names the kind for messages.
func (k Kind) String() string {
	switch k {
	case Host:
		return "host"
	case Device:
		return "device"
	}
	return fmt.Sprintf("kind %d", uint8(k))
}

// Region is reserved address space whose pages become real by Commit. All methods may be called from any goroutine;
// the caller orders Commit and Decommit of overlapping ranges against use of the bytes.
type Region interface {
	Kind() Kind
	// Size is the reserved length in bytes; offsets below are within it.
	Size() uint64
	// Page is the granularity of Commit and Decommit.
	Page() uint64
	// Bytes is the whole region as the CPU sees it, nil for Device memory.
	Bytes() []byte
	// Commit makes the pages that hold [off, off+n) really there, or changes nothing and returns an error
	// that names the memory needed and what limits it. Pages that were never used, or were decommitted, read as zero.
	Commit(off, n uint64) error
	// Decommit gives back the pages that lie wholly inside [off, off+n); they read as zero afterwards.
	Decommit(off, n uint64) error
	// Close ends the owner's use. Mappings that others still hold stay.
	Close() error
}
