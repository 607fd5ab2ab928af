package message

import (
	"goshmem/gocore/layout"
	"goshmem/gocore/status"
)

// incoming is a large message of another member, from its offer until it was taken or withdrawn.
type incoming struct {
	src   int
	id    uint64
	ref   uint64 // where it lies with the sender; layout.Private when it must be staged
	bytes uint64
	env   *envelope

	recv     *Recv  // nil while unmatched
	epoch    uint32 // rises when a receive gives the message back
	got      uint64
	chunks   []part // staged and not yet copied
	get      *get   // under way, unmapped sender
	stale    *get   // under way for nobody: the sender must not reuse its staging before it has ended
	void     bool   // withdrawn; fin is due when stale has ended
	isActive bool   // stands in Messenger.active
}

// part is a piece of a large message that can be copied now.
type part struct{ ref, off, n uint64 }

func (in *incoming) staged() bool { return in.ref == layout.Private }

// begin starts the transfer into r's buffer, which is long enough.
func (m *Messenger) begin(in *incoming, r *Recv) {
	in.recv, in.got = r, 0
	m.activate(in)
	if in.stale == nil {
		m.ask(in)
	}
}

func (m *Messenger) activate(in *incoming) {
	if !in.isActive {
		in.isActive = true
		m.active = append(m.active, in)
	}
}

// ask tells the sender of a staged message to go.
func (m *Messenger) ask(in *incoming) {
	if in.staged() {
		m.tell(in.src, slot{kind: kindGo, id: in.id, epoch: in.epoch})
	}
}

// advance copies what can be copied, up to pullBytes, and says whether nothing is left to do.
func (m *Messenger) advance(in *incoming) bool {
	if in.stale != nil && !m.settle(in) {
		return false
	}
	for budget := uint64(pullBytes); in.recv != nil && budget > 0; {
		p, ok := in.next()
		if !ok || !m.copyPart(in, p) {
			break
		}
		budget -= min(budget, p.n)
		if in.got == in.bytes {
			m.arrived(in)
		}
	}
	in.isActive = in.recv != nil || in.stale != nil
	return !in.isActive
}

// settle waits for a stale get to end and does what was put off.
func (m *Messenger) settle(in *incoming) bool {
	if !in.stale.finished() {
		return false
	}
	in.stale = nil
	if in.void {
		m.finish(in)
	} else if in.recv != nil {
		m.ask(in)
	}
	return true
}

// drop ends the use of the receive's buffer. A get under way goes on for nobody.
func (in *incoming) drop() {
	if in.get != nil {
		in.stale = in.get
	}
	in.recv, in.got, in.chunks, in.get = nil, 0, nil, nil
}

func (in *incoming) next() (part, bool) {
	if in.staged() {
		if len(in.chunks) == 0 {
			return part{}, false
		}
		return in.chunks[0], true
	}
	return part{in.ref + in.got, in.got, min(pullBytes/2, in.bytes-in.got)}, true
}

// copyPart gets one part into the receive's buffer. From an unmapped sender it goes through memory of its own first, so that the
// user's buffer is only touched here, under the lock, while the receive is alive.
func (m *Messenger) copyPart(in *incoming, p part) bool {
	dst := in.recv.buf[p.off : p.off+p.n]
	var err error
	if m.cfg.Mapped(in.src) {
		err = m.cfg.Transport.Get(m.ctx, dst, m.at(in.src, p.ref))
	} else {
		if in.get == nil {
			in.get = m.startGet(in.src, p.ref, p.n)
		}
		if !in.get.finished() {
			return false
		}
		err = in.get.err
		copy(dst, in.get.buf)
		in.get = nil
	}
	if err != nil {
		m.broken[in.src] = err
		in.recv.end(err)
		in.recv = nil
		delete(m.offers, offerID{in.src, in.id})
		return false
	}
	in.got += p.n
	m.progress++
	if in.staged() {
		in.chunks = in.chunks[1:]
		m.tell(in.src, slot{kind: kindTaken, id: in.id, epoch: in.epoch, off: p.off, bytes: p.n})
	}
	return true
}

// arrived ends a transfer whose last byte was copied, unless the sender withdrew it meanwhile and the bytes may be of its next use.
func (m *Messenger) arrived(in *incoming) {
	m.drain(in.src)
	if in.recv == nil {
		return // takeWithdraw has ended the receive
	}
	r := in.recv
	in.recv = nil
	m.finish(in)
	r.complete(in.env)
}

// finish tells the sender that its message is used up.
func (m *Messenger) finish(in *incoming) {
	delete(m.offers, offerID{in.src, in.id})
	m.tell(in.src, slot{kind: kindFin, id: in.id})
}

// giveBack undoes begin: the message waits again, and the next receive starts it over.
func (m *Messenger) giveBack(in *incoming) {
	in.drop()
	in.epoch++
	if r := m.match.place(in.env); r != nil {
		m.join(r, in.env)
	}
}

// takeChunk notes a staged part. One of an epoch that was given back is nobody's.
func (m *Messenger) takeChunk(src int, s *slot) {
	in := m.offers[offerID{src, s.id}]
	if in == nil || in.recv == nil || s.epoch != in.epoch {
		return
	}
	want := in.got
	for _, p := range in.chunks {
		want += p.n
	}
	if s.off != want || s.bytes > in.bytes-want || s.bytes == 0 {
		m.broken[src] = status.At(status.Internal, "message", m.cfg.PEs[src], "part [%d, +%d) of a message of %d bytes, expected from %d", s.off, s.bytes, in.bytes, want)
		return
	}
	in.chunks = append(in.chunks, part{s.ref, s.off, s.bytes})
}

// takeWithdraw forgets an offer. Its sender is told, so that it can reuse its staging.
func (m *Messenger) takeWithdraw(src int, s *slot) {
	in := m.offers[offerID{src, s.id}]
	if in == nil {
		return // it was finished, and the sender told, before
	}
	r := in.recv
	in.drop()
	delete(m.offers, offerID{src, s.id})
	if in.void = in.stale != nil; !in.void {
		m.finish(in)
	}
	if r != nil {
		r.end(status.At(status.Canceled, "recv", m.cfg.PEs[src], "rank %d gave its send up (tag %d, %d bytes) while it was being received", src, in.env.tag, in.bytes))
		return
	}
	m.match.withdraw(in.env)
}
