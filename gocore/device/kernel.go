package device

import (
	"fmt"
	"strings"

	"goshmem/gocore/status"
)

// Kernel is one kernel as host and device know it: its name, and the names of its arguments behind the state's address.
type Kernel struct {
	Name string
	Args []string
}

// FindKernel looks a kernel up in the table that is made of kernels/include/kernel_table.def.
func FindKernel(name string) (Kernel, bool) {
	for _, k := range kernelTable {
		if k.Name == name {
			return k, true
		}
	}
	return Kernel{}, false
}

// Check says whether args, the state's address first, are as many as the kernel takes.
func (k Kernel) Check(args []uint64) error {
	if len(args) == len(k.Args)+1 {
		return nil
	}
	return status.New(status.InvalidArgument, "launch "+k.Name, "%d arguments, it takes the state and %s", len(args), strings.Join(k.Args, ", "))
}

// The most blocks that Blocks gives, below the vector cores of every chip so that PEs on different ones agree, and the bytes that are
// worth another block: below, a block costs more than it moves.
const (
	mostBlocks = 16
	blockBytes = 64 << 10
)

// Blocks is the number of blocks for a launch that leaves it open: one for each 64 KiB that the kernel moves, at least 1, at most 16
// and never more than cores. It depends on the arguments only, so all PEs of a collective choose alike.
func (k Kernel) Blocks(args []uint64, cores int) int {
	n := min((k.bytes(args)+blockBytes-1)/blockBytes, mostBlocks, uint64(max(cores, 1)))
	return int(max(n, 1))
}

// bytes is about how much one PE moves: the product of the arguments that are sizes and counts. A count of elements alone counts 4
// bytes each.
func (k Kernel) bytes(args []uint64) uint64 {
	product, sized, counted := uint64(1), false, false
	for i, name := range k.Args {
		switch name {
		case "bytes", "elem_bytes", "block_bytes", "token_bytes":
			sized = true
		case "count", "move_count", "token_count", "topk", "hidden", "m", "n":
			counted = true
		default:
			continue
		}
		product = limited(product, args[i+1])
	}
	switch {
	case sized:
		return product
	case counted:
		return limited(product, 4)
	}
	return 0
}

// limited is a*b, or more than any launch needs to know when that does not fit.
func limited(a, b uint64) uint64 {
	const enough = mostBlocks * blockBytes
	if a != 0 && b > enough/a {
		return enough
	}
	return a * b
}

// String is the kernel as a declaration.
func (k Kernel) String() string {
	return fmt.Sprintf("%s(%s)", k.Name, strings.Join(append([]string{"state"}, k.Args...), ", "))
}
