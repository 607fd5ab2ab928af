package message

import (
	"fmt"
	"time"

	"goshmem/gocore/fabric"
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// Private marks data that is not in this PE's symmetric memory.
const Private = fabric.Ref(layout.Private)

// Send is a send. A small one has ended when it is returned; the data of a large one must stay until Step says done or Cancel
// returned.
type Send struct {
	m        *Messenger
	dst      int
	tag      int64
	data     []byte
	id       uint64
	began    time.Time
	deadline time.Time

	// Guarded by m.mu.
	done bool
	err  error

	// Staging of a large ordinary message; guarded by m.mu.
	going    bool // the receiver asked for it
	epoch    uint32
	next     uint64 // first byte not staged
	inFlight int
	stage    []byte
	stageRef fabric.Ref
}

// Send starts sending data to rank dst. ref is where data lies in this PE's symmetric memory, or Private. A zero deadline is none.
func (m *Messenger) Send(dst int, tag int64, data []byte, ref fabric.Ref, deadline time.Time) (*Send, error) {
	if dst < 0 || dst >= m.n {
		return nil, status.New(status.InvalidPE, "send", "destination rank %d is not in %s of %d", dst, m.cfg.Name, m.n)
	}
	if tag == AnyTag {
		return nil, status.New(status.InvalidArgument, "send", "the wildcard tag is for receives")
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.closed {
		return nil, status.New(status.StaleHandle, "send", "%s was destroyed", m.cfg.Name)
	}
	s := &Send{m: m, dst: dst, tag: tag, data: data, began: time.Now(), deadline: deadline}
	if err := m.lostLocked(dst); err != nil {
		return nil, m.word("send", dst, err, "sending "+s.what())
	}
	if uint64(len(data)) <= max(m.cfg.Eager, InlineBytes) {
		m.sendSmall(s)
	} else {
		m.sendLarge(s, ref)
	}
	m.pollLocked()
	return s, nil
}

func (m *Messenger) sendSmall(s *Send) {
	n := uint64(len(s.data))
	if s.dst == m.cfg.Me {
		m.deliver(&envelope{src: s.dst, tag: s.tag, bytes: n, data: append([]byte{}, s.data...)})
		s.end(nil)
		return
	}
	it := item{slot: slot{kind: kindEager, tag: s.tag, bytes: n}, payload: s.data, owner: s}
	if n <= InlineBytes {
		it.slot.kind = kindInline
	}
	o := &m.out[s.dst]
	if len(o.queue) > 0 || !m.room(s.dst) { // it waits here: the caller may reuse its buffer
		it.payload = append([]byte(nil), s.data...)
	}
	o.queue = append(o.queue, it)
	m.pump(s.dst)
	if !s.done && m.queued < overflowBytes {
		last := &o.queue[len(o.queue)-1]
		last.owner, last.weight = nil, slotHeader+InlineBytes+uint64(len(it.payload))
		m.queued += last.weight
		s.end(nil)
	}
}

func (m *Messenger) sendLarge(s *Send, ref fabric.Ref) {
	m.nextID++
	s.id = m.nextID
	m.sends[s.id] = s
	n := uint64(len(s.data))
	if s.dst == m.cfg.Me {
		m.deliver(&envelope{src: s.dst, tag: s.tag, bytes: n, self: s})
		return
	}
	if !m.cfg.Mapped(s.dst) { // a withdrawn offer could be read late: only staging, which waits for fin, is safe
		ref = Private
	}
	m.tell(s.dst, slot{kind: kindOffer, tag: s.tag, bytes: n, id: s.id, ref: uint64(ref)})
}

// Step polls and says whether the send has ended, and how. Asked again after the end, it answers the same.
func (s *Send) Step() (done bool, err error) {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.done {
		return true, s.err
	}
	lost := m.lostLocked(s.dst)
	m.pollLocked()
	if !s.done && lost != nil {
		m.dropSend(s)
		s.end(m.word("send", s.dst, lost, "sending "+s.what()))
	}
	if !s.done && !s.deadline.IsZero() && !time.Now().Before(s.deadline) {
		m.withdrawSend(s)
		s.end(status.At(status.Timeout, "send", m.cfg.PEs[s.dst], "%s: rank %d did not receive %s within %v%s", m.cfg.Name, s.dst, s.what(), elapsed(s.began), s.state()))
	}
	return s.done, s.err
}

// Cancel ends the send; the data are not looked at any more. A receive that was already taking them fails as canceled.
func (s *Send) Cancel() {
	m := s.m
	m.mu.Lock()
	defer m.mu.Unlock()
	if s.done {
		return
	}
	m.withdrawSend(s)
	s.end(status.New(status.Canceled, "send", "given up by its caller"))
}

// withdrawSend tells the receiver that the offer is void; m.mu is held. The send stays known until the receiver's fin, for
// its staging may still be read. A small send that is queued is taken out of the queue.
func (m *Messenger) withdrawSend(s *Send) {
	if s.id == 0 {
		q := m.out[s.dst].queue
		for i := range q {
			if q[i].owner == s {
				m.out[s.dst].queue = append(q[:i:i], q[i+1:]...)
				return
			}
		}
		return
	}
	if s.dst == m.cfg.Me {
		delete(m.sends, s.id)
		for _, e := range m.match.unexpected[key{s.dst, s.tag}] {
			if e.self == s {
				m.match.withdraw(e)
				return
			}
		}
		return
	}
	m.tell(s.dst, slot{kind: kindWithdraw, id: s.id, tag: s.tag})
	// The withdrawal is visible before whatever the caller does with its buffer: partner of arrived's drain.
	if err := m.cfg.Transport.Fence(m.ctx, m.cfg.PEs[s.dst]); err != nil {
		m.broken[s.dst] = err
	}
}

// dropSend forgets a send to a lost member; m.mu is held.
func (m *Messenger) dropSend(s *Send) {
	m.unstage(s)
	delete(m.sends, s.id)
	for _, it := range m.out[s.dst].queue {
		m.queued -= it.weight
	}
	m.out[s.dst].queue = nil
}

// end ends the send, once; m.mu is held.
func (s *Send) end(err error) {
	if s.done {
		return
	}
	s.done, s.err, s.data = true, err, nil
	s.m.progress++
	s.m.ended = true
}

func (s *Send) what() string { return fmt.Sprintf("%d bytes with tag %d", len(s.data), s.tag) }

func (s *Send) state() string {
	switch {
	case s.id == 0:
		return "; its ring is full: it takes in nothing because it makes no call on this team"
	case !s.going:
		return "; it posted no matching receive, or took the data without saying so"
	}
	return fmt.Sprintf("; %d bytes were staged for it", s.next)
}
