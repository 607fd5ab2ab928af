package coll

import (
	"context"

	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/plan"
	"goshmem/gocore/status"
)

// small finishes from the arrival lines, or from the slabs of members, which stay as they are until everybody has begun the
// operation after the next.
func (g *remote) small(ctx context.Context) error {
	n, me := g.t.n, g.t.cfg.Me
	parts := make([][]byte, n)
	for r := range n {
		if !g.gives(r) || (g.call.Op == Reduce || g.call.Op == Gather) && me != g.call.Root {
			continue
		}
		var err error
		if parts[r], err = g.part(ctx, r); err != nil {
			return err
		}
	}
	switch g.call.Op {
	case AllReduce, ReduceScatter:
		return g.fold([][]byte{g.out}, parts)
	case Reduce:
		if me == g.call.Root {
			return g.fold([][]byte{g.out}, parts)
		}
	case Broadcast, Scatter:
		copy(g.out, parts[g.call.Root])
	case AllToAllV:
		v := g.call.Counts
		copy(g.out[v[3]:v[3]+v[2]], g.in[v[1]:v[1]+v[0]])
	case AllGatherV:
		g.concatenate(parts, g.call.Counts)
	default:
		g.concatenate(parts, nil)
	}
	return nil
}

// part is rank r's data for me.
func (g *remote) part(ctx context.Context, r int) ([]byte, error) {
	length, off := g.is.Piece, uint64(0)
	if g.call.Op == AllGatherV {
		length = g.call.Counts[r]
	}
	if g.perPeer() {
		off = uint64(g.t.cfg.Me) * g.is.Piece
	}
	if g.call.Op == AllToAllV {
		return nil, nil // a team of one
	}
	switch {
	case r == g.t.cfg.Me:
		return g.in[off : off+length], nil
	case g.isInline():
		return g.lines[r].inline[:length], nil
	}
	b := make([]byte, length)
	err := g.t.cfg.Transport.Get(ctx, b, fabric.Addr{PE: g.t.cfg.PEs[r], Ref: fabric.Ref(g.lines[r].stageRef + off)})
	return b, err
}

// concatenate lays the parts side by side, mine first: `in` may lie where others' parts go.
func (g *remote) concatenate(parts [][]byte, counts []uint64) {
	if len(g.out) == 0 {
		return
	}
	starts := make([]uint64, g.t.n+1)
	for r := range g.t.n {
		length := g.is.Piece
		if counts != nil {
			length = counts[r]
		}
		starts[r+1] = starts[r] + length
	}
	me := g.t.cfg.Me
	copy(g.out[starts[me]:starts[me+1]], parts[me])
	for r := range g.t.n {
		if r != me {
			copy(g.out[starts[r]:starts[r+1]], parts[r])
		}
	}
}

func (g *remote) fold(dst, src [][]byte) error {
	size := uint64(hot.DTypeSize(g.call.DType))
	return hot.Reduce(g.call.DType, g.call.RedOp, dst, src, uint64(len(src[0]))/size, g.call.Scale, g.t.n)
}

// sections runs one plan after the other.
func (g *remote) sections(ctx context.Context) error {
	for {
		k := hot.PlanKey{Op: g.is.Desc.Op, Elem: 1, Root: int(g.is.Desc.Root), Mode: uint32(g.mode), Len: g.is.Piece, Pitch: g.is.Piece}
		once := g.call.Op == AllGatherV || g.call.Op == AllToAllV
		if g.mode == plan.Staged && !once {
			k.Len = min(g.is.Piece-g.base, hot.Section(g.call.Op, g.t.n))
		}
		p, err := plan.Make(g.t.planParams(k, g.call.Counts))
		if err != nil {
			return status.Wrap(status.Internal, OpName(g.call.Op), err, "")
		}
		for i := range p.Steps {
			if err := g.step(ctx, &p.Steps[i]); err != nil {
				return err
			}
		}
		g.base += k.Len
		g.phase0 += p.Phases
		if once || g.mode != plan.Staged || g.base >= g.is.Piece {
			return nil
		}
	}
}

func (g *remote) step(ctx context.Context, s *plan.Step) error {
	switch s.Kind {
	case plan.Copy:
		return g.copy(ctx, s)
	case plan.Fold:
		return g.reduce(ctx, s)
	case plan.Notify:
		return g.notify(ctx, s)
	default:
		return g.await(ctx, s)
	}
}

// own is a place of mine as bytes.
func (g *remote) own(p plan.Place, n uint64) []byte {
	switch p.Buf {
	case plan.In:
		return g.in[g.base+p.Off : g.base+p.Off+n]
	case plan.Out:
		return g.out[g.base+p.Off : g.base+p.Off+n]
	}
	if g.mode == plan.Slab {
		return g.slabHalf()[p.Off : p.Off+n]
	}
	return g.t.stage[p.Off : p.Off+n]
}

// peer is a place of another rank.
func (g *remote) peer(p plan.Place) fabric.Addr {
	l := &g.lines[p.Rank]
	ref := l.stageRef + p.Off
	switch p.Buf {
	case plan.In:
		ref = l.inRef + g.base + p.Off
	case plan.Out:
		ref = l.outRef + g.base + p.Off
	}
	return fabric.Addr{PE: g.t.cfg.PEs[p.Rank], Ref: fabric.Ref(ref)}
}

// pieceBytes bounds the temporary memory of one step.
const pieceBytes = 1 << 20

// pieces calls f for each part of a step.
func pieces(n uint64, f func(off, n uint64) error) error {
	for off := uint64(0); off < n; off += pieceBytes {
		if err := f(off, min(pieceBytes, n-off)); err != nil {
			return err
		}
	}
	return nil
}

func moved(p plan.Place, off uint64) plan.Place {
	p.Off += off
	return p
}

func (g *remote) copy(ctx context.Context, s *plan.Step) error {
	me := g.t.cfg.Me
	if s.Src.Rank == me && s.Dst.Rank == me {
		dst, src := g.own(s.Dst, s.Len), g.own(s.Src, s.Len)
		if len(src) > 0 && &dst[0] != &src[0] { // in place, peers may be reading it
			copy(dst, src)
		}
		return nil
	}
	return pieces(s.Len, func(off, n uint64) error {
		data, err := g.fetch(ctx, moved(s.Src, off), n, g.ifMine(moved(s.Dst, off), n))
		if err != nil || s.Dst.Rank == me {
			return err
		}
		return g.t.cfg.Transport.Put(ctx, g.peer(moved(s.Dst, off)), data)
	})
}

// ifMine is the destination when it is my memory, so that data can be fetched right into it.
func (g *remote) ifMine(p plan.Place, n uint64) []byte {
	if p.Rank == g.t.cfg.Me {
		return g.own(p, n)
	}
	return nil
}

// fetch gives the bytes at a place: mine as they are, another's in `into` or in memory of its own.
func (g *remote) fetch(ctx context.Context, p plan.Place, n uint64, into []byte) ([]byte, error) {
	if p.Rank == g.t.cfg.Me {
		return g.own(p, n), nil
	}
	if into == nil {
		into = make([]byte, n)
	}
	return into, g.t.cfg.Transport.Get(ctx, into, g.peer(p))
}

func (g *remote) reduce(ctx context.Context, s *plan.Step) error {
	return pieces(s.Len, func(off, n uint64) error {
		src := make([][]byte, g.t.n)
		for r := range src {
			p := s.Src
			if r == g.t.cfg.Me {
				p = s.Own
			}
			p.Rank = r
			var err error
			if src[r], err = g.fetch(ctx, moved(p, off), n, nil); err != nil {
				return err
			}
		}
		result := make([]byte, n)
		if err := g.fold([][]byte{result}, src); err != nil {
			return err
		}
		if err := g.spread(ctx, moved(s.Dst, off), result); err != nil || s.Dst2.Buf == plan.None {
			return err
		}
		return g.spread(ctx, moved(s.Dst2, off), result)
	})
}

// spread stores data at a place, or at that place of every member.
func (g *remote) spread(ctx context.Context, p plan.Place, data []byte) error {
	for r := range g.t.n {
		if p.Rank != plan.All && p.Rank != r {
			continue
		}
		at := plan.Place{Buf: p.Buf, Rank: r, Off: p.Off}
		if r == g.t.cfg.Me {
			copy(g.own(at, uint64(len(data))), data)
		} else if err := g.t.cfg.Transport.Put(ctx, g.peer(at), data); err != nil {
			return err
		}
	}
	return nil
}

func (g *remote) notify(ctx context.Context, s *plan.Step) error {
	n, me := g.t.n, g.t.cfg.Me
	word := uint64(g.seq)<<32 | uint64(g.phase0+s.Phase)
	for i := 1; i < n; i++ {
		r := (me + i) % n
		if s.Peer != plan.All && s.Peer != r {
			continue
		}
		at := g.t.controlOf(r, layout.Progress(n, me))
		if err := g.t.cfg.Transport.PutSignal(ctx, at, nil, at, fabric.SignalSet, word); err != nil {
			return err
		}
	}
	return nil
}

func (g *remote) reached(r int, phase uint32) bool {
	w := loadWord64(g.t.control, layout.Progress(g.t.n, r))
	return uint32(w>>32) == g.seq && uint32(w) >= g.phase0+phase
}

func (g *remote) await(ctx context.Context, s *plan.Step) error {
	lags := func(r int) bool {
		return r != g.t.cfg.Me && (s.Peer == plan.All || s.Peer == r) && !g.reached(r, s.Phase)
	}
	for r := range g.t.n {
		for lags(r) {
			if err := g.pause(ctx, lags); err != nil {
				return err
			}
		}
	}
	g.wait.progress()
	return nil
}
