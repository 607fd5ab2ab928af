package message

import (
	"goshmem/gocore/fabric"
	"goshmem/gocore/status"
)

// inbox is what comes from one member.
type inbox struct {
	taken uint64 // slots taken out
	given uint64 // of these, reported as credit
	get   *get   // the eager payload of the next slot is on its way (unmapped member); later slots wait
}

// get is a Get that runs on its own goroutine, for members whose memory is not mapped.
type get struct {
	buf  []byte
	done chan struct{}
	err  error // written before done is closed
}

func (m *Messenger) startGet(src int, ref uint64, n uint64) *get {
	g := &get{buf: make([]byte, n), done: make(chan struct{})}
	m.getWG.Add(1)
	go func() {
		defer m.getWG.Done()
		g.err = m.cfg.Transport.Get(m.ctx, g.buf, m.at(src, ref))
		close(g.done)
		m.cfg.Wake()
	}()
	return g
}

func (g *get) finished() bool {
	select {
	case <-g.done:
		return true
	default:
		return false
	}
}

func (m *Messenger) at(rank int, ref uint64) fabric.Addr {
	return fabric.Addr{PE: m.cfg.PEs[rank], Ref: fabric.Ref(ref)}
}

// drain takes out what src has put.
func (m *Messenger) drain(src int) {
	in := &m.in[src]
	// acquire: partner of the tail's PutSignal in put.
	for tail := loadWord(m.cfg.Area, tailAt(src)); in.taken < tail && m.broken[src] == nil; {
		at := slotAt(m.n, src, in.taken)
		s, ok := decodeSlot(m.cfg.Area[at : at+slotHeader+InlineBytes])
		if !ok || tail-in.taken > m.slots {
			m.broken[src] = status.At(status.Internal, "message", m.cfg.PEs[src], "slot %d of its ring (tail %d) is damaged", in.taken, tail)
			return
		}
		if !m.take(src, &s) {
			return
		}
		in.taken++
		m.progress++
		m.give(src)
	}
}

// give reports taken slots in halves of a ring, so that a waiting sender always gets some in time.
func (m *Messenger) give(src int) {
	in := &m.in[src]
	if in.taken-in.given < m.slots/2 {
		return
	}
	in.given = in.taken
	// release: the slots counted have been read; partner of room.
	err := m.cfg.Transport.PutSignal(m.ctx, m.at(src, uint64(m.cfg.Areas[src])), nil,
		m.at(src, uint64(m.cfg.Areas[src])+creditAt(m.cfg.Me)), fabric.SignalSet, in.given)
	if err != nil {
		m.broken[src] = err
	}
}

// take handles one slot; false means that its payload is still on its way.
func (m *Messenger) take(src int, s *slot) bool {
	switch s.kind {
	case kindInline:
		m.deliver(&envelope{src: src, tag: s.tag, bytes: s.bytes, data: s.inline})
	case kindEager:
		return m.takeEager(src, s)
	case kindOffer:
		in := &incoming{src: src, id: s.id, ref: s.ref, bytes: s.bytes}
		in.env = &envelope{src: src, tag: s.tag, bytes: s.bytes, offer: in}
		m.offers[offerID{src, s.id}] = in
		m.deliver(in.env)
	case kindWithdraw:
		m.takeWithdraw(src, s)
	case kindChunk:
		m.takeChunk(src, s)
	case kindGo, kindTaken, kindFin:
		if send := m.sends[s.id]; send != nil && send.dst == src {
			m.answer(send, s)
		}
	}
	return true
}

// takeEager copies the payload out of the sender's arena: straight into a matching buffer, else into memory of its own.
func (m *Messenger) takeEager(src int, s *slot) bool {
	if s.bytes > maxEager {
		m.broken[src] = status.At(status.Internal, "message", m.cfg.PEs[src], "its eager message claims %d bytes", s.bytes)
		return false
	}
	e := &envelope{src: src, tag: s.tag, bytes: s.bytes}
	if m.cfg.Mapped(src) {
		return m.copyEager(e, s)
	}
	in := &m.in[src]
	if in.get == nil {
		in.get = m.startGet(src, s.ref, s.bytes)
	}
	if !in.get.finished() {
		return false
	}
	g := in.get
	in.get = nil
	if g.err != nil {
		m.broken[src] = g.err
		return false
	}
	e.data = g.buf
	m.deliver(e)
	return true
}

// copyEager is takeEager from a mapped sender.
func (m *Messenger) copyEager(e *envelope, s *slot) bool {
	r := m.match.arrive(e)
	if r != nil && e.bytes > uint64(len(r.buf)) {
		m.refuse(r, e)
		return true
	}
	if r == nil {
		e.data = make([]byte, e.bytes)
	} else {
		e.data = r.buf[:e.bytes]
	}
	err := m.cfg.Transport.Get(m.ctx, e.data, m.at(e.src, s.ref))
	switch {
	case err != nil:
		m.broken[e.src] = err
		if r == nil {
			m.match.withdraw(e)
		} else {
			r.end(err)
		}
	case r != nil:
		r.complete(e)
	}
	return err == nil
}

// maxEager bounds what a peer can make this PE allocate for one slot; the setting's maximum.
const maxEager = 64 << 10

// deliver matches a message that has come.
func (m *Messenger) deliver(e *envelope) {
	if r := m.match.arrive(e); r != nil {
		m.join(r, e)
	} else if e.data != nil && e.bytes <= InlineBytes {
		e.data = append([]byte(nil), e.data...) // the slot is about to be reused
	}
}

// join gives a matched message to its receive.
func (m *Messenger) join(r *Recv, e *envelope) {
	r.seen = e
	switch {
	case e.bytes > uint64(len(r.buf)):
		m.refuse(r, e)
	case e.self != nil:
		copy(r.buf, e.self.data)
		delete(m.sends, e.self.id)
		e.self.end(nil)
		r.complete(e)
	case e.offer != nil:
		m.begin(e.offer, r)
	default:
		copy(r.buf, e.data)
		r.complete(e)
	}
}

// refuse ends a receive whose buffer is too short. The message is used up; its sender is told that it was taken.
func (m *Messenger) refuse(r *Recv, e *envelope) {
	if e.offer != nil {
		m.finish(e.offer)
	}
	if e.self != nil {
		delete(m.sends, e.self.id)
		e.self.end(nil)
	}
	r.end(status.At(status.Truncated, "recv", m.cfg.PEs[e.src],
		"a message of %d bytes (tag %d, from rank %d) does not fit the buffer of %d; it was dropped", e.bytes, e.tag, e.src, len(r.buf)))
}
