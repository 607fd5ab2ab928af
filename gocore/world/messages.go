package world

import (
	"time"

	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/message"
	"goshmem/gocore/status"
)

// step is a message request of package message: a state machine that is polled.
type step interface {
	Step() (done bool, err error)
	Cancel()
}

// messaging drives one send or receive.
type messaging struct {
	w      *World
	msg    *message.Messenger
	s      step
	op     string
	turn   hot.Wait
	seen   uint64 // progress of the messenger as last looked at
	result func() [4]uint64
}

func (m *messaging) run(until int64) (bool, error) {
	for {
		if done, err := m.s.Step(); done {
			if m.msg.Pending() {
				m.w.engine.kick() // the engine pumps what is still queued here
			}
			return true, err
		}
		if until == 0 {
			return false, m.w.ending(m.op)
		}
		if p := m.msg.Progress(); p != m.seen {
			m.seen = p
			m.turn.Progress()
		}
		switch m.w.hot.Turn(&m.turn, until) {
		case hot.Slow:
			if err := m.w.ending(m.op); err != nil {
				m.s.Cancel()
				return true, err
			}
		case hot.Pending:
			if until != hot.Forever && hot.Now() >= until {
				return false, nil
			}
		}
	}
}

func (m *messaging) giveUp() { m.s.Cancel() }

func (m *messaging) words() [4]uint64 {
	if m.result == nil {
		return [4]uint64{}
	}
	return m.result()
}

// ending says whether everything ends: an abort, or this world's finalize.
func (w *World) ending(op string) error {
	if err := w.checkAbort(); err != nil {
		return err
	}
	return w.usable(op)
}

// Send starts sending data to a rank. The data must stay until the request ends.
func (t *Team) Send(data []byte, dst int, tag int64, how How, timeout int64, slice time.Duration) (*Request, error) {
	if err := t.w.enter("send"); err != nil {
		return nil, err
	}
	defer t.w.exit()
	if err := t.messageable("send", dst, false); err != nil {
		return nil, err
	}
	if tag == message.AnyTag {
		return nil, status.New(status.InvalidArgument, "send", "GSHMEM_ANY_TAG is for receives; give the message a tag")
	}
	s, err := t.msg.Send(dst, tag, data, t.w.refOf(data), t.clock(timeout))
	if err != nil {
		return nil, err
	}
	return t.w.startLoose(t.drive("send", s, nil), how, slice), nil
}

// Recv starts receiving at most len(buf) bytes. Result words: source rank, tag, bytes. A released receive is cancelled cleanly.
func (t *Team) Recv(buf []byte, src int, tag int64, how How, timeout int64, slice time.Duration) (*Request, error) {
	if err := t.w.enter("recv"); err != nil {
		return nil, err
	}
	defer t.w.exit()
	if err := t.messageable("recv", src, true); err != nil {
		return nil, err
	}
	r, err := t.msg.Recv(buf, src, tag, t.clock(timeout))
	if err != nil {
		return nil, err
	}
	return t.w.startLoose(t.drive("recv", r, func() [4]uint64 {
		from, tag, n := r.Result()
		return [4]uint64{uint64(from), uint64(tag), n}
	}), how, slice), nil
}

func (t *Team) drive(op string, s step, result func() [4]uint64) *messaging {
	m := &messaging{w: t.w, msg: t.msg, s: s, op: op, result: result}
	m.turn.Reset(hot.Forever) // the deadline is the request's own
	return m
}

func (t *Team) messageable(op string, rank int, any bool) error {
	if rank >= 0 && rank < len(t.pes) || any && rank == message.AnySource {
		return nil
	}
	return status.New(status.InvalidPE, op, "rank %d does not exist; %s has ranks 0 to %d", rank, t.name(), len(t.pes)-1)
}

// clock turns a timeout into the wall-clock deadline that package message takes; zero is none.
func (t *Team) clock(timeout int64) time.Time {
	if timeout == Default {
		timeout = t.coll.Timeout()
	}
	if timeout < 0 {
		return time.Time{}
	}
	return time.Now().Add(time.Duration(timeout))
}

// refOf is where bytes lie in this PE's symmetric heap, message.Private when they do not.
func (w *World) refOf(b []byte) fabric.Ref {
	at, low := baseOf(b), w.heapLow()
	if at < low || uint64(at-low) > w.heapBytes() || uint64(len(b)) > w.heapBytes()-uint64(at-low) {
		return message.Private
	}
	return fabric.MakeRef(0, w.seg.Geo.HeapOff+uint64(at-low))
}

// Lease and Return let package message stage in this PE's scratch.
func (s *scratch) Lease(n uint64) (fabric.Ref, []byte, error) {
	off, mem, err := s.Alloc(n)
	return fabric.MakeRef(0, off), mem, err
}

// Return ends a lease.
func (s *scratch) Return(ref fabric.Ref, _ uint64) { s.Free(ref.Off()) }
