package world

import "sync"

// maxIndexes is how many teams can have a number on a device (kernels/include/device/shmem_state.h: GSHMEM_MAX_TEAMS).
const maxIndexes = 2048

// noIndex is the bid of a member that has no number left; a team whose members agree on it does without kernels.
const noIndex = maxIndexes

// indexes gives out numbers of teams on devices. Members of a team agree on one as they do on blocks: each takes the lowest that is free
// here at or above the highest bid so far, until all bids are equal. A number is used again when no member
// uses the team any more. Number 0 is the world team's.
type indexes struct {
	mu   sync.Mutex
	used [maxIndexes]bool // guarded by mu
}

// take gives the lowest free number at or above atLeast and above 0, or noIndex.
func (x *indexes) take(atLeast uint32) uint32 {
	x.mu.Lock()
	defer x.mu.Unlock()
	for i := max(atLeast, 1); i < maxIndexes; i++ {
		if !x.used[i] {
			x.used[i] = true
			return i
		}
	}
	return noIndex
}

// drop gives back a number that no team got.
func (x *indexes) drop(i uint32) {
	if i == 0 || i >= maxIndexes {
		return
	}
	x.mu.Lock()
	defer x.mu.Unlock()
	x.used[i] = false
}

// bidding is one member's part in agreeing on a number.
type bidding struct {
	of  *indexes
	bid uint32
}

func (b *bidding) first(of *indexes) {
	b.of = of
	b.bid = of.take(0)
}

// settle looks at all bids, the own included: true when they are equal, else it makes a higher one.
func (b *bidding) settle(bids []uint32) bool {
	highest, equal := b.bid, true
	for _, v := range bids {
		highest, equal = max(highest, v), equal && v == b.bid
	}
	if equal {
		return true
	}
	if highest != b.bid {
		b.of.drop(b.bid)
		b.bid = b.of.take(highest)
	}
	return false
}

// giveUp forgets the bid.
func (b *bidding) giveUp() {
	if b.of != nil {
		b.of.drop(b.bid)
	}
	b.of = nil
}

// index is the number agreed on, -1 when there was none.
func (b *bidding) index() int {
	if b.bid >= maxIndexes {
		return -1
	}
	return int(b.bid)
}
