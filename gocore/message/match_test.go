package message

import (
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
)

// plain is the dumb matcher: two lists, searched from the front.
type plain struct {
	recvs []*Recv
	envs  []*envelope
}

func (p *plain) arrive(e *envelope) *Recv {
	for i, r := range p.recvs {
		if r.accepts(e) {
			p.recvs = append(p.recvs[:i:i], p.recvs[i+1:]...)
			return r
		}
	}
	at := len(p.envs)
	for at > 0 && p.envs[at-1].stamp > e.stamp {
		at--
	}
	p.envs = append(p.envs[:at:at], append([]*envelope{e}, p.envs[at:]...)...)
	return nil
}

func (p *plain) post(r *Recv) *envelope {
	for i, e := range p.envs {
		if r.accepts(e) {
			p.envs = append(p.envs[:i:i], p.envs[i+1:]...)
			return e
		}
	}
	p.recvs = append(p.recvs, r)
	return nil
}

func TestMatchingEqualsTwoPlainLists(t *testing.T) {
	for seed := range uint64(200) {
		rng := rand.New(rand.NewPCG(seed, 1))
		m, p := newMatcher(), &plain{}
		var taken []*envelope
		for range 300 {
			switch k := rng.IntN(10); {
			case k < 4:
				e := &envelope{src: rng.IntN(3), tag: int64(rng.IntN(3))}
				require.Same(t, orNil(m.arrive(e)), orNil(p.arrive(e)))
			case k < 8:
				r := &Recv{src: rng.IntN(4) - 1, tag: int64(rng.IntN(4))}
				if r.tag == 3 {
					r.tag = AnyTag
				}
				got := m.post(r)
				require.Same(t, orNil(got), orNil(p.post(r)))
				if got != nil {
					taken = append(taken, got)
				}
			case k < 9 && len(p.recvs) > 0: // a receive is canceled
				i := rng.IntN(len(p.recvs))
				m.remove(p.recvs[i])
				p.recvs = append(p.recvs[:i:i], p.recvs[i+1:]...)
			case len(taken) > 0: // a message is given back
				i := rng.IntN(len(taken))
				e := taken[i]
				taken = append(taken[:i:i], taken[i+1:]...)
				require.Same(t, orNil(m.place(e)), orNil(p.arrive(e)))
			}
			require.Equal(t, len(p.envs), m.waiting)
			require.Equal(t, append([]*envelope(nil), p.envs[:min(3, len(p.envs))]...), append([]*envelope(nil), m.some(3)...))
		}
	}
}

// orNil makes a nil pointer comparable by require.Same.
func orNil[T any](p *T) *T {
	if p == nil {
		return nil
	}
	return p
}
