package message

import (
	"goshmem/gocore/fabric"
)

// outbox is what goes to one member: a ring of slots in its area, an arena here, and a queue for when the ring is full.
type outbox struct {
	tail     uint64 // slots put
	queue    []item
	arena    []byte // slots(n) places of Eager bytes; place i belongs to slot i
	arenaRef fabric.Ref
}

// item is a slot to be put, with the payload of a small message. owner is the send that finishes by it, nil when it has.
type item struct {
	slot    slot
	payload []byte
	owner   *Send
	weight  uint64 // what it counts in Messenger.queued
}

// room says whether the ring to dst has a free slot.
func (m *Messenger) room(dst int) bool {
	// acquire: partner of the credit's PutSignal in give; the peer has read the slots it counts.
	return m.out[dst].tail-loadWord(m.cfg.Area, creditAt(dst)) < m.slots
}

// tell queues a descriptor for dst and puts what fits.
func (m *Messenger) tell(dst int, s slot) {
	m.out[dst].queue = append(m.out[dst].queue, item{slot: s})
	m.pump(dst)
}

// pump puts queued slots while the ring has room.
func (m *Messenger) pump(dst int) {
	o := &m.out[dst]
	for len(o.queue) > 0 && m.broken[dst] == nil && m.room(dst) {
		it := o.queue[0]
		lack := m.needArena(dst, it.slot.kind)
		if lack != nil && it.owner == nil {
			return // its send has finished: it waits for scratch to come back
		}
		o.queue[0] = item{}
		o.queue = o.queue[1:]
		if len(o.queue) == 0 {
			o.queue = nil
		}
		m.queued -= it.weight
		if lack != nil { // our own want, not the peer's fault
			it.owner.end(lack)
			continue
		}
		err := m.put(dst, &it)
		if it.owner != nil {
			it.owner.end(err)
		}
		if err != nil {
			m.broken[dst] = err
		}
	}
}

// put writes one slot; the payload of a small message goes into it, or into its place of the arena before.
func (m *Messenger) put(dst int, it *item) error {
	o := &m.out[dst]
	switch it.slot.kind {
	case kindInline:
		it.slot.inline = it.payload
	case kindEager:
		place := o.tail % m.slots * m.cfg.Eager
		copy(o.arena[place:place+m.cfg.Eager], it.payload)
		it.slot.ref = uint64(o.arenaRef) + place
	}
	pe, area := m.cfg.PEs[dst], m.cfg.Areas[dst]
	// The signal's release is the partner of drain's acquire: slot and arena are visible with the tail.
	err := m.cfg.Transport.PutSignal(m.ctx,
		fabric.Addr{PE: pe, Ref: area + fabric.Ref(slotAt(m.n, m.cfg.Me, o.tail))}, it.slot.encode(&m.line),
		fabric.Addr{PE: pe, Ref: area + fabric.Ref(tailAt(m.cfg.Me))}, fabric.SignalSet, o.tail+1)
	if err == nil {
		o.tail++
		m.progress++
	}
	return err
}

// needArena leases the arena for dst at its first eager message.
func (m *Messenger) needArena(dst int, k kind) error {
	o := &m.out[dst]
	if k != kindEager || o.arena != nil {
		return nil
	}
	ref, mem, err := m.cfg.Scratch.Lease(m.slots * m.cfg.Eager)
	if err != nil {
		return err
	}
	o.arenaRef, o.arena = ref, mem[:m.slots*m.cfg.Eager]
	return nil
}
