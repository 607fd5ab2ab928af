package world

import (
	"time"
	"unsafe"

	"goshmem/gocore/coll"
	"goshmem/gocore/fabric"
	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// collecting is a collective in its team's lane.
type collecting struct {
	t     *Team
	r     *coll.Request
	quiet bool // a barrier: what was put before it must be there first
	calm  calm
	op    string
	began int64
	until int64 // its deadline
}

// run begins the collective when the lane has come to it: members arrive in the order of their lanes.
func (c *collecting) run(until int64) (bool, error) {
	if c.quiet {
		done, err := c.calm.run(c.op, until, c.until)
		if !done || err != nil {
			return done, err
		}
		c.quiet = false
	}
	return c.r.Run(until)
}

// giveUp tells the members, also when this PE had not arrived yet: they wait for an operation that it will never join.
func (c *collecting) giveUp() {
	if c.quiet {
		c.calm.giveUp()
	}
	if done, _ := c.r.Run(0); !done {
		c.r.GiveUp()
	}
}

func (c *collecting) words() [4]uint64 { return [4]uint64{} }

func (c *collecting) due() int64 { return c.until }

func (c *collecting) overdue() error {
	c.r.GiveUp()
	return c.t.overdue(c.op, c.began)
}

// overdue is what an operation ends with whose time was over before its turn came.
func (t *Team) overdue(op string, began int64) error {
	return status.New(status.Timeout, op, "operations of %s that were started before it ran for all of %v; it has not begun", t.name(),
		time.Duration(hot.Now()-began).Round(time.Millisecond))
}

// Collective starts one collective of the team.
func (t *Team) Collective(call coll.Call, how How, timeout int64, slice time.Duration) (*Request, error) {
	op := coll.OpName(call.Op)
	if err := t.enter(op); err != nil {
		return nil, err
	}
	defer t.exit()
	if x := t.w.device(); x.holds(call.In) || x.holds(call.Out) {
		return nil, status.New(status.Unsupported, op, "a buffer (in %#x, out %#x) is device memory; use the form on a stream (gshmem_collective_on_stream), or copy to host memory", call.In, call.Out)
	}
	until := t.deadline(timeout)
	r, err := t.coll.Start(call, until)
	if err != nil {
		return nil, err
	}
	return t.w.start(t.lane, &collecting{t: t, r: r, quiet: call.Op == coll.Barrier, calm: calm{w: t.w}, op: op, began: hot.Now(), until: until}, how, slice), nil
}

// Adopt takes over a collective that C began (a *hot_coll), whatever it has come to, and looks at it once. The thread that began it has
// announced itself, so the world cannot end meanwhile. The error says that the team is being destroyed: then the collective is still the caller's.
func (t *Team) Adopt(c unsafe.Pointer) (*Request, error) {
	if err := t.hold("collective"); err != nil {
		return nil, err
	}
	defer t.exit()
	return t.w.start(t.lane, &collecting{t: t, r: t.coll.Adopt(c), until: hot.Forever}, How{}, 0), nil
}

// collConfig is what package coll needs of this world.
func (t *Team) collConfig(control []uint64) coll.Config {
	w := t.w
	return coll.Config{Name: t.id, Me: t.me, PEs: t.pes, Control: control, Segment: w.seg.Bytes(), Crowded: w.crowded,
		Timeout: int64(w.timeout), Scratch: w.scratch, Stages: w.stages, World: w.hot, Mapped: t.mappedTo, Transport: w.net,
		Locate: w.locate, Lost: w.gonePE, Aborted: w.checkAbort, Condemned: w.condemned, Topic: topic}
}

// mappedTo is a PE's segment when every two members have mapped each other: then all of them run the C executor.
func (t *Team) mappedTo(pe int) []byte {
	if !t.mapped() {
		return nil
	}
	return t.w.segs[pe].Bytes()
}

func topic(kind uint64) string {
	if kind < uint64(len(kindNames)) {
		return kindNames[kind]
	}
	return "exchange"
}

// locate is where an address range lies in this PE's symmetric heap.
func (w *World) locate(addr uintptr, n uint64) (fabric.Ref, bool) {
	low := w.heapLow()
	if addr < low || uint64(addr-low) > w.heapBytes() || n > w.heapBytes()-uint64(addr-low) {
		return 0, false
	}
	return fabric.MakeRef(0, w.seg.Geo.HeapOff+uint64(addr-low)), true
}
