package world

import (
	"goshmem/gocore/coll"
	"goshmem/gocore/status"
)

// In an uneven all-to-all only two members know the size of a part. Each tells every other how much it will send, and compares what it is
// told with what it expects: in a ring per sender, beside the box of the team.

const (
	pairKept  = 8
	pairBytes = 16 // number and check, bytes
)

// pairing is what a member expects of the others; guarded by the team's streamMu.
type pairing struct {
	last     uint32
	seq      [pairKept]uint32 // of the collective each belongs to
	expected [pairKept][]uint64
	seen     []uint32 // by rank
}

// AnnounceExchange is AnnounceOnStream for an uneven all-to-all in which this PE sends sent[i] bytes to rank i and takes taken[i] from it.
func (t *Team) AnnounceExchange(dtype int, sent, taken []uint64) error {
	const op = "all_to_all_v_on_stream"
	if len(sent) != len(t.pes) || len(taken) != len(t.pes) {
		return status.New(status.InvalidArgument, op, "%d and %d sizes; %s has %d members", len(sent), len(taken), t.name(), len(t.pes))
	}
	if sent[t.me] != taken[t.me] {
		return status.New(status.InvalidArgument, op, "this PE sends %d bytes to itself and takes %d", sent[t.me], taken[t.me])
	}
	return t.announce(coll.Call{Op: coll.AllToAllV, DType: dtype}, WaySteps, func() {
		p := &t.agree.pairs
		if p.seen == nil {
			p.seen = make([]uint32, len(t.pes))
		}
		p.last++
		p.seq[p.last%pairKept], p.expected[p.last%pairKept] = t.agree.last+1, append([]uint64(nil), taken...)
		for rank, pe := range t.pes {
			if rank != t.me {
				off := t.places[rank].pairs + (uint64(t.me)*pairKept+uint64(p.last%pairKept))*pairBytes
				t.w.leaveWords(pe, off, []uint64{headWord(p.last, sent[rank:rank+1]), sent[rank]})
			}
		}
	})
}

// comparePairsLocked compares what others have told of their parts by now with what is expected here. t.streamMu is held.
func (t *Team) comparePairsLocked(x *accelerator) error {
	p := &t.agree.pairs
	for rank := range p.seen {
		for rank != t.me && !t.agree.ended && p.seen[rank] != p.last {
			next := p.seen[rank] + 1
			off := t.own.pairs + (uint64(rank)*pairKept+uint64(next%pairKept))*pairBytes
			head, bytes := loadWord(t.w.seg.Bytes()[off:]), loadWord(t.w.seg.Bytes()[off+8:])
			theirs := uint32(head >> 32)
			if head != headWord(theirs, []uint64{bytes}) || int32(theirs-next) < 0 {
				break // not told yet
			}
			p.seen[rank] = next
			if theirs != next || p.last-next >= pairKept {
				continue // too old to be compared
			}
			if want := p.expected[next%pairKept][rank]; want != bytes {
				return t.denounce(x, status.At(status.Mismatch, "all_to_all_v", t.pes[rank],
					"the members of %s differ in the sizes of collective %d on their devices: PE %d sends %d bytes to PE %d, which takes %d from it. What one sends is what the other takes",
					t.name(), p.seq[next%pairKept], t.pes[rank], bytes, t.w.me, want))
			}
		}
	}
	return nil
}
