package bootstrap

import (
	"encoding/binary"
	"fmt"
	"net"

	"goshmem/gocore/status"
)

const opJoin = "rendezvous"

// Kinds of rounds.
const (
	roundAllgather = 1
	roundBarrier   = 2
)

func roundName(kind byte) string {
	if kind == roundBarrier {
		return "bootstrap barrier"
	}
	return "bootstrap allgather"
}

// retry is the code of a refusal that only means "ask again": the host serves an earlier job, or its file was replaced.
const retry = status.Pending

// join admits a member, or tells it (and, when the job cannot work, everybody) why not. False: it was not admitted. The connection is
// nil for the host's own PE.
func (h *host) join(m *member, c net.Conn) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return false
	}
	if c != nil {
		h.raw[c] = true
	}
	if h.failure != nil {
		m.send(encodeStatus(frameRefuse, h.failure))
		return false
	}
	if h.up {
		m.send(encodeStatus(frameRefuse, status.New(retry, opJoin, "the job that meets there is complete with %d PEs", h.n)))
		return false
	}
	if err := h.unfitLocked(m); err != nil {
		m.send(encodeStatus(frameRefuse, err))
		h.failLocked(err)
		return false
	}
	h.members[m.pe] = m
	h.came++
	if h.came == h.n {
		h.upLocked()
	}
	return true
}

// unfitLocked says why a newcomer and this job do not fit together; h.mu is held.
func (h *host) unfitLocked(m *member) *status.Error {
	w := m.who
	switch {
	case w.version != h.version || w.layout != h.layout:
		return status.At(status.VersionSkew, opJoin, w.me, "it runs shmem %s (layout %d), the host runs shmem %s (layout %d); install one version everywhere",
			w.version, w.layout, h.version, h.layout)
	case w.n != h.n:
		return status.At(status.Mismatch, opJoin, w.me, "it expects %d PEs, the host expects %d; give every PE the same size", w.n, h.n)
	case w.me < 0 || w.me >= h.n:
		return status.At(status.InvalidPE, opJoin, w.me, "PEs of this job are 0 to %d", h.n-1)
	case h.members[w.me] != nil:
		return status.At(status.Mismatch, opJoin, w.me, "two processes claim to be PE %d: %s and %s; give each its own rank", w.me, h.members[w.me].who.process, w.process)
	}
	return nil
}

// upLocked starts the exchange; h.mu is held.
func (h *host) upLocked() {
	if h.file != nil {
		if h.file.replaced() {
			h.failLocked(superseded(h.file.path))
			return
		}
		h.file.remove()
	}
	h.up = true
	h.stopListening()
	h.tellLocked(frame{frameWelcome, h.session})
}

// tellLocked sends to every member that is still here; h.mu is held.
func (h *host) tellLocked(f frame) {
	for _, m := range h.members {
		if m != nil && !m.left && !h.closed {
			m.send(f)
		}
	}
}

// fail ends the job for everybody.
func (h *host) fail(err *status.Error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.failLocked(err)
}

func (h *host) failLocked(err *status.Error) {
	if h.failure == nil && !h.closed {
		h.failure = err
		h.tellLocked(encodeStatus(frameRefuse, err))
	}
}

// lost ends a member whose connection ended.
func (h *host) lost(m *member, cause error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !m.left && !h.closed {
		h.failLocked(status.At(status.PeerDead, opJoin, m.pe, "its connection from %s (%s) ended: %v", m.from, m.who.process, cause))
	}
	m.left = true
	m.end()
}

// handle serves one frame of an admitted member.
func (h *host) handle(m *member, f frame) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || m.left {
		return
	}
	switch f.kind {
	case frameContribute:
		h.contributeLocked(m, f.body)
	case frameWho:
		m.send(encodePEs(frameMissing, h.missingLocked()))
	case frameGiveUp:
		e := decodeStatus(f, opJoin)
		if len(h.missingLocked()) > 0 {
			e.Detail = fmt.Sprintf("missing were PEs %s", listPEs(h.missingLocked()))
		}
		h.failLocked(status.At(e.Code, opJoin, m.pe, "this PE stopped waiting: %s", e.Detail))
	case frameBye:
		m.left = true
		if h.given > 0 || !h.up {
			h.failLocked(status.At(status.PeerLeft, opJoin, m.pe, "it closed its rendezvous while others still exchange"))
		}
		m.end()
	default:
		h.failLocked(status.At(status.Internal, opJoin, m.pe, "it sent a frame of unknown kind %d", f.kind))
	}
}

// missingLocked lists for whom everybody waits: those who have not come, or have not contributed to this round.
func (h *host) missingLocked() []int {
	var out []int
	for pe := range h.n {
		if h.members[pe] == nil || h.up && !h.gave[pe] {
			out = append(out, pe)
		}
	}
	return out
}

func (h *host) contributeLocked(m *member, body []byte) {
	r := reader{b: body}
	round, kind := r.u32(), r.take(1)[0]
	if err := h.misplacedLocked(m, round, kind, r); err != nil {
		h.failLocked(err)
		return
	}
	h.kind = kind
	h.blobs[m.pe], h.gave[m.pe] = r.b, true
	h.total += len(r.b)
	if h.given++; h.given < h.n {
		return
	}
	h.tellLocked(encodeResult(h.round, h.blobs))
	h.round++
	h.resetRoundLocked()
}

func (h *host) misplacedLocked(m *member, round uint32, kind byte, r reader) *status.Error {
	if !h.up || r.bad || round != h.round || h.gave[m.pe] || len(r.b) > MaxBlob {
		return status.At(status.Internal, opJoin, m.pe, "it contributed %d bytes to round %d while the host is at round %d", len(r.b), round, h.round)
	}
	if h.total+len(r.b) > MaxRound {
		return status.At(status.InvalidArgument, opJoin, m.pe, "the contributions of one round exceed %d bytes", MaxRound)
	}
	if h.given > 0 && kind != h.kind {
		return status.At(status.Mismatch, opJoin, m.pe, "it is in a %s, others are in a %s (round %d)", roundName(kind), roundName(h.kind), round)
	}
	for _, other := range h.members {
		if other.left {
			return status.At(status.PeerLeft, opJoin, other.pe, "it closed its rendezvous; PE %d still wants a %s", m.pe, roundName(kind))
		}
	}
	return nil
}

func (h *host) resetRoundLocked() {
	h.blobs, h.gave, h.given, h.total = make([][]byte, h.n), make([]bool, h.n), 0, 0
}

func encodeContribution(round uint32, kind byte, blob []byte) frame {
	b := binary.BigEndian.AppendUint32(make([]byte, 0, 5+len(blob)), round)
	return frame{frameContribute, append(append(b, kind), blob...)}
}

// superseded tells every member to ask again: the host's file was replaced by another job's.
func superseded(path string) *status.Error {
	return status.New(retry, opJoin, "another job replaced %s", path)
}
