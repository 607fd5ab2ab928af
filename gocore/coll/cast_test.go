package coll

import (
	"fmt"
	"math"
	"math/rand"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

func cast(b []byte, count, root int) Call {
	return Call{Op: Cast, Root: root, In: addressOf(b), Out: addressOf(b), Count: uint64(count)}
}

// TestCastsInAnyOrder lets every PE run a long row of casts from changing roots, with meetings between them, at its own pace.
func TestCastsInAnyOrder(t *testing.T) {
	bothExecutors(t, func(t *testing.T, cExe bool) {
		for _, n := range []int{1, 2, 3, 5, 8} {
			rg := newRig(t, n, cExe, 1<<20)
			for _, p := range rg.pes {
				p.team.SetSeq(math.MaxUint32 - 20)
				if cExe {
					p.team.hot.SetCasts(math.MaxUint32 - 150)
				}
			}
			turns := 600
			if !cExe {
				turns = 60
			}
			errs := make([]error, n)
			rg.each(func(p *pe) {
				buf, tell := hot.NewBuffer(256).Bytes(256), f32(2)
				plan := rand.New(rand.NewSource(int64(n))) // the same on all
				for turn := 0; turn < turns && errs[p.me] == nil; turn++ {
					if plan.Intn(12) == 0 {
						errs[p.me] = p.do(allReduce(tell, tell, 2))
						continue
					}
					errs[p.me] = castOnce(p, buf, plan.Intn(hot.InlineBytes+1), plan.Intn(n), turn)
				}
			})
			for me, err := range errs {
				require.NoError(t, err, "PE %d of %d", me, n)
			}
		}
	})
}

// castOnce checks one cast: values of the turn and the root, canaries around.
func castOnce(p *pe, buf []byte, count, root, turn int) error {
	for i := range buf {
		buf[i] = 0xa5
	}
	at := buf[64:]
	for i := range count {
		if p.me == root {
			at[i] = byte(turn*31 + root*7 + i)
		}
	}
	c := cast(at, count, root)
	if err := p.do(c); err != nil {
		return fmt.Errorf("turn %d: %w", turn, err)
	}
	for i, b := range buf {
		want := byte(0xa5)
		if i >= 64 && i < 64+count {
			want = byte(turn*31 + root*7 + i - 64)
		}
		if b != want {
			return fmt.Errorf("turn %d, %d bytes from root %d: byte %d is %d, want %d", turn, count, root, i-64, b, want)
		}
	}
	return nil
}

func TestCastIsRefusedWhenTooLarge(t *testing.T) {
	rg := newRig(t, 2, !raceEnabled, 1<<20)
	require.ErrorIs(t, rg.pes[0].do(cast(make([]byte, 97), 97, 0)), status.InvalidArgument)
	require.NoError(t, rg.pes[0].team.Health())
}

// TestCastsThatDisagree: the last PE does `b`, the others `a`, again and again; all must get an error that says both sides.
func TestCastsThatDisagree(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	buf := func() []byte { return hot.NewBuffer(128).Bytes(128) }
	meet := Call{Op: Barrier, Root: -1}
	for name, c := range map[string]struct {
		a, b []Call
		say  []string // two, one on either side, for two PEs
	}{
		"size":         {[]Call{cast(buf(), 8, 0)}, []Call{cast(buf(), 9, 0)}, []string{"broadcast of 8 bytes, root 0", "broadcast of 9 bytes, root 0"}},
		"root":         {[]Call{cast(buf(), 8, 0), meet}, []Call{cast(buf(), 8, 1), meet}, []string{"they took part in different broadcasts", ""}},
		"cast or meet": {[]Call{cast(buf(), 8, 0), meet}, []Call{meet, cast(buf(), 8, 0)}, []string{"barrier", "broadcast of 8 bytes, root 0"}},
		"from others":  {[]Call{meet, cast(buf(), 8, 1)}, []Call{cast(buf(), 8, 1), meet}, []string{"barrier", ""}},
		"only casts":   {[]Call{cast(buf(), 8, 0)}, []Call{meet}, []string{"broadcast of 8 bytes, root 0", "barrier"}},
		"only to it":   {[]Call{cast(buf(), 8, 1)}, []Call{meet}, []string{"broadcast of 8 bytes, root 1", "barrier"}},
		"one more":     {[]Call{cast(buf(), 8, 0), cast(buf(), 8, 0), meet}, []Call{cast(buf(), 8, 0), meet}, []string{"barrier", ""}},
		"other face":   {[]Call{cast(buf(), 8, 0)}, []Call{meeting(buf(), 8, 0)}, []string{"broadcast of 8 bytes, root 0 (OpenSHMEM's, one way)", "broadcast of 8 bytes, root 0"}},
		"other roots":  {[]Call{cast(buf(), 8, 0), cast(buf(), 8, 1)}, []Call{cast(buf(), 8, 1), cast(buf(), 8, 0)}, []string{"", ""}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 3, 5} {
				castsDisagree(t, newRig(t, n, true, 1<<20), c.a, c.b, c.say)
			}
		})
	}
}

// meeting is the broadcast of the other faces.
func meeting(b []byte, count, root int) Call {
	c := cast(b, count, root)
	c.Op = Broadcast
	return c
}

func castsDisagree(t *testing.T, rg *rig, a, b []Call, say []string) {
	errs := make([]error, rg.n)
	began := time.Now()
	rg.each(func(p *pe) {
		calls := a
		if p.me == rg.n-1 {
			calls = b
		}
		for i := 0; errs[p.me] == nil; i++ {
			errs[p.me] = p.doWithin(calls[i%len(calls)], 100*time.Second)
		}
	})
	require.Less(t, time.Since(began), 60*time.Second)
	found := 0
	for me, err := range errs {
		if status.Of(err) == status.Mismatch {
			found++
			continue
		}
		require.ErrorIs(t, err, status.TeamPoisoned, "PE %d", me) // it came later
	}
	require.Positive(t, found)
	told := 0 // who finds out says both sides; a root that is far ahead may have forgotten
	for me, err := range errs {
		require.Error(t, rg.pes[me].team.Health())
		if strings.Contains(err.Error(), say[0]) && strings.Contains(err.Error(), say[1]) {
			told++
		}
	}
	require.True(t, told > 0 || rg.n > 2, "%v", errs)
}

func TestCastWaitsWithADeadline(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	t.Run("for the root", func(t *testing.T) {
		rg := newRig(t, 3, true, 1<<20)
		err := rg.pes[1].doWithin(cast(make([]byte, 8), 8, 2), 200*time.Millisecond)
		require.ErrorIs(t, err, status.Timeout)
		require.ErrorContains(t, err, "PEs [2] did not take part within")
		require.ErrorIs(t, rg.pes[2].do(cast(make([]byte, 8), 8, 2)), status.TeamPoisoned)
	})
	t.Run("for room", func(t *testing.T) {
		rg := newRig(t, 2, true, 1<<20)
		b := hot.NewBuffer(8).Bytes(8)
		for range layout.Casts - 1 {
			require.NoError(t, rg.pes[0].do(cast(b, 8, 0)))
		}
		err := rg.pes[0].doWithin(cast(b, 8, 0), 200*time.Millisecond)
		require.ErrorIs(t, err, status.Timeout)
		require.ErrorContains(t, err, "PEs [1] did not take part within")
	})
}

func TestCastNamesTheLost(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	for _, root := range []int{0, 2} {
		rg := newRig(t, 3, true, 1<<20)
		errs := make([]error, 3)
		rg.each(func(p *pe) {
			if p.me == 2 {
				time.Sleep(30 * time.Millisecond)
				rg.pes[0].world.MarkDead(2)
				rg.pes[1].world.MarkDead(2)
				return
			}
			for errs[p.me] == nil {
				errs[p.me] = p.do(cast(f32(2), 8, root))
			}
		})
		for _, err := range errs[:2] {
			require.ErrorIs(t, err, status.PeerDead)
			require.ErrorContains(t, err, "(PE 2)")
		}
	}
}

// TestCastAfterAMemberThatDiedInIt: a member dies while it waits for the root. That cast may still go out, the next must not.
func TestCastAfterAMemberThatDiedInIt(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	rg := newRig(t, 3, true, 1<<20)
	q, err := rg.pes[2].team.Start(cast(f32(2), 8, 0), hot.Forever)
	require.NoError(t, err)
	done, err := q.Run(hot.Now() + 1e6)
	require.NoError(t, err)
	require.False(t, done)
	rg.pes[0].world.MarkDead(2)
	for range 2 {
		if err = rg.pes[0].do(cast(f32(2), 8, 0)); err != nil {
			break
		}
	}
	require.ErrorIs(t, err, status.PeerDead)
	require.ErrorContains(t, err, "(PE 2)")
	q.GiveUp()
}

// TestALetterOfLongAgo: its number comes again after 2^32 casts; it is no letter of now, and nobody disagrees.
func TestALetterOfLongAgo(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	rg := newRig(t, 2, true, 1<<20)
	row := func(counts ...int) {
		rg.each(func(p *pe) {
			for i, count := range counts {
				require.NoError(t, castOnce(p, hot.NewBuffer(256).Bytes(256), count, 1, i))
			}
		})
	}
	row(1, 2, 3, 4, 5, 6, 7, 8)
	for _, p := range rg.pes {
		p.team.hot.SetCasts(1<<32 + 3)
	}
	b := hot.NewBuffer(8).Bytes(8)
	q, err := rg.pes[0].team.Start(cast(b, 8, 1), hot.Forever)
	require.NoError(t, err)
	done, err := q.Run(hot.Now() + 3e7) // its root is late
	require.NoError(t, err)
	require.False(t, done)
	from := hot.NewBuffer(8).Bytes(8)
	copy(from, "letter 3")
	require.NoError(t, rg.pes[1].do(cast(from, 8, 1)))
	done, err = q.Run(hot.Forever)
	require.NoError(t, err)
	require.True(t, done)
	require.Equal(t, "letter 3", string(b))
	row(1, 2, 3, 4, 5, 6, 7, 8)
}

func TestCastGivenUp(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	rg := newRig(t, 2, true, 1<<20)
	q, err := rg.pes[0].team.Start(cast(f32(2), 8, 1), hot.Forever)
	require.NoError(t, err)
	done, err := q.Run(hot.Now() + 1e6)
	require.NoError(t, err)
	require.False(t, done)
	q.GiveUp()
	err = rg.pes[1].do(cast(f32(2), 8, 1))
	require.ErrorIs(t, err, status.TeamPoisoned)
	require.ErrorContains(t, err, "PE 0")
}

// TestTheNextMeetingFindsAnotherHistory: whatever the casts before differed in, the first meeting after them fails on all.
func TestTheNextMeetingFindsAnotherHistory(t *testing.T) {
	if raceEnabled {
		t.Skip("the C executor")
	}
	same := func(times int) (row []int) {
		for range times {
			row = append(row, 8)
		}
		return row
	}
	for name, rows := range map[string][2][]int{
		"two and one of the same":      {same(2), same(1)},
		"one and two of the same":      {same(1), same(2)},
		"none and one":                 {nil, same(1)},
		"many":                         {same(41), same(40)},
		"the first size":               {{8, 16, 16, 16}, {9, 16, 16, 16}},
		"the order":                    {{8, 16, 24}, {16, 8, 24}},
		"only the last is the same":    {{1, 2, 3, 4, 5, 96}, {96}},
		"empty ones count as well":     {{0, 0, 0}, {0, 0}},
		"a row and the same row twice": {{1, 2, 3}, {1, 2, 3, 1, 2, 3}},
	} {
		t.Run(name, func(t *testing.T) {
			for _, n := range []int{2, 5} {
				rg := newRig(t, n, true, 1<<20)
				errs := make([]error, n)
				rg.each(func(p *pe) {
					row := rows[0]
					if p.me == n-1 {
						row = rows[1]
					}
					for _, count := range row {
						if errs[p.me] == nil {
							errs[p.me] = p.do(cast(hot.NewBuffer(128).Bytes(128), count, 0))
						}
					}
					if errs[p.me] == nil {
						errs[p.me] = p.doWithin(Call{Op: Sync, Root: -1}, time.Minute)
					}
				})
				for me, err := range errs {
					require.Error(t, err, "PE %d of %d", me, n)
				}
			}
		})
	}
}
