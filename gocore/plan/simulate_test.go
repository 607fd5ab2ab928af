package plan

import (
	"fmt"
	"math/rand"
)

// clock is a vector clock: what of every member has happened before.
type clock []int

func (c clock) join(o clock) {
	for i := range c {
		c[i] = max(c[i], o[i])
	}
}

// cell is a byte with its history: who wrote it last and who has read it since, each with that member's own time.
type cell struct {
	value  byte
	writer int // -1: nobody
	wtime  int
	rtime  []int
}

type memory []cell

func newMemory(n, members int) memory {
	m := make(memory, n)
	for i := range m {
		m[i].writer, m[i].rtime = -1, make([]int, members)
	}
	return m
}

// simulation runs all members' plans step by step in a random order, and checks every access against happened-before.
type simulation struct {
	n     int
	bufs  [][4]memory // by member and Buf
	plans []Plan
	pc    []int
	now   []clock
	words [][]progress // [to][from]
	// slabbed: members may still read the slab after the plan; its halves take turns
	slabbed bool
}

type progress struct {
	phase uint32
	at    clock
}

func newSimulation(n int, plans []Plan, bufs [][4]memory) *simulation {
	s := &simulation{n: n, bufs: bufs, plans: plans, pc: make([]int, n)}
	for i := range n {
		c := make(clock, n)
		c[i] = 1
		s.now = append(s.now, c)
		s.words = append(s.words, make([]progress, n))
	}
	return s
}

func (s *simulation) read(me int, p Place, n uint64) ([]byte, error) {
	m := s.bufs[p.Rank][p.Buf]
	if p.Off+n > uint64(len(m)) {
		return nil, fmt.Errorf("rank %d reads [%d,+%d) of buffer %d of rank %d, which has %d bytes", me, p.Off, n, p.Buf, p.Rank, len(m))
	}
	out := make([]byte, n)
	for i := range out {
		c := &m[p.Off+uint64(i)]
		if c.writer >= 0 && c.writer != me && c.wtime > s.now[me][c.writer] {
			return nil, fmt.Errorf("rank %d reads buffer %d of rank %d at %d, which rank %d may be writing", me, p.Buf, p.Rank, p.Off+uint64(i), c.writer)
		}
		c.rtime[me] = s.now[me][me]
		out[i] = c.value
	}
	return out, nil
}

func (s *simulation) write(me int, p Place, v []byte) error {
	m := s.bufs[p.Rank][p.Buf]
	if p.Off+uint64(len(v)) > uint64(len(m)) {
		return fmt.Errorf("rank %d writes [%d,+%d) of buffer %d of rank %d, which has %d bytes", me, p.Off, len(v), p.Buf, p.Rank, len(m))
	}
	for i, b := range v {
		c := &m[p.Off+uint64(i)]
		if c.writer >= 0 && c.writer != me && c.wtime > s.now[me][c.writer] {
			return fmt.Errorf("ranks %d and %d write buffer %d of rank %d at %d", me, c.writer, p.Buf, p.Rank, p.Off+uint64(i))
		}
		for r, t := range c.rtime {
			if r != me && t > s.now[me][r] {
				return fmt.Errorf("rank %d overwrites buffer %d of rank %d at %d, which rank %d may be reading", me, p.Buf, p.Rank, p.Off+uint64(i), r)
			}
		}
		c.value, c.writer, c.wtime = b, me, s.now[me][me]
	}
	return nil
}

// fold adds bytes, with the rank order shown by weights so that a wrong order or a missing source changes the result.
func fold(parts [][]byte) []byte {
	out := make([]byte, len(parts[0]))
	for _, p := range parts {
		for i, b := range p {
			out[i] = out[i]*31 + b
		}
	}
	return out
}

func (s *simulation) reduce(me int, st Step) error {
	parts := make([][]byte, s.n)
	for r := range s.n {
		p := st.Src
		if r == me {
			p = st.Own
		}
		p.Rank = r
		var err error
		if parts[r], err = s.read(me, p, st.Len); err != nil {
			return err
		}
	}
	v := fold(parts)
	for r := range s.n {
		if st.Dst.Rank == r || st.Dst.Rank == All {
			if err := s.write(me, Place{st.Dst.Buf, r, st.Dst.Off}, v); err != nil {
				return err
			}
		}
	}
	if st.Dst2.Buf != None {
		return s.write(me, st.Dst2, v)
	}
	return nil
}

// ready says whether the member's next step can run.
func (s *simulation) ready(me int) bool {
	if s.pc[me] == len(s.plans[me].Steps) {
		return false
	}
	st := s.plans[me].Steps[s.pc[me]]
	if st.Kind != Await {
		return true
	}
	for r := range s.n {
		if r != me && (st.Peer == All || st.Peer == r) && s.words[me][r].phase < st.Phase {
			return false
		}
	}
	return true
}

func (s *simulation) step(me int) error {
	st := s.plans[me].Steps[s.pc[me]]
	s.pc[me]++
	switch st.Kind {
	case Copy:
		src, dst := s.bufs[st.Src.Rank][st.Src.Buf], s.bufs[st.Dst.Rank][st.Dst.Buf]
		if st.Src.Off < uint64(len(src)) && st.Dst.Off < uint64(len(dst)) && &src[st.Src.Off] == &dst[st.Dst.Off] {
			return nil // in place: executors leave it out
		}
		v, err := s.read(me, st.Src, st.Len)
		if err != nil {
			return err
		}
		return s.write(me, st.Dst, v)
	case Fold:
		return s.reduce(me, st)
	case Notify:
		for r := range s.n {
			if r != me && (st.Peer == All || st.Peer == r) {
				if st.Phase <= s.words[r][me].phase {
					return fmt.Errorf("rank %d announces phase %d to %d after %d", me, st.Phase, r, s.words[r][me].phase)
				}
				s.words[r][me] = progress{st.Phase, append(clock(nil), s.now[me]...)}
			}
		}
		s.now[me][me]++
	case Await:
		for r := range s.n {
			if r != me && (st.Peer == All || st.Peer == r) {
				s.now[me].join(s.words[me][r].at)
			}
		}
	}
	return nil
}

func (s *simulation) run(r *rand.Rand) error {
	for {
		var can []int
		for m := range s.n {
			if s.ready(m) {
				can = append(can, m)
			}
		}
		if len(can) == 0 {
			break
		}
		m := can[r.Intn(len(can))]
		for range 1 + r.Intn(6) { // bursts make members drift apart
			if !s.ready(m) {
				break
			}
			if err := s.step(m); err != nil {
				return fmt.Errorf("%w (step %d of rank %d)", err, s.pc[m]-1, m)
			}
		}
	}
	for m := range s.n {
		if s.pc[m] != len(s.plans[m].Steps) {
			return fmt.Errorf("rank %d hangs at step %d of %d: %+v", m, s.pc[m], len(s.plans[m].Steps), s.plans[m].Steps[s.pc[m]])
		}
	}
	return s.left()
}

// left checks the end: every access to a member's buffers by others is known to it, and so is every word announced to it.
func (s *simulation) left() error {
	for m := range s.n {
		for buf, mem := range s.bufs[m] {
			for i := range mem {
				c := &mem[i]
				if c.writer >= 0 && c.writer != m && c.wtime > s.now[m][c.writer] {
					return fmt.Errorf("rank %d leaves while rank %d may be writing its buffer %d at %d", m, c.writer, buf, i)
				}
				for r, t := range c.rtime {
					if r != m && t > s.now[m][r] && !(Buf(buf) == Stage && s.slabbed) {
						return fmt.Errorf("rank %d leaves while rank %d may be reading its buffer %d at %d", m, r, buf, i)
					}
				}
			}
		}
		for r := range s.n {
			if p := s.words[m][r]; p.at != nil && p.at[r] > s.now[m][r] {
				return fmt.Errorf("rank %d leaves without having waited for phase %d of rank %d", m, p.phase, r)
			}
		}
	}
	return nil
}
