package plan

import "fmt"

// staged: some buffer is ordinary memory, so data go through the members' staging in chunks.
//
// The symmetric operations keep three places for what a member gives (chunk c lies in place c mod 3): while chunk c is worked on, c+1 is
// copied in over what was c-2, and whoever has announced c has finished with c-2.
func (b *builder) staged() error {
	switch b.Op {
	case AllReduce, Reduce:
		return b.stagedReduce()
	case ReduceScatter, AllToAll:
		return b.stagedPieces()
	case AllGather:
		return b.stagedGather(nil)
	case AllGatherV:
		return b.stagedGather(b.Counts)
	case Broadcast:
		return b.stagedBroadcast()
	case Gather:
		return b.stagedToRoot()
	case Scatter:
		return b.stagedFromRoot()
	case AllToAllV:
		return b.stagedAllToAllV()
	}
	return fmt.Errorf("plan: operation %d has no staged plan", b.Op)
}

const places = 3

// pipeline runs put(c) one chunk ahead of take(c); one phase per chunk.
func (b *builder) pipeline(count int, put, take func(c int)) {
	if count == 0 {
		return
	}
	put(0)
	b.notify(1, All)
	for c := range count {
		b.await(uint32(c+1), All)
		if c+1 < count {
			put(c + 1)
			b.notify(uint32(c+2), All)
		}
		take(c)
	}
	b.meet(uint32(count + 1))
}

// stagedReduce: each chunk is cut into one slice per member. A member stages the others' slices of its input, reduces its own slice
// of everybody's, stages the result, and copies the others' results. Staging: 3 places of a chunk, 2 of a slice.
//
// Phases: given(0)=1, then for each chunk c given(c+1)=2c+2 and reduced(c)=2c+3 (the last given is missing). Who has announced
// reduced(c-1) has copied out c-2 before it, so the result of c may overwrite that of c-2.
func (b *builder) stagedReduce() error {
	n := uint64(b.N)
	per, count, err := b.chunks((b.Len+n-1)/n, chunkBytes/n, b.Stage/(places*n+2))
	if err != nil {
		return err
	}
	s := &stagedReduction{b, per, count}
	given := func(c int) uint32 { return uint32(max(1, 2*c)) }
	reduced := func(c int) uint32 { return uint32(2*c + 3) }
	if count > 0 {
		s.give(0)
		b.notify(given(0), All)
	}
	for c := range count {
		if c+1 < count {
			s.give(c + 1)
			b.notify(given(c+1), All)
		}
		if c > 0 {
			b.await(reduced(c-1), All)
			s.collect(c - 1)
		}
		b.await(given(c), All)
		s.reduce(c)
		b.notify(reduced(c), All)
	}
	if count > 0 {
		b.await(reduced(count-1), All)
		s.collect(count - 1)
		b.meet(reduced(count))
	}
	return nil
}

type stagedReduction struct {
	*builder
	per   uint64
	count int
}

// part is what rank r reduces of chunk c.
func (s *stagedReduction) part(c, r int) (off, n uint64) {
	return clip(uint64(c)*s.per*uint64(s.N)+uint64(r)*s.per, s.per, s.Len)
}

func (s *stagedReduction) given(c, rank, r int) Place {
	return here(Stage, rank, (uint64(c%places)*uint64(s.N)+uint64(r))*s.per)
}

func (s *stagedReduction) result(c, rank int) Place {
	return here(Stage, rank, (places*uint64(s.N)+uint64(c%2))*s.per)
}

func (s *stagedReduction) give(c int) {
	for _, r := range s.others() {
		off, n := s.part(c, r)
		s.copy(n, here(In, s.Me, off), s.given(c, s.Me, r))
	}
}

func (s *stagedReduction) reduce(c int) {
	off, n := s.part(c, s.Me)
	dst, dst2 := here(Out, s.Me, off), s.result(c, s.Me)
	if s.Op == Reduce {
		if s.Me != s.Root {
			dst = dst2
		}
		dst2 = Place{}
	}
	s.fold(n, s.given(c, All, s.Me), here(In, s.Me, off), dst, dst2)
}

func (s *stagedReduction) collect(c int) {
	if s.Op == Reduce && s.Me != s.Root {
		return
	}
	for _, r := range s.others() {
		off, n := s.part(c, r)
		s.copy(n, s.result(c, r), here(Out, s.Me, off))
	}
}

// stagedPieces: ReduceScatter and AllToAll. Chunk c is the same range of every piece.
func (b *builder) stagedPieces() error {
	n := uint64(b.N)
	per, count, err := b.chunks(b.Len, chunkBytes/n, b.Stage/(places*n))
	if err != nil {
		return err
	}
	at := func(c, rank, r int) Place { return here(Stage, rank, (uint64(c%places)*n+uint64(r))*per) }
	put := func(c int) {
		off, n := clip(uint64(c)*per, per, b.Len)
		for _, r := range b.others() {
			b.copy(n, here(In, b.Me, uint64(r)*b.Pitch+off), at(c, b.Me, r))
		}
	}
	mine := uint64(b.Me) * b.Pitch
	take := func(c int) {
		off, n := clip(uint64(c)*per, per, b.Len)
		if b.Op == ReduceScatter {
			b.fold(n, at(c, All, b.Me), here(In, b.Me, mine+off), here(Out, b.Me, off), Place{})
			return
		}
		b.copy(n, here(In, b.Me, mine+off), here(Out, b.Me, mine+off))
		for _, r := range b.others() {
			b.copy(n, at(c, r, b.Me), here(Out, b.Me, uint64(r)*b.Pitch+off))
		}
	}
	b.pipeline(count, put, take)
	return nil
}

// stagedGather: AllGather and, with counts, AllGatherV. My own part is copied when it is staged: a later chunk of others may lie
// where `in` is.
func (b *builder) stagedGather(counts []uint64) error {
	longest := b.Len
	length := func(r int) uint64 { return b.Len }
	start := func(r int) uint64 { return uint64(r) * b.Pitch }
	if counts != nil {
		longest = 0
		starts := make([]uint64, b.N+1)
		for r, n := range counts {
			longest = max(longest, n)
			starts[r+1] = starts[r] + n
		}
		length = func(r int) uint64 { return counts[r] }
		start = func(r int) uint64 { return starts[r] }
	}
	per, count, err := b.chunks(longest, chunkBytes/2, b.Stage/places)
	if err != nil {
		return err
	}
	at := func(c, rank int) Place { return here(Stage, rank, uint64(c%places)*per) }
	put := func(c int) {
		off, n := clip(uint64(c)*per, per, length(b.Me))
		b.copy(n, here(In, b.Me, off), at(c, b.Me))
		b.copy(n, here(In, b.Me, off), here(Out, b.Me, start(b.Me)+off))
	}
	take := func(c int) {
		for _, r := range b.others() {
			off, n := clip(uint64(c)*per, per, length(r))
			b.copy(n, at(c, r), here(Out, b.Me, start(r)+off))
		}
	}
	b.pipeline(count, put, take)
	return nil
}
