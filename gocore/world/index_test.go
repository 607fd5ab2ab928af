package world

import (
	"math/rand"
	"testing"

	"github.com/stretchr/testify/require"
)

// Members with different histories come to one number that is free for all, whoever else bids meanwhile.
func TestBidsForNumbersMeet(t *testing.T) {
	r := rand.New(rand.NewSource(1))
	for range 200 {
		n := 1 + r.Intn(5)
		of := make([]indexes, n)
		for i := range of {
			for range r.Intn(40) {
				of[i].used[1+r.Intn(60)] = true
			}
		}
		members := make([]bidding, n)
		for i := range members {
			members[i].first(&of[i])
		}
		rounds := 0
		for done := false; !done; rounds++ {
			require.Less(t, rounds, 64)
			bids := make([]uint32, n)
			for i := range members {
				bids[i] = members[i].bid
			}
			for i := range members {
				done = members[i].settle(bids)
			}
			of[r.Intn(n)].take(0) // another team of one of them is being made
		}
		for i := range members {
			require.Equal(t, members[0].index(), members[i].index())
			require.True(t, of[i].used[members[i].index()])
		}
	}
}

func TestNumbersRunOutForAllAlike(t *testing.T) {
	of := make([]indexes, 2)
	for i := 1; i < maxIndexes; i++ {
		require.EqualValues(t, i, of[0].take(0))
	}
	require.EqualValues(t, noIndex, of[0].take(0))
	a, b := bidding{}, bidding{}
	a.first(&of[0])
	b.first(&of[1])
	for {
		bids := []uint32{a.bid, b.bid}
		if one, other := a.settle(bids), b.settle(bids); one && other {
			break
		}
	}
	require.Equal(t, -1, a.index())
	require.Equal(t, -1, b.index())
	require.False(t, of[1].used[1], "its bid is free again")
	a.giveUp()
	of[0].drop(7)
	require.EqualValues(t, 7, of[0].take(0))
}

// Words of any length reach all members, and all find the end in the same round.
func TestPostsOfUnequalLengthArriveWhole(t *testing.T) {
	long := make([]byte, 3000)
	for i := range long {
		long[i] = 'a' + byte(i%26)
	}
	texts := []string{"", "x", string(long), string(long[:sayBytes-postHead-2])}
	posts := make([]*post, len(texts))
	for i, s := range texts {
		posts[i] = newPost(len(texts), hello{Trouble: s})
	}
	for rounds := 0; ; rounds++ {
		require.Less(t, rounds, 100)
		replies := make([][]byte, len(posts))
		for i, p := range posts {
			replies[i] = p.say()
		}
		first := posts[0].take(replies)
		for _, p := range posts[1:] {
			require.Equal(t, first, p.take(replies))
		}
		if first {
			break
		}
	}
	for _, p := range posts {
		for pe, s := range texts {
			var h hello
			require.NoError(t, p.read(pe, &h))
			require.Equal(t, s, h.Trouble)
		}
	}
}
