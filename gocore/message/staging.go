package message

import (
	"slices"
)

// stagePlaces is how many chunks of a staged send are under way at once: one is copied in while the other is copied out.
const stagePlaces = 2

// answer handles what the receiver of a large message says.
func (m *Messenger) answer(s *Send, a *slot) {
	switch {
	case a.kind == kindFin:
		m.unstage(s)
		delete(m.sends, s.id)
		s.end(nil)
	case s.done: // withdrawn: only its fin counts
	case a.kind == kindGo:
		s.going, s.epoch, s.next, s.inFlight = true, a.epoch, 0, 0
		if s.stage != nil {
			m.fill(s)
		} else if !slices.Contains(m.waiting, s) {
			m.waiting = append(m.waiting, s)
		}
	case a.kind == kindTaken && a.epoch == s.epoch && s.inFlight > 0:
		s.inFlight--
		m.fill(s)
	}
}

// startStaging gives staging to sends that were told to go, in that order.
func (m *Messenger) startStaging() {
	for len(m.waiting) > 0 && m.staged < maxStaged {
		s := m.waiting[0]
		if s.done {
			m.waiting = m.waiting[1:]
			continue
		}
		ref, mem, err := m.cfg.Scratch.Lease(s.stageBytes())
		if err != nil && m.staged > 0 {
			return // one that ends gives its staging back
		}
		m.waiting = m.waiting[1:]
		if err != nil {
			m.withdrawSend(s)
			s.end(err)
			continue
		}
		m.staged++
		s.stageRef, s.stage = ref, mem[:s.stageBytes()]
		m.fill(s)
	}
}

func (s *Send) stageBytes() uint64 { return min(stagePlaces*chunkBytes, uint64(len(s.data))) }

// fill copies the next parts into free places and announces them.
func (m *Messenger) fill(s *Send) {
	for s.inFlight < stagePlaces && s.next < uint64(len(s.data)) {
		n := min(chunkBytes, uint64(len(s.data))-s.next)
		place := s.next / chunkBytes % stagePlaces * chunkBytes
		copy(s.stage[place:place+n], s.data[s.next:s.next+n])
		m.tell(s.dst, slot{kind: kindChunk, id: s.id, epoch: s.epoch, bytes: n, ref: uint64(s.stageRef) + place, off: s.next})
		s.next += n
		s.inFlight++
		m.progress++
	}
}

// unstage returns a send's staging.
func (m *Messenger) unstage(s *Send) {
	if s.stage == nil {
		return
	}
	m.cfg.Scratch.Return(s.stageRef, uint64(len(s.stage)))
	s.stage = nil
	m.staged--
}
