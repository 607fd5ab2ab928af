package plan

import "fmt"

// direct: every buffer a peer touches is symmetric. One pass over the data, one meeting.
func (b *builder) direct() error {
	own, me := b.Me, uint64(b.Me)
	switch b.Op {
	case AllReduce:
		off, n := b.slice(b.Len, own)
		b.fold(n, here(In, All, off), here(In, own, off), here(Out, All, off), Place{})
		b.meet(1)
	case Reduce:
		off, n := b.slice(b.Len, own)
		b.fold(n, here(In, All, off), here(In, own, off), here(Out, b.Root, off), Place{})
		b.meet(1)
	case ReduceScatter:
		b.fold(b.Len, here(In, All, me*b.Pitch), here(In, own, me*b.Pitch), here(Out, own, 0), Place{})
		b.meet(1)
	case AllGather:
		b.copy(b.Len, here(In, own, 0), here(Out, own, me*b.Pitch))
		for _, r := range b.others() {
			b.copy(b.Len, here(In, r, 0), here(Out, own, uint64(r)*b.Pitch))
		}
		b.meet(1)
	case AllToAll:
		b.copy(b.Len, here(In, own, me*b.Pitch), here(Out, own, me*b.Pitch))
		for _, r := range b.others() {
			b.copy(b.Len, here(In, r, me*b.Pitch), here(Out, own, uint64(r)*b.Pitch))
		}
		b.meet(1)
	case Broadcast:
		b.directBroadcast()
	case Gather:
		b.copy(b.Len, here(In, own, 0), here(Out, b.Root, me*b.Pitch))
		b.toRoot(1)
	case Scatter:
		b.copy(b.Len, here(In, b.Root, me*b.Pitch), here(Out, own, 0))
		b.toRoot(1)
	default:
		return fmt.Errorf("plan: operation %d has no direct plan", b.Op)
	}
	return nil
}

// toRoot: everybody tells the root that it is done, the root waits for that.
func (b *builder) toRoot(phase uint32) {
	if b.Me == b.Root {
		b.await(phase, All)
	} else {
		b.notify(phase, b.Root)
	}
}

// directBroadcast: every member brings one slice from the root to all others, so the copying is shared evenly.
func (b *builder) directBroadcast() {
	off, n := b.slice(b.Len, b.Me)
	src := here(In, b.Root, off)
	if b.Me == b.Root {
		b.copy(b.Len, here(In, b.Me, 0), here(Out, b.Me, 0))
	} else {
		b.copy(n, src, here(Out, b.Me, off))
		src = here(Out, b.Me, off)
	}
	for _, r := range b.others() {
		if r != b.Root {
			b.copy(n, src, here(Out, r, off))
		}
	}
	b.meet(1)
}

// slab: small data, of which some is not in its member's slab yet. After everybody has put it there, everybody reads; the slab's
// two halves take turns, so nobody waits at the end.
func (b *builder) slab() error {
	own, me := b.Me, uint64(b.Me)
	n := b.Len
	switch b.Op {
	case ReduceScatter, AllToAll, Scatter:
		n = b.Pitch * uint64(b.N)
	case AllGatherV:
		n = b.Counts[own]
	}
	rooted := b.Op == Broadcast || b.Op == Scatter
	if !rooted || own == b.Root {
		b.copy(n, here(In, own, 0), here(Stage, own, 0))
	}
	b.meet(1)
	switch b.Op {
	case AllReduce:
		b.fold(b.Len, here(Stage, All, 0), here(Stage, own, 0), here(Out, own, 0), Place{})
	case Reduce:
		if own == b.Root {
			b.fold(b.Len, here(Stage, All, 0), here(Stage, own, 0), here(Out, own, 0), Place{})
		}
	case ReduceScatter:
		b.fold(b.Len, here(Stage, All, me*b.Pitch), here(Stage, own, me*b.Pitch), here(Out, own, 0), Place{})
	case Broadcast:
		b.copy(b.Len, here(Stage, b.Root, 0), here(Out, own, 0))
	case Scatter:
		b.copy(b.Len, here(Stage, b.Root, me*b.Pitch), here(Out, own, 0))
	default:
		return b.slabCollect()
	}
	return nil
}

// slabCollect: the result is everybody's pieces side by side.
func (b *builder) slabCollect() error {
	at := uint64(0)
	for r := range b.N {
		src := here(Stage, r, 0)
		switch b.Op {
		case AllGather:
			b.copy(b.Len, src, here(Out, b.Me, uint64(r)*b.Pitch))
		case Gather:
			if b.Me == b.Root {
				b.copy(b.Len, src, here(Out, b.Me, uint64(r)*b.Pitch))
			}
		case AllToAll:
			src.Off = uint64(b.Me) * b.Pitch
			b.copy(b.Len, src, here(Out, b.Me, uint64(r)*b.Pitch))
		case AllGatherV:
			b.copy(b.Counts[r], src, here(Out, b.Me, at))
			at += b.Counts[r]
		default:
			return fmt.Errorf("plan: operation %d has no slab plan", b.Op)
		}
	}
	return nil
}
