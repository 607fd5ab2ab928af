package message

import (
	"errors"
	"fmt"
	"strings"
	"time"

	"goshmem/gocore/status"
)

// Recv is a receive. Its buffer must stay until Step says done or Cancel returned.
type Recv struct {
	m        *Messenger
	buf      []byte
	src      int
	tag      int64
	began    time.Time
	deadline time.Time

	// Guarded by m.mu.
	stamp uint64
	seen  *envelope // the message it took
	done  bool
	err   error
}

// Recv posts a receive of at most len(buf) bytes from rank src (or AnySource) with the tag (or AnyTag). A zero deadline is none.
func (m *Messenger) Recv(buf []byte, src int, tag int64, deadline time.Time) (*Recv, error) {
	if src != AnySource && (src < 0 || src >= m.n) {
		return nil, status.New(status.InvalidPE, "recv", "source rank %d is not in %s of %d", src, m.cfg.Name, m.n)
	}
	r := &Recv{m: m, buf: buf, src: src, tag: tag, began: time.Now(), deadline: deadline}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, status.New(status.StaleHandle, "recv", "%s was destroyed", m.cfg.Name)
	}
	m.pollLocked() // what has come already is older than this receive
	if e := m.match.post(r); e != nil {
		m.join(r, e)
	}
	return r, nil
}

// Step polls and says whether the receive has ended, and how. Asked again after the end, it answers the same.
func (r *Recv) Step() (done bool, err error) {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.done {
		return true, r.err
	}
	lost := m.lossOf(r) // looked at before the poll: a message sent before the death still counts
	m.pollLocked()
	if !r.done && lost != nil {
		m.abandon(r)
		r.end(lost)
	}
	if !r.done && !r.deadline.IsZero() && !time.Now().Before(r.deadline) {
		err := m.late(r)
		m.abandon(r)
		r.end(err)
	}
	return r.done, r.err
}

// Cancel ends the receive. A message it had begun to take is put back and can be received again.
func (r *Recv) Cancel() {
	m := r.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if r.done {
		return
	}
	m.abandon(r)
	r.end(status.New(status.Canceled, "recv", "given up by its caller"))
}

// Result is the source rank, tag and length of the message received; only after Step said done without an error.
func (r *Recv) Result() (src int, tag int64, bytes uint64) {
	r.m.mu.Lock()
	defer r.m.mu.Unlock()
	return r.seen.src, r.seen.tag, r.seen.bytes
}

// complete ends the receive with the message e; m.mu is held.
func (r *Recv) complete(e *envelope) {
	r.seen = e
	r.end(nil)
}

// end ends the receive, once; m.mu is held.
func (r *Recv) end(err error) {
	if r.done {
		return
	}
	r.done, r.err, r.buf = true, err, nil
	if r.seen != nil {
		r.seen = &envelope{src: r.seen.src, tag: r.seen.tag, bytes: r.seen.bytes} // keep what Result needs, not the payload
	}
	r.m.progress++
	r.m.ended = true
}

// abandon takes the receive out of the matching; m.mu is held.
func (m *Messenger) abandon(r *Recv) {
	if e := r.seen; e != nil && e.offer != nil && e.offer.recv == r {
		r.seen = nil
		m.giveBack(e.offer)
		return
	}
	m.match.remove(r)
}

// lossOf is the death or leaving because of which the receive would wait in vain. Slots still to be taken come first.
func (m *Messenger) lossOf(r *Recv) error {
	rank := r.src
	if rank == AnySource && r.seen != nil {
		rank = r.seen.src
	}
	if rank != AnySource {
		return m.lossFrom(r, rank)
	}
	return m.lossFromAny(r)
}

func (m *Messenger) lossFrom(r *Recv, rank int) error {
	err := m.lostLocked(rank)
	if err == nil || (m.broken[rank] == nil && m.in[rank].taken != loadWord(m.cfg.Area, tailAt(rank))) {
		return nil
	}
	return m.word("recv", rank, err, "waiting for "+r.what())
}

// lossFromAny is a death of any member, for the message may have been its; or, when all others have left, the last leaving. One
// that left in order while others are there is nobody to wait for.
func (m *Messenger) lossFromAny(r *Recv) (loss error) {
	there := m.n == 1 // alone, a message to oneself may come
	for rank := range m.n {
		if rank == m.cfg.Me {
			continue
		}
		err := m.lossFrom(r, rank)
		if err == nil {
			there = true
		} else if loss = err; status.Of(err) != status.PeerLeft {
			return err
		}
	}
	if there {
		return nil
	}
	return loss
}

// word adds who and what to the loss of a member.
func (m *Messenger) word(op string, rank int, err error, doing string) error {
	code := status.PeerUnreachable
	if known := (*status.Error)(nil); errors.As(err, &known) {
		code = known.Code
	}
	e := status.At(code, op, m.cfg.PEs[rank], "rank %d of %s is lost, %s", rank, m.cfg.Name, doing)
	e.Err = err
	return e
}

func (r *Recv) what() string {
	from, tag := "any rank", "any tag"
	if r.src != AnySource {
		from = fmt.Sprintf("rank %d (PE %d)", r.src, r.m.cfg.PEs[r.src])
	}
	if r.tag != AnyTag {
		tag = fmt.Sprintf("tag %d", r.tag)
	}
	return fmt.Sprintf("a message from %s with %s", from, tag)
}

// late words a timeout: what was waited for, how long, and what is there instead.
func (m *Messenger) late(r *Recv) error {
	pe := -1
	if r.src != AnySource {
		pe = m.cfg.PEs[r.src]
	}
	text := fmt.Sprintf("%s: no %s within %v", m.cfg.Name, strings.TrimPrefix(r.what(), "a "), elapsed(r.began))
	if e := r.seen; e != nil && e.offer != nil {
		text = fmt.Sprintf("%s: %d of %d bytes from rank %d (PE %d) with tag %d came within %v; the sender must be inside a call or have an asynchronous send for its engine to serve",
			m.cfg.Name, e.offer.got, e.bytes, e.src, m.cfg.PEs[e.src], e.tag, elapsed(r.began))
	} else if m.match.waiting > 0 {
		var have []string
		for _, e := range m.match.some(3) {
			have = append(have, fmt.Sprintf("rank %d tag %d (%d bytes)", e.src, e.tag, e.bytes))
		}
		text += fmt.Sprintf("; %d other messages wait here, first: %s", m.match.waiting, strings.Join(have, ", "))
	}
	return status.At(status.Timeout, "recv", pe, "%s", text)
}

func elapsed(since time.Time) time.Duration { return time.Since(since).Round(time.Millisecond) }
