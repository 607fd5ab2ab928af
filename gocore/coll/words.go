package coll

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strings"
	"time"

	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/reduce"
	"goshmem/gocore/status"
)

// story is what is known about a collective that failed after its arrival.
type story struct {
	code            status.Code
	call            Call
	desc            hot.Desc
	seq, number     uint32 // place among the operations that meet, and among all
	fp              uint32
	culprit         int // team rank; of an abort the PE; -1
	missing         []int
	began, deadline int64
	theirs          func(rank int) (said, bool) // what another member said of the same operation
	pair            func(rank int) [4]uint64    // all_to_all_v: what it said to me
	cause           error
}

func waited(began int64) time.Duration {
	return time.Duration(hot.Now() - began).Round(time.Millisecond)
}

func (n *native) story(code status.Code) story {
	s := story{code: code, call: n.call, desc: n.c.Desc(), seq: n.c.Seq(), number: n.c.Number(), fp: n.c.FP(), culprit: n.c.Culprit(), pair: n.c.PairOf}
	s.began, s.deadline = n.c.Times()
	s.call.Counts = append([]uint64(nil), n.c.Counts()...)
	for r := range min(n.t.n, 64) {
		if n.c.Missing()>>r&1 == 1 {
			s.missing = append(s.missing, n.t.cfg.PEs[r])
		}
	}
	s.theirs = n.t.theirs(s.seq, s.number)
	return s
}

// said is a description with its place among all operations of the team; the Go executor, which has no one-way operations, knows no place.
type said struct {
	hot.Desc
	number uint32
}

// theirs reads what a member said of the operation of this number, from its block; if it said nothing of that, what it did instead of meeting seq.
func (t *Team) theirs(seq, number uint32) func(rank int) (said, bool) {
	return func(rank int) (said, bool) {
		is, ok := t.saidAt(rank, layout.Desc(t.n, int(seq&1)))
		if !t.native || !ok || is.number == number {
			return is, ok
		}
		cast, _ := t.saidAt(rank, layout.Caster(t.n)+layout.CasterSaid)
		next, _ := t.saidAt(rank, layout.Desc(t.n, int((seq+1)&1)))
		switch {
		case cast.number == number:
			return cast, true
		case next.number == number || t.arrived(rank, seq+1):
			return next, true
		case t.arrived(rank, seq) || cast.number == 0:
			return is, true
		}
		return cast, true
	}
}

// saidAt reads the description at an offset of a member's block.
func (t *Team) saidAt(rank int, off uint64) (said, bool) {
	if rank == t.cfg.Me {
		return saidOf(t.control[off : off+saidBytes]), true
	}
	if t.cfg.Mapped != nil {
		if seg := t.cfg.Mapped(t.cfg.PEs[rank]); seg != nil {
			return saidOf(seg[t.cfg.Control[rank]+off:][:saidBytes]), true
		}
	}
	if t.cfg.Transport == nil {
		return said{}, false
	}
	b := make([]byte, saidBytes)
	ctx, stop := context.WithTimeout(context.Background(), 2*time.Second)
	defer stop()
	if err := t.cfg.Transport.Get(ctx, b, t.controlOf(rank, off)); err != nil {
		return said{}, false
	}
	return saidOf(b), true
}

const saidBytes = layout.SaidNumber + 4

// saidOf reads hot_said.
func saidOf(b []byte) said {
	le := binary.LittleEndian
	d := hot.Desc{Op: le.Uint32(b), DType: le.Uint32(b[4:]), RedOp: le.Uint32(b[8:]), Root: int32(le.Uint32(b[12:])), Count: le.Uint64(b[16:]), Extra: le.Uint64(b[24:])}
	return said{d, le.Uint32(b[layout.SaidNumber:])}
}

// failure words a collective's end.
func (t *Team) failure(s story) error {
	op := OpName(s.call.Op)
	if s.call.Op == exchangeOp {
		op = t.topic(uint64(s.call.RedOp))
	}
	which := fmt.Sprintf("operation %d of %s", s.number, t.cfg.Name)
	pe := -1
	if s.culprit >= 0 && s.culprit < t.n {
		pe = t.cfg.PEs[s.culprit]
	}
	switch s.code {
	case status.Mismatch:
		if err := t.condemned(s.code, op, s.culprit); err != nil {
			return err
		}
		return status.At(s.code, op, pe, "%s: %s; every member must call the same. The team cannot be used any more, other teams can", which, t.difference(s))
	case status.Timeout:
		return status.New(s.code, op, "%s: PEs %v did not take part within %v (limit %v); %s cannot be used any more. Raise SHMEM_TIMEOUT or the timeout given if they are only slow",
			which, s.missing, waited(s.began), time.Duration(s.deadline-s.began).Round(time.Millisecond), t.cfg.Name)
	case status.PeerDead, status.PeerLeft:
		what := "died"
		if s.code == status.PeerLeft {
			what = "has left the world (finalize)"
		}
		return &status.Error{Code: s.code, Op: op, PE: pe, Detail: fmt.Sprintf("%s: it %s before it had done its part; %s cannot be used any more", which, what, t.cfg.Name), Err: s.cause}
	case status.Aborted:
		if t.cfg.Aborted != nil {
			if err := t.cfg.Aborted(); err != nil {
				return err
			}
		}
		return status.At(s.code, op, s.culprit, "%s: the job was aborted", which)
	case status.TeamPoisoned:
		return t.poisonedError(op, s.code)
	}
	return &status.Error{Code: s.code, Op: op, PE: pe, Detail: which, Err: s.cause}
}

// difference says both sides of a mismatch.
func (t *Team) difference(s story) string {
	if s.culprit < 0 || s.culprit >= t.n {
		return "members disagree"
	}
	pe := t.cfg.PEs[s.culprit]
	mine := t.describe(s.desc)
	theirs, ok := s.theirs(s.culprit)
	switch {
	case !ok:
		return fmt.Sprintf("this PE called %s, PE %d something else (it could not be asked)", mine, pe)
	case theirs.Desc != s.desc:
		return fmt.Sprintf("this PE called %s, PE %d called %s", mine, pe, t.describe(theirs.Desc))
	case t.native && theirs.number != s.number:
		return fmt.Sprintf("this PE called %s as operation %d, PE %d as operation %d", mine, s.number, pe, theirs.number)
	case t.otherHistory(s):
		return fmt.Sprintf("this PE and PE %d called %s, but before that they took part in different broadcasts of a few bytes (another root or size)", pe, mine)
	case s.call.Op == AllToAllV && len(s.call.Counts) == 4*t.n && s.pair != nil:
		return t.pairDifference(s, pe)
	}
	return t.differenceOfOthers(s, pe)
}

// differenceOfOthers says both sides when the PE that found the mismatch agrees with this one.
func (t *Team) differenceOfOthers(s story, finder int) string {
	for rank := range t.n {
		if rank == t.cfg.Me || !t.arrived(rank, s.seq) { // its block may still describe an older operation
			continue
		}
		if theirs, ok := s.theirs(rank); ok && theirs.Desc != s.desc {
			return fmt.Sprintf("this PE called %s, PE %d called %s", t.describe(s.desc), t.cfg.PEs[rank], t.describe(theirs.Desc))
		}
	}
	return fmt.Sprintf("this PE called %s, and PE %d found that others disagree with it", t.describe(s.desc), finder)
}

// otherHistory says whether the culprit met me with the same call and another past.
func (t *Team) otherHistory(s story) bool {
	f := loadWord64(t.control, layout.Arrival(t.n, int(s.seq&1), s.culprit)+layout.ArrFlag)
	return t.native && s.call.Op != Cast && t.arrived(s.culprit, s.seq) && uint32(f) != s.fp && t.hot.Casts() > 0
}

// arrived says whether a rank has arrived at operation seq, by its line in my block.
func (t *Team) arrived(rank int, seq uint32) bool {
	f := loadWord64(t.control, layout.Arrival(t.n, int(seq&1), rank)+layout.ArrFlag)
	return f != 0 && uint32(f>>32) == seq
}

func (t *Team) pairDifference(s story, pe int) string {
	r, v := s.culprit, s.call.Counts
	if r == t.cfg.Me {
		return fmt.Sprintf("this PE sends itself %d bytes and expects %d", v[r], v[2*t.n+r])
	}
	said := s.pair(r)
	if said[0] != v[2*t.n+r] {
		return fmt.Sprintf("PE %d sends %d bytes to this PE, which expects %d", pe, said[0], v[2*t.n+r])
	}
	if said[2] != v[r] {
		return fmt.Sprintf("this PE sends %d bytes to PE %d, which expects %d", v[r], pe, said[2])
	}
	return fmt.Sprintf("PE %d and another PE disagree about the sizes between them", pe)
}

// describe puts a descriptor into words.
func (t *Team) describe(d hot.Desc) string {
	var b strings.Builder
	if d.Op == exchangeOp {
		return t.topic(uint64(d.RedOp))
	}
	b.WriteString(OpName(int(d.Op)))
	switch {
	case (d.Op == Barrier || d.Op == Sync) && d.RedOp != 0: // the end of a collective made of puts
		return fmt.Sprintf("%s of %d bytes, by puts", OpName(int(d.RedOp)), d.Count)
	case d.Op == Barrier || d.Op == Sync:
		return b.String()
	case d.Op == AllToAllV:
	case d.Op == AllGatherV:
		fmt.Fprintf(&b, " with size table #%x", uint32(d.Extra))
	case d.DType != 0:
		fmt.Fprintf(&b, " of %d %s, %s", d.Count, reduce.DType(d.DType), reduce.Op(d.RedOp))
	default:
		fmt.Fprintf(&b, " of %d bytes", d.Count)
	}
	if d.Root >= 0 {
		fmt.Fprintf(&b, ", root %d", d.Root)
	}
	if d.Op == Cast {
		b.WriteString(" (OpenSHMEM's, one way)") // else it reads like the broadcast it did not pair with
	}
	return b.String()
}

func (t *Team) topic(kind uint64) string {
	if t.cfg.Topic != nil {
		return t.cfg.Topic(kind)
	}
	return fmt.Sprintf("exchange of kind %d", kind)
}

// deadError refuses an operation of a dead team.
func (t *Team) deadError(call Call, code status.Code) error {
	op := OpName(call.Op)
	t.mu.Lock()
	cause := t.cause
	t.mu.Unlock()
	if cause == nil {
		if err := t.lateDisagreement(call); err != nil {
			t.died(err)
			return err
		}
		return t.poisonedError(op, code)
	}
	switch c := status.Of(cause); c {
	case status.PeerDead, status.PeerLeft, status.Aborted:
		return cause
	}
	return status.Wrap(status.TeamPoisoned, op, cause, "%s ended", t.cfg.Name)
}

// lateDisagreement is the error of a member that comes to an operation about which others have already found that they disagree.
func (t *Team) lateDisagreement(call Call) error {
	at := layout.Poison(t.n)
	by, seq := int(int32(loadWord32(t.control, at+4))), loadWord32(t.control, at+8)
	meeting, last := t.seq+1, t.seq
	if t.native {
		meeting, last = t.hot.Seq()+1, t.hot.Number()
	}
	if status.Code(int32(loadWord32(t.control, at))) != status.Mismatch || seq != last+1 {
		return nil
	}
	return t.failure(story{code: status.Mismatch, call: call, desc: hot.CheckCall(t.n, t.cfg.Me, call).Desc, seq: meeting, number: seq, culprit: by, theirs: t.theirs(meeting, seq)})
}

// poisonedError words what another member wrote into my block.
func (t *Team) poisonedError(op string, code status.Code) error {
	at := layout.Poison(t.n)
	why := status.Code(int32(loadWord32(t.control, at)))
	by := int(int32(loadWord32(t.control, at+4)))
	seq := loadWord32(t.control, at+8)
	if err := t.condemned(code, op, by); err != nil {
		return err
	}
	if why == status.OK || by < 0 || by >= t.n {
		return status.New(code, op, "%s cannot be used any more", t.cfg.Name)
	}
	pe := t.cfg.PEs[by]
	switch why {
	case status.PeerDead, status.PeerLeft:
		return status.At(why, op, pe, "it was lost in operation %d of %s, which cannot be used any more", seq, t.cfg.Name)
	case status.Mismatch:
		return status.At(status.TeamPoisoned, op, pe, "PEs disagreed about operation %d of %s; make a new team", seq, t.cfg.Name)
	}
	return status.At(status.TeamPoisoned, op, pe, "it gave operation %d of %s up: %v; make a new team", seq, t.cfg.Name, why)
}

// condemned words what was found outside of the team's collectives, where no rank of them is at fault; nil when one is, or nothing is known.
func (t *Team) condemned(code status.Code, op string, culprit int) error {
	if culprit >= 0 || t.cfg.Condemned == nil {
		return nil
	}
	var found *status.Error
	if !errors.As(t.cfg.Condemned(), &found) {
		return nil
	}
	return status.At(code, op, found.PE, "%s; %s cannot be used any more", found.Detail, t.cfg.Name)
}

// refusal checks a call before anything has happened.
func (t *Team) refusal(call Call) error {
	if call.Op == AllGatherV && len(call.Counts) != t.n || call.Op == AllToAllV && len(call.Counts) != 4*t.n {
		return t.refusedWords(OpName(call.Op), hot.WhyCounts, status.InvalidArgument, call)
	}
	c := hot.CheckCall(t.n, t.cfg.Me, call)
	if c.Code == status.OK {
		return nil
	}
	return t.refusedWords(OpName(call.Op), c.Why, c.Code, call)
}

func (t *Team) refusedWords(op string, why int, code status.Code, call Call) error {
	switch why {
	case hot.WhyOp:
		return status.New(code, op, "there is no collective %d", call.Op)
	case hot.WhyRoot:
		return status.New(code, op, "root %d is not a rank of %s, which has %d members", call.Root, t.cfg.Name, t.n)
	case hot.WhyDType:
		return status.New(code, op, "there is no element type %d", call.DType)
	case hot.WhyRedOp:
		return status.New(code, op, "operator %v is not defined for %v", reduce.Op(call.RedOp), reduce.DType(call.DType))
	case hot.WhySize:
		return status.New(code, op, "count %d times the element and %d members is more than 2^56 bytes", call.Count, t.n)
	case hot.WhyOverlap:
		return status.New(code, op, "in %#x and out %#x overlap in part (count %d); they must be equal, disjoint, or in the rank's own place of the larger one", call.In, call.Out, call.Count)
	case hot.WhyNull:
		return status.New(code, op, "a buffer is NULL though count is %d", call.Count)
	case hot.WhyCounts:
		return status.New(code, op, "the table of sizes has %d entries; all_gather_v needs %d, all_to_all_v %d", len(call.Counts), t.n, 4*t.n)
	case hot.WhyDevice:
		return status.New(code, op, "a buffer is device memory; copy it to the host, or use the stream-ordered form")
	}
	return status.New(code, op, "refused for reason %d", why)
}
