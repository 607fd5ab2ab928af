package coll

import (
	"context"
	"encoding/binary"

	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/layout"
	"goshmem/gocore/plan"
	"goshmem/gocore/status"
)

// This file is the Go twin of exec.c up to the choice of the plan; the rules are explained there.

// whole is the collective while the team is held.
func (g *remote) whole(ctx context.Context) error {
	if code := g.t.dead(); code != status.OK {
		return g.t.deadError(g.call, code)
	}
	g.is = hot.CheckCall(g.t.n, g.t.cfg.Me, g.call)
	g.in, g.out = bytesAt(g.call.In, g.is.InLen), bytesAt(g.call.Out, g.is.OutLen)
	if err := g.room(); err != nil {
		return err
	}
	g.findBuffers()
	g.t.seq++
	g.seq, g.fp = g.t.seq, hot.Fingerprint(g.is.Desc)
	if g.seq == 0 {
		for r := range g.t.n {
			storeWord64(g.t.control, layout.Progress(g.t.n, r), 0)
		}
	}
	g.arrived = true
	if err := g.arrive(ctx); err != nil {
		return err
	}
	if err := g.arrivals(ctx); err != nil {
		return err
	}
	if g.call.Op == Barrier || g.call.Op == Sync || g.empty() {
		return nil
	}
	g.mode = g.chooseMode()
	if g.mode == 0 {
		return g.small(ctx)
	}
	return g.sections(ctx)
}

func (g *remote) empty() bool { return g.is.InLen|g.is.OutLen|g.is.Piece == 0 }

func (g *remote) room() error {
	if g.t.n == 1 || g.empty() || g.isInline() {
		return nil
	}
	if g.isSlab() {
		return g.t.takeSlab()
	}
	return g.t.takeStage()
}

func (g *remote) findBuffers() {
	g.inRef, g.outRef = layout.Private, layout.Private
	op := g.call.Op
	inPlace := g.call.In == g.call.Out && g.is.InLen > 0 && g.is.OutLen > 0 && g.t.n > 1
	if g.t.cfg.Locate == nil || inPlace && op != AllReduce && op != Reduce && op != Broadcast {
		return
	}
	if ref, ok := g.t.cfg.Locate(g.call.In, g.is.InLen); ok && g.is.InLen > 0 {
		g.inRef = uint64(ref)
	}
	if ref, ok := g.t.cfg.Locate(g.call.Out, g.is.OutLen); ok && g.is.OutLen > 0 {
		g.outRef = uint64(ref)
	}
}

func (g *remote) gives(r int) bool {
	return g.call.Op != Broadcast && g.call.Op != Scatter || r == g.call.Root
}

func (g *remote) needsIn(r int) bool { return g.call.Op != Gather && g.gives(r) }

func (g *remote) needsOut(r int) bool {
	switch g.call.Op {
	case AllReduce, Broadcast:
		return true
	case Reduce, Gather:
		return r == g.call.Root
	}
	return false
}

func (g *remote) perPeer() bool {
	return g.call.Op == ReduceScatter || g.call.Op == AllToAll || g.call.Op == Scatter
}

func (g *remote) isInline() bool { return g.is.Piece <= layout.InlineBytes && g.call.Op != AllToAllV }

func (g *remote) isSlab() bool {
	need := g.is.Piece
	if g.perPeer() {
		need *= uint64(g.t.n)
	}
	return !g.isInline() && g.call.Op != AllToAllV && need <= g.t.cfg.SlabHalf
}

// slabHalf is my half of the slab for this operation.
func (g *remote) slabHalf() []byte {
	at := uint64(g.seq&1) * g.t.cfg.SlabHalf
	return g.t.slab[at : at+g.t.cfg.SlabHalf]
}

// pieceFor is what I send inline to rank r.
func (g *remote) pieceFor(r int) []byte {
	switch {
	case !g.isInline() || !g.gives(g.t.cfg.Me) || len(g.in) == 0:
		return nil
	case g.perPeer():
		return g.in[uint64(r)*g.is.Piece : uint64(r+1)*g.is.Piece]
	}
	return g.in
}

func (g *remote) stageRef() uint64 {
	switch {
	case g.isInline() || g.t.n == 1:
		return layout.Private
	case g.isSlab():
		return uint64(fabric.MakeRef(0, g.t.slabOff+uint64(g.seq&1)*g.t.cfg.SlabHalf))
	}
	return uint64(fabric.MakeRef(0, g.t.stageOff))
}

func (g *remote) writeDesc() {
	le := binary.LittleEndian
	b := g.t.control[layout.Desc(g.t.n, int(g.seq&1)):]
	d := g.is.Desc
	le.PutUint32(b, d.Op)
	le.PutUint32(b[4:], d.DType)
	le.PutUint32(b[8:], d.RedOp)
	le.PutUint32(b[12:], uint32(d.Root))
	le.PutUint64(b[16:], d.Count)
	le.PutUint64(b[24:], d.Extra)
}

func (g *remote) arrive(ctx context.Context) error {
	n, me := g.t.n, g.t.cfg.Me
	le := binary.LittleEndian
	g.writeDesc()
	if n > 1 && g.isSlab() && g.inRef == layout.Private && g.gives(me) {
		copy(g.slabHalf(), g.in)
	}
	stage := g.stageRef()
	for i := 1; i < n; i++ {
		r := (me + i) % n
		b := make([]byte, layout.Line-layout.ArrInRef)
		le.PutUint64(b, g.inRef)
		le.PutUint64(b[8:], g.outRef)
		le.PutUint64(b[16:], stage)
		if v := g.call.Counts; g.call.Op == AllToAllV {
			for k := range 4 {
				le.PutUint64(b[24+8*k:], v[k*n+r])
			}
		}
		copy(b[24:], g.pieceFor(r))
		at := layout.Arrival(n, int(g.seq&1), me)
		flag := uint64(g.seq)<<32 | uint64(g.fp)
		if err := g.t.cfg.Transport.PutSignal(ctx, g.t.controlOf(r, at+layout.ArrInRef), b, g.t.controlOf(r, at+layout.ArrFlag), fabric.SignalSet, flag); err != nil {
			return err
		}
	}
	return nil
}

func (g *remote) flag(r int) uint64 {
	return loadWord64(g.t.control, layout.Arrival(g.t.n, int(g.seq&1), r)+layout.ArrFlag)
}

func (g *remote) here(r int) bool {
	f := g.flag(r)
	return f != 0 && uint32(f>>32) == g.seq
}

// agrees: rank r, which is here, calls the same.
func (g *remote) agrees(r int) bool {
	n, v := g.t.n, g.call.Counts
	if r == g.t.cfg.Me {
		return g.call.Op != AllToAllV || v[r] == v[2*n+r]
	}
	if uint32(g.flag(r)) != g.fp {
		return false
	}
	if g.call.Op != AllToAllV {
		return true
	}
	b := g.t.control[layout.Arrival(n, int(g.seq&1), r)+layout.ArrInline:]
	return binary.LittleEndian.Uint64(b) == v[2*n+r] && binary.LittleEndian.Uint64(b[16:]) == v[r]
}

// arrivals waits until all are here and finds who disagrees.
func (g *remote) arrivals(ctx context.Context) error {
	n := g.t.n
	for {
		all := true
		for r := range n {
			here := r == g.t.cfg.Me || g.here(r)
			if here && !g.agrees(r) {
				g.culprit = r
				return status.Mismatch
			}
			all = all && here
		}
		if all {
			break
		}
		if err := g.pause(ctx, func(r int) bool { return !g.here(r) }); err != nil {
			return err
		}
	}
	g.wait.progress()
	g.lines = make([]line, n)
	for r := range n {
		b := g.t.control[layout.Arrival(n, int(g.seq&1), r):]
		le := binary.LittleEndian
		g.lines[r] = line{le.Uint64(b[layout.ArrInRef:]), le.Uint64(b[layout.ArrOutRef:]), le.Uint64(b[layout.ArrStageRef:]), b[layout.ArrInline:layout.Line]}
	}
	g.lines[g.t.cfg.Me] = line{inRef: g.inRef, outRef: g.outRef, stageRef: g.stageRef()}
	return nil
}

func (g *remote) chooseMode() plan.Mode {
	if g.isInline() || g.t.n == 1 {
		return 0
	}
	direct, missing := true, false
	for r, l := range g.lines {
		missing = missing || g.gives(r) && l.inRef != layout.Private
		if g.needsIn(r) && l.inRef == layout.Private || g.needsOut(r) && l.outRef == layout.Private {
			direct = false
		}
	}
	switch {
	case direct && g.call.Op != AllToAllV && g.call.Op != AllGatherV:
		return plan.Direct
	case !g.isSlab():
		return plan.Staged
	case missing:
		return plan.Slab
	}
	return 0
}
