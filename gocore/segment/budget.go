package segment

import (
	"fmt"
	"math"
	"strings"

	"goshmem/gocore/status"
)

// Limit is one bound on memory: what it is, how large, and how much is free below it.
type Limit struct {
	Name string // "free memory of the machine", "cgroup /a/b"
	Knob string // what a person turns to raise it
	Size uint64
	Free uint64
}

// Budget tells what bounds the memory of this process. Tests inject their own.
type Budget interface {
	// Limits lists every bound that could be read; an empty list means that nothing is known, and nothing is refused.
	Limits() []Limit
}

// reserve is kept free below every limit for page tables, stacks and neighbours.
func reserve(l Limit) uint64 { return min(64<<20, l.Size/64) }

// checkBudget refuses need bytes that do not fit below some limit.
func checkBudget(b Budget, pe int, need uint64) error {
	limits := b.Limits()
	for _, l := range limits {
		if l.Free < reserve(l) || need > l.Free-reserve(l) {
			return status.At(status.NoMemory, "commit memory", pe, "%s needed, but %s has only %s free, %s of which are kept in reserve; seen: %s; %s",
				bytesText(need), l.Name, bytesText(l.Free), bytesText(reserve(l)), limitsText(limits), l.Knob)
		}
	}
	return nil
}

func describeBudget(b Budget) string { return limitsText(b.Limits()) }

func limitsText(limits []Limit) string {
	if len(limits) == 0 {
		return "free memory and limits are unknown here"
	}
	parts := make([]string, len(limits))
	for i, l := range limits {
		size := "no limit"
		if l.Size != math.MaxUint64 {
			size = "of " + bytesText(l.Size)
		}
		parts[i] = fmt.Sprintf("%s: %s free %s", l.Name, bytesText(l.Free), size)
	}
	return strings.Join(parts, ", ")
}
