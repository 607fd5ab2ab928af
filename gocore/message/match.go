package message

import (
	"math"
	"slices"
)

// Wildcards of receives.
const (
	AnySource       = -1
	AnyTag    int64 = math.MinInt64
)

// envelope is a message that has come or was offered: what is matched against receives.
type envelope struct {
	src   int
	tag   int64
	bytes uint64
	stamp uint64    // order of arrival here
	data  []byte    // a small message, whole
	offer *incoming // a large one of another member
	self  *Send     // a large one of this member
}

// matcher pairs envelopes with receives: each envelope goes to the receive posted first of those that match, each receive
// takes the envelope that arrived first. It is pure.
type matcher struct {
	stamp      uint64
	posted     map[key][]*Recv // receives without wildcard, in the order posted
	wild       []*Recv         // receives with one, in the order posted
	unexpected map[key][]*envelope
	waiting    int // envelopes in unexpected
}

type key struct {
	src int
	tag int64
}

func newMatcher() *matcher {
	return &matcher{posted: map[key][]*Recv{}, unexpected: map[key][]*envelope{}}
}

func (r *Recv) accepts(e *envelope) bool {
	return (r.src == AnySource || r.src == e.src) && (r.tag == AnyTag || r.tag == e.tag)
}

func (r *Recv) isWild() bool { return r.src == AnySource || r.tag == AnyTag }

// arrive finds the receive for a new envelope, or keeps the envelope.
func (m *matcher) arrive(e *envelope) *Recv {
	m.stamp++
	e.stamp = m.stamp
	return m.place(e)
}

// place is arrive for an envelope that has its stamp already, because a receive gave it back.
func (m *matcher) place(e *envelope) *Recv {
	k := key{e.src, e.tag}
	var best *Recv
	if q := m.posted[k]; len(q) > 0 {
		best = q[0]
	}
	for _, r := range m.wild {
		if r.accepts(e) {
			if best == nil || r.stamp < best.stamp {
				best = r
			}
			break
		}
	}
	if best != nil {
		m.remove(best)
		return best
	}
	q := m.unexpected[k]
	at := len(q)
	for at > 0 && q[at-1].stamp > e.stamp {
		at--
	}
	m.unexpected[k] = slices.Insert(q, at, e)
	m.waiting++
	return nil
}

// post finds the envelope for a new receive, or keeps the receive.
func (m *matcher) post(r *Recv) *envelope {
	m.stamp++
	r.stamp = m.stamp
	if e := m.oldest(r); e != nil {
		m.withdraw(e)
		return e
	}
	if r.isWild() {
		m.wild = append(m.wild, r)
	} else {
		k := key{r.src, r.tag}
		m.posted[k] = append(m.posted[k], r)
	}
	return nil
}

func (m *matcher) oldest(r *Recv) *envelope {
	if !r.isWild() {
		if q := m.unexpected[key{r.src, r.tag}]; len(q) > 0 {
			return q[0]
		}
		return nil
	}
	var best *envelope
	for _, q := range m.unexpected {
		if e := q[0]; r.accepts(e) && (best == nil || e.stamp < best.stamp) {
			best = e
		}
	}
	return best
}

// remove takes a posted receive out.
func (m *matcher) remove(r *Recv) {
	if r.isWild() {
		if i := slices.Index(m.wild, r); i >= 0 {
			m.wild = slices.Delete(m.wild, i, i+1)
		}
		return
	}
	k := key{r.src, r.tag}
	q := m.posted[k]
	if i := slices.Index(q, r); i >= 0 {
		q = slices.Delete(q, i, i+1)
	}
	setOrDelete(m.posted, k, q)
}

// withdraw takes an unexpected envelope out and says whether it was there.
func (m *matcher) withdraw(e *envelope) bool {
	k := key{e.src, e.tag}
	q := m.unexpected[k]
	i := slices.Index(q, e)
	if i < 0 {
		return false
	}
	setOrDelete(m.unexpected, k, slices.Delete(q, i, i+1))
	m.waiting--
	return true
}

func setOrDelete[T any](m map[key][]T, k key, q []T) {
	if len(q) == 0 {
		delete(m, k)
	} else {
		m[k] = q
	}
}

// some lists up to n of the unexpected envelopes, the oldest first, for messages to people.
func (m *matcher) some(n int) []*envelope {
	var all []*envelope
	for _, q := range m.unexpected {
		all = append(all, q...)
	}
	slices.SortFunc(all, func(a, b *envelope) int { return int(int64(a.stamp - b.stamp)) })
	return all[:min(n, len(all))]
}
