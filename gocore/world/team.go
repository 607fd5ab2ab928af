package world

import (
	"encoding/binary"
	"fmt"
	"hash/fnv"
	"sync"
	"sync/atomic"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/device"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/message"
	"goshmem/gocore/status"
	"goshmem/gocore/team"
)

// What an exchange is about; a part of what must agree, so a member that allocates while another splits gets an error.
const (
	kindAlloc = iota + 1
	kindCollect
	kindFree
	kindSplit
	kindSplit2D
	kindDevice
	kindHost
)

// Team is an ordered set of PEs with collectives, messages and allocations of its own. Its methods may be called from
// any goroutine; operations of one team run in the order they were started.
type Team struct {
	w      *World
	set    team.Set
	pes    []int
	me     int // rank
	id     string
	coll   *coll.Team
	msg    *message.Messenger
	lane   *lane
	own    place              // this PE's control block and message area
	places []place            // every member's
	inner  *message.Messenger // of the world team: messages that users do not see
	index  int                // its number on devices, the same on all members; -1: none was left
	placed atomic.Bool        // kernels know it
	gate   gate               // who is at work in its tables and its lane; Destroy waits for them

	streamMu sync.Mutex    // held while a kernel of the team is queued
	agree    agreement     // guarded by streamMu
	stream   device.Stream // where the last one was queued; guarded by w.teamMu, as what follows
	kernels  uint64        // how many were queued,
	ended    uint64        // and how many of these have surely ended
	single   uint64        // number of the last wait for a signal on its behalf
	singles  []underway    // those that may not have ended, the last of each stream
	stop     stopping
	said     uint64 // what the members were told of this one (saidLeft ...)

	live   []*Block // symmetric blocks not reclaimed, in order of allocation, the same list on all members; guarded by w.blocks.mu
	cursor int      // where the next window of live begins; guarded by w.blocks.mu
}

// place is where one member keeps a team's shared words, as offsets in its segment.
type place struct {
	control, area, left, box, pairs uint64
}

// placeBytes is what a member sets aside for a team of n: control block, message area, a word for each member that has destroyed it, and
// what the others tell it of collectives on devices.
func placeBytes(n int) uint64 { return placeAt(0, n).pairs + pairBytes*pairKept*uint64(n) }

// layTeam sets memory aside for a team of n members.
func (w *World) layTeam(n int) (place, error) {
	off, _, err := w.scratch.Alloc(placeBytes(n))
	if err != nil {
		return place{}, err
	}
	return placeAt(off, n), nil
}

func placeAt(off uint64, n int) place {
	left := off + layout.ControlSize(n) + message.AreaSize(n)
	box := left + (8*uint64(n)+127)&^127
	return place{control: off, area: off + layout.ControlSize(n), left: left, box: box, pairs: box + boxBytes}
}

// World is the world of the team, Handle what C callers find it by, Me this PE's rank, N the size.
func (t *Team) World() *World { return t.w }

// Me is this PE's rank.
func (t *Team) Me() int { return t.me }

// N is the number of members.
func (t *Team) N() int { return len(t.pes) }

// Handle is what C callers find the team by.
func (t *Team) Handle() uint64 { return t.coll.Handle() }

func (t *Team) name() string { return t.id }

// SetTimeout sets the default of the team's operations; negative: none, Default: the world's. It fails when the team or its world has ended.
func (t *Team) SetTimeout(timeout int64) error {
	if err := t.hold("team_set_timeout"); err != nil {
		return err
	}
	defer t.exit()
	if timeout == Default {
		timeout = int64(t.w.timeout)
	}
	t.coll.SetTimeout(timeout)
	return nil
}

// Health is what poisoned the team, on the host or on the device, nil while it works.
func (t *Team) Health() error {
	if err := t.hold("team_health"); err != nil {
		return err
	}
	defer t.exit()
	if err := t.coll.Health(); err != nil {
		return err
	}
	if x := t.w.device(); x.hasKernels() {
		return x.missed(t)
	}
	return nil
}

// Translate is the rank in `to` of rank pe, -1 when it is no member.
func (t *Team) Translate(pe int, to *Team) (int, error) {
	if t.w != to.w {
		return -1, status.New(status.InvalidArgument, "team_translate", "the teams belong to different worlds")
	}
	return team.Translate(t.set, pe, to.set)
}

// talk starts a conversation in the team's lane.
func (t *Team) talk(kind uint64, timeout int64, slice time.Duration, k *talk) (*Request, error) {
	if err := t.enter(kindNames[kind]); err != nil {
		return nil, err
	}
	defer t.exit()
	k.t, k.op, k.began, k.deadline = t, kindNames[kind], hot.Now(), t.deadline(timeout)
	if kind != kindSplit && kind != kindSplit2D && kind != kindDevice && kind != kindHost {
		k.calm = &calm{w: t.w} // what was put before is there before memory changes hands
	}
	k.open = func(say []byte) (exchange, error) { return t.coll.Exchange(k.op, kind, say, k.deadline) }
	return t.w.start(t.lane, k, How{}, slice), nil
}

var kindNames = [...]string{kindAlloc: "alloc", kindCollect: "collect", kindFree: "free", kindSplit: "team_split_strided", kindSplit2D: "team_split_2d", kindDevice: "device_open", kindHost: "device_reach_host"}

func (t *Team) deadline(timeout int64) int64 {
	if timeout == Default {
		timeout = t.coll.Timeout()
	}
	return deadlineAfter(timeout)
}

// SplitStrided makes the team of ranks start, start+stride, ... Collective over t. The func gives the new team, nil on non-members.
func (t *Team) SplitStrided(start, stride, size int, timeout int64, slice time.Duration) (*Request, func() []*Team, error) {
	s := &splitting{t: t, op: "team_split_strided", asked: [4]int64{int64(start), int64(stride), int64(size)}}
	set, err := team.Strided(t.set, start, stride, size)
	if err != nil {
		return nil, nil, err
	}
	s.sets = []team.Set{set}
	r, err := t.talk(kindSplit, timeout, slice, &talk{first: s.first, next: s.next, undo: s.undo})
	return r, func() []*Team { return s.made }, err
}

// Split2D makes this PE's row of xrange ranks and its column. Collective over t.
func (t *Team) Split2D(xrange int, timeout int64, slice time.Duration) (*Request, func() []*Team, error) {
	row, column, err := team.Grid(t.set, xrange, t.me)
	if err != nil {
		return nil, nil, err
	}
	s := &splitting{t: t, op: "team_split_2d", asked: [4]int64{int64(xrange)}, sets: []team.Set{row, column}}
	r, err := t.talk(kindSplit2D, timeout, slice, &talk{first: s.first, next: s.next, undo: s.undo})
	return r, func() []*Team { return s.made }, err
}

// splitting is one member's part in making teams out of a parent: one exchange of what is asked and where the members'
// new control blocks are.
type splitting struct {
	t      *Team
	op     string
	asked  [4]int64
	sets   []team.Set
	places []uint64 // offsets, 0 where this PE is no member
	marks  []bidding
	err    error
	made   []*Team
	placed bool // the last round: are the teams in place on all devices?
}

const (
	splitPlaces  = 32 // two u64
	splitStatus  = 48 // i32
	splitIndexes = 56 // two u32: bids for the numbers on devices, 0 of who is no member
	splitDevice  = 64 // 1: kernels run here
)

func (s *splitting) first() []byte {
	s.t.w.device().judged()
	s.t.w.sweep() // numbers of teams that have ended come back
	say := make([]byte, sayBytes)
	for i, v := range s.asked {
		binary.LittleEndian.PutUint64(say[8*i:], uint64(v))
	}
	s.places, s.marks = make([]uint64, len(s.sets)), make([]bidding, len(s.sets))
	for i, set := range s.sets {
		if !set.Contains(s.t.w.me) {
			continue
		}
		off, _, err := s.t.w.scratch.Alloc(placeBytes(set.Size()))
		if err != nil {
			s.err = err
			binary.LittleEndian.PutUint32(say[splitStatus:], uint32(int32(status.Of(err))))
			break
		}
		s.places[i] = off
		s.marks[i].first(&s.t.w.marks)
	}
	return s.sayPlaces(say)
}

func (s *splitting) sayPlaces(say []byte) []byte {
	for i, off := range s.places {
		binary.LittleEndian.PutUint64(say[splitPlaces+8*i:], off)
		binary.LittleEndian.PutUint32(say[splitIndexes+4*i:], s.marks[i].bid)
	}
	if s.t.w.device().hasKernels() {
		say[splitDevice] = 1
	}
	return say
}

// settle goes on bidding until, for each of the teams, all members of the parent that have a part in it name one number. All see the
// same bids, so all stop in the same round.
func (s *splitting) settle(replies [][]byte) bool {
	done := true
	for i := range s.sets {
		var bids []uint32
		lowest, highest := uint32(noIndex), uint32(0)
		for _, r := range replies {
			if v := binary.LittleEndian.Uint32(r[splitIndexes+4*i:]); v != 0 {
				bids = append(bids, v)
				lowest, highest = min(lowest, v), max(highest, v)
			}
		}
		done = done && lowest >= highest
		if s.places[i] != 0 {
			s.marks[i].settle(bids)
		}
	}
	return done
}

func (s *splitting) undo() {
	for i := range s.marks {
		s.marks[i].giveUp()
	}
	for _, t := range s.made {
		if t != nil {
			_ = t.Destroy() // it is no world team
		}
	}
	s.made = nil
	for i, off := range s.places {
		if off != 0 {
			s.t.w.scratch.Free(off)
			s.places[i] = 0
		}
	}
}

func (s *splitting) next(replies [][]byte) ([]byte, error) {
	if err := s.check(replies); err != nil {
		s.undo()
		return nil, err
	}
	if s.placed {
		return nil, nil
	}
	if !s.settle(replies) {
		say := make([]byte, sayBytes)
		copy(say, replies[s.t.me][:splitPlaces])
		return s.sayPlaces(say), nil
	}
	s.made = make([]*Team, len(s.sets))
	for i, set := range s.sets {
		if s.places[i] == 0 {
			continue
		}
		places := make([]place, set.Size())
		for rank, pe := range set.PEs() {
			r := replies[s.t.set.Rank(pe)]
			places[rank] = placeAt(binary.LittleEndian.Uint64(r[splitPlaces+8*i:]), set.Size())
		}
		made, err := s.t.w.newTeam(set, places, s.marks[i].index())
		if err != nil {
			return nil, err
		}
		s.made[i] = made
		s.places[i], s.marks[i].of = 0, nil // the team owns it now
	}
	for _, r := range replies {
		if r[splitDevice] == 0 {
			return nil, nil
		}
	}
	return s.place(replies[s.t.me]), nil
}

// place tells kernels of the new teams, and words a last round: no member queues a kernel before all have done so.
func (s *splitting) place(asked []byte) []byte {
	s.placed = true
	say := make([]byte, sayBytes)
	copy(say, asked[:splitPlaces])
	for _, t := range s.made {
		if t != nil && s.err == nil {
			s.err = s.t.w.device().admit(t)
		}
	}
	binary.LittleEndian.PutUint32(say[splitStatus:], uint32(int32(status.Of(s.err))))
	return say
}

func (s *splitting) check(replies [][]byte) error {
	for rank, r := range replies {
		if string(r[:splitPlaces]) != string(replies[0][:splitPlaces]) {
			return status.At(status.Mismatch, s.op, s.t.pes[rank], "it asks for %s, PE %d for %s; every member of %s must ask for the same", s.words(r), s.t.pes[0], s.words(replies[0]), s.t.name())
		}
	}
	for rank, r := range replies {
		if code := status.Code(int32(binary.LittleEndian.Uint32(r[splitStatus:]))); code != status.OK {
			if rank == s.t.me {
				return s.err
			}
			return status.At(code, s.op, s.t.pes[rank], "it has no room for another team; destroy teams or raise SHMEM_SCRATCH_SIZE there (its own error says more)")
		}
	}
	return nil
}

func (s *splitting) words(r []byte) string {
	v := func(i int) int64 { return int64(binary.LittleEndian.Uint64(r[8*i:])) }
	if s.op == "team_split_2d" {
		return fmt.Sprintf("rows of %d", v(0))
	}
	return fmt.Sprintf("start %d, stride %d, size %d", v(0), v(1), v(2))
}

// nameOf is a team's name in messages: its members.
func (w *World) nameOf(set team.Set) string {
	switch {
	case !set.Equal(w.set()):
	case w.world == nil: // it is the first that is made
		return "the world team"
	default:
		return "a team of all PEs"
	}
	return "the team of " + set.String()
}

// keyTag makes a message tag of what tells a new team apart from others that are being made.
func keyTag(set team.Set, key uint64) int64 {
	h := fnv.New64a()
	var b [16]byte
	binary.LittleEndian.PutUint64(b[:], set.Fingerprint())
	binary.LittleEndian.PutUint64(b[8:], key)
	_, _ = h.Write(b[:]) // cannot fail
	return int64(h.Sum64() >> 1)
}
