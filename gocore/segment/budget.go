package segment

import (
	"fmt"
	"math"
	"strings"
	"time"

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

// checkBudget refuses need bytes that do not fit below some limit. spare is how much would be left below the tightest.
func checkBudget(b Budget, pe int, need uint64) (spare uint64, err error) {
	limits := b.Limits()
	for i, l := range limits {
		if l.Free < reserve(l) || need > l.Free-reserve(l) {
			return 0, status.At(status.NoMemory, "commit memory", pe, "%s needed, but %s has only %s free, %s of which are kept in reserve; seen: %s; %s",
				bytesText(need), l.Name, bytesText(l.Free), bytesText(reserve(l)), limitsText(limits), l.Knob)
		}
		if left := l.Free - reserve(l) - need; i == 0 || left < spare {
			spare = left
		}
	}
	return spare, nil
}

// Reading the limits takes longer than committing a few pages, so one look serves small commits that follow it closely: for
// lookTime, and for a small part of what it saw free.
const (
	lookTime = 20 * time.Millisecond
	lookPart = 32
)

// allowance is what the last look still serves.
type allowance struct {
	until time.Time
	bytes uint64
}

// afford looks at the budget unless the last look covers it; s.mu is held.
func (s *Segment) afford(need uint64) error {
	if need <= s.look.bytes && time.Now().Before(s.look.until) {
		s.look.bytes -= need
		return nil
	}
	spare, err := checkBudget(s.budget, s.Me, need)
	s.look = allowance{time.Now().Add(lookTime), spare / lookPart}
	return err
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
