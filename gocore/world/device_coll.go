package world

import (
	"context"
	"time"

	"goshmem/gocore/coll"
	"goshmem/gocore/device"
	"goshmem/gocore/hot"
	"goshmem/gocore/reduce"
	"goshmem/gocore/status"
)

// Collectives in the order of a stream. Every member queues the same ones of a team in the same order; buffers that peers reach are
// at the same offset of the device heap on all members.

// kernelType is a dtype as kernels number it (aclDataType); false: they do not reduce it.
func kernelType(dtype int) (uint64, bool) {
	switch reduce.DType(dtype) {
	case reduce.F32:
		return 0, true
	case reduce.F16:
		return 1, true
	case reduce.I32:
		return 3, true
	case reduce.BF16:
		return 27, true
	}
	return 0, false
}

// kernelOp is an operator as kernels number it.
func kernelOp(op int) (uint64, bool) {
	switch reduce.Op(op) {
	case reduce.Sum:
		return 0, true
	case reduce.Max:
		return 1, true
	case reduce.Min:
		return 2, true
	case reduce.Prod:
		return 3, true
	}
	return 0, false
}

// oneShot is up to how many bytes an all-reduce takes the way in which everybody reads everything.
const oneShot = 64 << 10

// placeTeams gives all teams that there are their place in the state of a device that has come up.
func (w *World) placeTeams(x *accelerator) error {
	w.teamMu.Lock()
	defer w.teamMu.Unlock()
	for t := range w.teams {
		if err := x.placeTeam(t); err != nil {
			return err
		}
		t.placed.Store(true)
	}
	return nil
}

// placeTeam tells kernels of a team. The members meet before any of them queues a kernel of it.
func (x *accelerator) placeTeam(t *Team) error {
	if x == nil || x.state == nil || t.index < 0 {
		return nil
	}
	return x.state.SetTeam(t.index, t.pes, t.me)
}

// admit places a new team, whose members all do the same now.
func (x *accelerator) admit(t *Team) error {
	if err := x.recover(t); err != nil {
		return err
	}
	if err := x.placeTeam(t); err != nil {
		return err
	}
	t.placed.Store(t.index >= 0)
	return nil
}

// recover lets kernels wait again after a death or a timeout, for a new team whose members are alive: they all do the same now and meet then.
// Teams made before have lost what their barriers knew and stay away from the device.
func (x *accelerator) recover(t *Team) error {
	if x.hasKernels() {
		x.hearVerdict() // of members that this PE has not met on the device since
	}
	broken := x.health()
	if broken == nil || !x.hasKernels() {
		return nil
	}
	x.watch.judging.Lock() // what was found about teams before has been told
	defer x.watch.judging.Unlock()
	for _, pe := range t.pes {
		if err := x.w.gonePE(pe); err != nil {
			return status.At(status.Of(err), "team on the device", pe, "%v", err)
		}
	}
	switch status.Of(broken) {
	case status.PeerDead, status.PeerLeft, status.Timeout, status.Mismatch, status.TeamPoisoned:
	default:
		return broken
	}
	if err := x.spoil(broken); err != nil {
		return err
	}
	if err := x.state.Resume(); err != nil {
		return err
	}
	x.dropVerdict()
	x.w.teamMu.Lock()
	x.w.eachTeamLocked(func(old *Team, _ bool) {
		old.placed.Store(false)
		old.idleLocked()
	})
	x.w.teamMu.Unlock()
	x.mu.Lock()
	defer x.mu.Unlock()
	x.broken = nil
	return nil
}

// spoil waits until the kernels that were told to end have done so, and keeps the reason for whoever waits for their streams.
func (x *accelerator) spoil(why error) error {
	ctx, stop := context.WithTimeoutCause(x.w.ctx, 5*time.Second, status.New(status.Timeout, "team on the device", "kernels have not ended within 5 s of being told to"))
	defer stop()
	x.mu.Lock()
	waiting := map[device.Stream]*tail{}
	for s, t := range x.tails {
		if t.waits {
			waiting[s] = t
		}
	}
	x.mu.Unlock()
	for s, t := range waiting {
		if err := x.dev.Wait(ctx, s); err != nil && ctx.Err() != nil {
			return err
		}
		x.mu.Lock()
		t.waits, t.since = false, time.Time{}
		if t.err == nil {
			t.err = outOfOrder("stream_wait", t, s, why)
		}
		x.mu.Unlock()
	}
	return nil
}

// hasKernels says whether kernels run.
func (x *accelerator) hasKernels() bool { return x != nil && x.state != nil }

// BarrierOnStream makes a stream wait until all members' streams have come to their barrier; what each queued before is complete then.
func (t *Team) BarrierOnStream(s device.Stream) error {
	return t.CollectiveOnStream(coll.Call{Op: coll.Barrier, Root: -1}, s)
}

// CollectiveOnStream queues a collective of the team. Buffers are device memory.
func (t *Team) CollectiveOnStream(c coll.Call, s device.Stream) error {
	op := coll.OpName(c.Op) + "_on_stream"
	x, done, err := t.w.onStream(op)
	if err != nil {
		return err
	}
	defer done()
	if err := t.hold(op); err != nil {
		return err
	}
	defer t.exit()
	for _, pe := range t.pes {
		if err := t.w.lost(pe); err != nil {
			return status.At(status.PeerDead, op, pe, "%v; %s has no more operations on the device", err, t.name())
		}
	}
	if err := x.waits(op); err != nil {
		return err
	}
	if err := t.refuses(op); err != nil { // after those that died, because of which others leave
		return err
	}
	if err := t.coll.Health(); err != nil {
		if told := x.waits(op); told != nil {
			return told // it says more
		}
		return err
	}
	if x.state == nil {
		return t.withoutKernels(x, op, c, s)
	}
	if !t.placed.Load() {
		return status.New(status.Unsupported, op, "%s has no place on the device: a PE has died, a wait has timed out or members have disagreed since it was made, 2047 teams have one, or it was made while the device came up; make it anew, or use the collective on host memory", t.name())
	}
	if err := x.reaches(t); err != nil {
		return status.Wrap(status.Unsupported, op, err, "%s", t.name())
	}
	kernel, args, err := t.kernelOf(x, op, c)
	if err != nil || kernel == "" {
		return err
	}
	return t.launch(x, op, kernel, s, args, x.record(c, WayKernel))
}

// launch tells the neighbours and queues a kernel of the team after its last one, on whichever stream that was.
func (t *Team) launch(x *accelerator, op, kernel string, s device.Stream, args []uint64, what asked) error {
	t.streamMu.Lock()
	defer t.streamMu.Unlock()
	if err := t.askLocked(x, what); err != nil {
		return err
	}
	t.w.teamMu.Lock()
	before, running := t.stream, t.kernels != t.ended
	t.w.teamMu.Unlock()
	if running {
		if err := x.join(s, before); err != nil {
			return err
		}
	}
	t.w.teamMu.Lock()
	t.stream = s
	t.kernels++
	t.w.teamMu.Unlock()
	x.noteWithin(s, op, true, limit(t.coll.Timeout()))
	x.noteTeam(s, t)
	return x.launch(kernel, s, append([]uint64{uint64(t.index)}, args...)...)
}

// withoutKernels is what can be done by host functions: meeting.
func (t *Team) withoutKernels(x *accelerator, op string, c coll.Call, s device.Stream) error {
	if c.Op != coll.Barrier && c.Op != coll.Sync {
		return status.New(status.Unsupported, op, "it needs kernels on the device (%s); copy to host memory and use the collective there", x.facts.Kernels)
	}
	return x.call(op, s, true, func() error {
		return ended(t.Collective(coll.Call{Op: coll.Sync, Root: -1}, How{}, Default, -1))
	})
}

// kernelOf chooses the kernel of a collective and its arguments; "" when there is nothing to do.
func (t *Team) kernelOf(x *accelerator, op string, c coll.Call) (string, []uint64, error) {
	n := uint64(len(t.pes))
	in, out := uint64(c.In), uint64(c.Out)
	switch c.Op {
	case coll.Barrier, coll.Sync:
		return "gshmem_k_barrier", nil, nil
	case coll.AllReduce, coll.ReduceScatter:
		return t.reductionOf(x, op, c)
	case coll.Broadcast:
		if c.Root < 0 || c.Root >= len(t.pes) {
			return "", nil, status.New(status.InvalidPE, op, "root %d does not exist; %s has ranks 0 to %d", c.Root, t.name(), len(t.pes)-1)
		}
		if t.me != c.Root {
			in = out // only the root's is read
		}
		err := t.buffers(x, op, c.Out, c.Count, uintptr(in), c.Count)
		return "gshmem_k_broadcast", []uint64{out, in, c.Count, uint64(c.Root)}, err
	case coll.AllGather:
		err := t.buffers(x, op, c.Out, n*c.Count, c.In, c.Count)
		return "gshmem_k_allgather", []uint64{out, in, c.Count}, err
	case coll.AllToAll:
		err := t.buffers(x, op, c.Out, n*c.Count, c.In, n*c.Count)
		if err == nil && overlap(c.In, n*c.Count, c.Out, n*c.Count) {
			err = status.New(status.InvalidArgument, op, "in %#x and out %#x overlap", c.In, c.Out)
		}
		return "gshmem_k_all_to_all", []uint64{out, in, c.Count}, err
	}
	return "", nil, status.New(status.Unsupported, op, "kernels do barrier, sync, broadcast, all_reduce, reduce_scatter, all_gather and all_to_all; use one of these, or the collective on host memory")
}

func (t *Team) reductionOf(x *accelerator, op string, c coll.Call) (string, []uint64, error) {
	dtype, ok := kernelType(c.DType)
	kind, known := kernelOp(c.RedOp)
	if !ok || !known {
		return "", nil, status.New(status.Unsupported, op, "kernels reduce float32, float16, bfloat16 and int32 by sum, prod, min and max (asked: dtype %d, operator %d); convert, or use the collective on host memory", c.DType, c.RedOp)
	}
	size := uint64(hot.DTypeSize(c.DType))
	if c.Count > 1<<56/size/uint64(len(t.pes)) {
		return "", nil, status.New(status.InvalidArgument, op, "count %d is more than there can be", c.Count)
	}
	bytes := c.Count * size
	args := []uint64{uint64(c.Out), uint64(c.In), c.Count, dtype, kind}
	if c.Op == coll.ReduceScatter {
		all := bytes * uint64(len(t.pes))
		mine := c.In + uintptr(bytes)*uintptr(t.me)
		err := t.buffers(x, op, c.In, all, c.Out, bytes)
		if err == nil && c.Out != mine && overlap(c.In, all, c.Out, bytes) {
			err = status.New(status.InvalidArgument, op, "out %#x overlaps in %#x elsewhere than in this rank's own part", c.Out, c.In)
		}
		return "gshmem_k_reduce_scatter", args, err
	}
	apart := !overlap(c.In, bytes, c.Out, bytes)
	if !apart && c.In != c.Out {
		return "", nil, status.New(status.InvalidArgument, op, "in %#x and out %#x overlap in part; they must be equal or disjoint", c.In, c.Out)
	}
	if apart && bytes <= oneShot {
		return "gshmem_k_allreduce_one_shot", args, t.buffers(x, op, c.In, bytes, c.Out, bytes)
	}
	if err := t.buffers(x, op, c.In, bytes, c.Out, bytes); err != nil {
		return "", nil, err
	}
	return "gshmem_k_allreduce_two_shot", args, t.buffers(x, op, c.Out, bytes, c.In, bytes)
}

func overlap(a uintptr, n uint64, b uintptr, m uint64) bool {
	return n > 0 && m > 0 && uint64(a) < uint64(b)+m && uint64(b) < uint64(a)+n
}

// buffers checks that the buffer peers reach is in one symmetric block of the device heap that all members have, and that the other is
// memory of the device.
func (t *Team) buffers(x *accelerator, op string, shared uintptr, n uint64, other uintptr, m uint64) error {
	if n > 0 {
		if err := t.shared(x, op, shared, n); err != nil {
			return err
		}
	}
	if m > 0 && !x.holds(other) {
		return status.New(status.InvalidArgument, op, "%#x is no device memory; copy it to the device, or use the collective on host memory", other)
	}
	return nil
}

func (t *Team) shared(x *accelerator, op string, at uintptr, n uint64) error {
	b, err := t.w.BlockOf(at)
	if err != nil || b.in != x.arena {
		return status.New(status.NotSymmetric, op, "%#x is not in the symmetric heap on the device, where peers reach it; allocate it there (gshmem_alloc with GSHMEM_ON_DEVICE)", at)
	}
	if end := uint64(at-b.Address()) + n; end > b.size {
		return status.New(status.NotSymmetric, op, "%d bytes from %#x run %d bytes over the end of their block of %d", n, at, end-b.size, b.size)
	}
	if b.team == nil {
		return status.New(status.NotSymmetric, op, "%#x is in a block of this PE alone; peers must have it at the same offset, so allocate it with the team", at)
	}
	for _, pe := range t.pes {
		if !b.team.set.Contains(pe) {
			return status.At(status.NotSymmetric, op, pe, "it is in %s but not in %s, which the block at %#x belongs to; allocate the block with the team", t.name(), b.team.name(), at)
		}
	}
	return nil
}

// Index is the team's number for kernels, -1 when it has none.
func (t *Team) Index() int {
	if !t.placed.Load() {
		return -1
	}
	return t.index
}
