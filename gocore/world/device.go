package world

import (
	"context"
	"fmt"
	"os"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/device/acl"
	"goshmem/gocore/device/host"
	"goshmem/gocore/heap"
	"goshmem/gocore/status"
)

// accelerator is the device of a world: its symmetric heap, streams, and the state that kernels find the world through.
//
//	(none) ──OpenDevice──▶ up ──a PE died, abort──▶ broken: what waits on the device fails, copies go on ──end of the world──▶ closed
type accelerator struct {
	w      *World
	kind   string // "npu", "host"
	facts  device.Facts
	dev    device.Device
	heap   device.Heap
	state  device.State // nil where there are no kernels
	arena  *arena
	aside  device.Stream            // looks at words and clears memory: never behind a kernel that waits
	hosted atomic.Pointer[hostside] // nil: kernels reach no host memory
	gone   bool                     // somebody has reset the device; only used while it is closed
	far    []string                 // by PE: why its device memory is not mapped, "" where it is
	near   [][]bool                 // near[i][j]: i has mapped j's device memory; the same on all PEs

	bounceMu sync.Mutex // guards what follows, and keeps the copies through it together
	bounce   uintptr    // device memory through which host memory reaches peers; 0 until first used
	pinned   uintptr    // host memory that the device reaches; as long

	lookMu sync.Mutex // guards slot
	slot   uintptr    // pinned host memory that looks are copied to

	stopMu sync.Mutex // held while a team is stopped, its kernels' notes are read, or its number ends; taken before w.teamMu

	mu     sync.Mutex // guards what follows
	broken error      // why nothing waits on the device any more
	tails  map[device.Stream]*tail
	made   map[device.Stream]bool // streams of NewStream, which surely live
	watch  watch
}

const bounceBytes = 1 << 20

// device is the world's device, nil when it has none.
func (w *World) device() *accelerator { return w.accel.Load() }

// needDevice is the device, or an error that says why there is none and how to get one.
func (w *World) needDevice(op string) (*accelerator, error) {
	if x := w.device(); x != nil {
		return x, nil
	}
	return nil, status.New(status.Unsupported, op, "this world has no device (%s); ask for one with init's device, SHMEM_DEVICE or gshmem_device_open", w.whyNoDevice())
}

func (w *World) whyNoDevice() string {
	if why := w.noDev.Load(); why != nil {
		return *why
	}
	return "none was asked for"
}

// spec is which device is wanted.
type spec struct {
	text string
	kind string // "none", "npu", "host"
	auto bool   // none is fine as well
	id   int    // -1: choose
}

func parseSpec(text string) (spec, error) {
	s := spec{text: text, kind: strings.ToLower(strings.TrimSpace(text)), id: -1}
	if name, id, ok := strings.Cut(s.kind, ":"); ok {
		n, err := strconv.Atoi(id)
		if err != nil || n < 0 {
			return s, badSpec(text)
		}
		s.kind, s.id = name, n
	}
	switch s.kind {
	case "auto":
		s.kind, s.auto = "npu", true
	case "":
		s.kind = "none"
	case "none", "npu", "host":
	default:
		return s, badSpec(text)
	}
	return s, nil
}

func badSpec(text string) error {
	return status.New(status.BadConfig, "device", "device %q is none of none, npu, npu:NUMBER, auto, host (SHMEM_DEVICE, or init's device)", text)
}

// openAccelerator makes the device of this process; nothing of it is shared yet. What it made is closed again when it fails; absent then says
// that there is no device to be opened, rather than one in trouble.
func (w *World) openAccelerator(s spec, at *acl.Place, bytes uint64) (x *accelerator, absent bool, err error) {
	x = &accelerator{w: w, kind: s.kind, tails: map[device.Stream]*tail{}, made: map[device.Stream]bool{}, far: make([]string, w.n)}
	switch s.kind {
	case "host":
		x.dev, err = host.Open(host.Options{ID: max(s.id, 0), Late: hostLate()})
	case "npu":
		x.dev, err = openNPU(s.id, at, w.cfg)
	}
	if err != nil {
		return nil, true, err
	}
	x.facts = x.dev.Facts()
	if err := x.furnish(bytes); err != nil {
		x.close()
		return nil, false, err
	}
	return x, false, nil
}

// hostLate is how late the pretended device does its work.
func hostLate() time.Duration {
	if us, err := strconv.Atoi(os.Getenv("SHMEM_HOST_DEVICE_LATE_US")); err == nil && us > 0 {
		return time.Duration(us) * time.Microsecond
	}
	return 0
}

func (x *accelerator) furnish(bytes uint64) error {
	w := x.w
	var err error
	if x.heap, err = x.dev.NewHeap(bytes+x.reserved(), w.me, w.n); err != nil {
		return err
	}
	if x.aside, err = x.dev.NewStream(); err != nil {
		return err
	}
	x.slot, err = x.dev.AllocHost(64)
	return err
}

// admitPeers lets the peers map the own heap.
func (x *accelerator) admitPeers(cards [][]byte) error {
	for pe, card := range cards {
		if pe == x.w.me {
			continue
		}
		if err := x.heap.Admit(pe, card); err != nil {
			return err
		}
	}
	return nil
}

// mapPeers maps the device memory of all peers. Who is out of reach is noted with the reason.
func (x *accelerator) mapPeers(cards [][]byte) {
	for pe, card := range cards {
		if pe == x.w.me {
			continue
		}
		if err := x.heap.Map(pe, card); err != nil {
			x.far[pe] = err.Error()
		}
	}
}

// settle makes what needs the peers' maps: the state for kernels and the allocator.
func (x *accelerator) settle() error {
	x.arena = newArena(x.heap, 0, x.heap.Size()-x.reserved(), x.heap.Base(x.w.me), "SHMEM_DEVICE_SIZE", x.wipe)
	err := x.makeState()
	x.facts = x.dev.Facts() // the heap and the state added to them
	return err
}

// wipe clears parts of the heap and waits until they are clear.
func (x *accelerator) wipe(dirty []heap.Range) error {
	for _, d := range dirty {
		if err := x.dev.Clear(x.arena.low+uintptr(d.Off), d.Len, x.aside); err != nil {
			return err
		}
	}
	ctx, stop := x.w.bounded(x.w.ctx, Default)
	defer stop()
	return x.dev.Wait(ctx, x.aside)
}

// withoutKernels does without them because a PE has none.
func (x *accelerator) withoutKernels(pe int) {
	if x.state == nil {
		return
	}
	if err := x.state.Close(); err != nil {
		x.w.logf("device: closing the state for kernels: %v", err)
	}
	x.state = nil
	x.facts.Kernels = fmt.Sprintf("not used, because PE %d has none (here: %s)", pe, x.facts.Kernels)
}

// window is where memory of devices may lie in this process: the addresses that runtimes give to devices (16 to 24 TiB on Ascend) and the
// heaps' surroundings. Host memory in it only takes a slower way.
func (x *accelerator) window() (low uintptr, span uint64) {
	if x.kind == "host" {
		return 0, ^uint64(0) // its memory lies among the host's
	}
	const tib = uint64(1) << 40
	first, end := 16*tib, 24*tib
	for pe := range x.w.n {
		if at := uint64(x.heap.Base(pe)); at != 0 {
			first, end = min(first, at&^(tib-1)), max(end, (at+x.heap.Size()+tib-1)&^(tib-1))
		}
	}
	return uintptr(first), end - first
}

// fail breaks the device once: waits of kernels end, later ones are refused with this reason.
func (x *accelerator) fail(why error) {
	x.mu.Lock()
	first := x.broken == nil
	if first {
		x.broken = why
	}
	x.mu.Unlock()
	if !first || x.state == nil {
		return
	}
	if err := x.state.Abort(int32(status.Of(why))); err != nil && !contextLost(err) {
		x.w.logf("device: ending the waits of kernels failed: %v", err)
	}
}

// health is why nothing waits on the device any more, nil while it works.
func (x *accelerator) health() error {
	x.mu.Lock()
	defer x.mu.Unlock()
	return x.broken
}

// DeviceHealth is why on-stream operations that wait are refused, nil while they work.
func (w *World) DeviceHealth() error {
	x, err := w.needDevice("device_health")
	if err != nil {
		return err
	}
	x.hearVerdict()
	return x.health()
}

// finish waits for the work on the library's streams before the peers' memory goes. Streams of others may be gone already: who queued
// something there waits for it before the world ends.
func (x *accelerator) finish(timeout time.Duration) {
	if x.waiting() && (timeout < 0 || timeout > parting) {
		timeout = parting
	}
	ctx, stop := context.Background(), context.CancelFunc(func() {})
	if timeout >= 0 {
		ctx, stop = context.WithTimeout(ctx, timeout)
	}
	defer stop()
	for _, s := range append(x.busy(), device.Own, x.aside) {
		err := x.dev.Wait(ctx, s)
		if x.gone = x.gone || contextLost(err); err != nil && !x.gone {
			x.w.logf("finalize: stream %#x of the device: %v", uintptr(s), err)
		}
	}
}

// contextLost says whether somebody has reset the device before the world ended, as frameworks do at exit: all that was on it is gone, and
// there is nothing to wait for or to give back.
func contextLost(err error) bool { return err != nil && strings.Contains(err.Error(), "context lost") }

// parting is how long a world that ends waits for kernels that wait for peers; these may be leaving as well.
const parting = 5 * time.Second

// waiting says whether something queued here may still wait for a peer.
func (x *accelerator) waiting() bool {
	x.mu.Lock()
	defer x.mu.Unlock()
	for _, t := range x.tails {
		if t.waits {
			return true
		}
	}
	return false
}

// endWaits ends kernels that still wait, of whoever's streams, before their memory goes.
func (x *accelerator) endWaits() {
	if x.waiting() && !x.gone {
		x.fail(status.New(status.Finalized, "", "world %s was finalized", x.w.label))
		x.finish(parting) // they end at once, but the machine may be busy, and what still runs would touch memory that is gone
		x.drainWaiters(parting)
	}
}

// drainWaiters gives the kernels that were told to end the time to do so, on others' streams as well: a process that ends by an exception has not
// waited for them, and they must not run while their memory goes.
func (x *accelerator) drainWaiters(most time.Duration) {
	ctx, stop := context.WithTimeout(context.Background(), most)
	defer stop()
	x.mu.Lock()
	var streams []device.Stream
	for s := range x.tails {
		if s != device.Own && !x.made[s] {
			streams = append(streams, s)
		}
	}
	x.mu.Unlock()
	for _, s := range streams {
		if err := x.dev.Wait(ctx, s); err != nil && !contextLost(err) {
			x.w.logf("finalize: stream %#x of the device: %v", uintptr(s), err)
		}
	}
}

// close gives everything back, in reverse. Errors have no reader any more but the log.
func (x *accelerator) close() {
	x.endWaits()
	x.watch.end(x)
	note := func(what string, err error) {
		if x.gone = x.gone || contextLost(err); err != nil && !x.gone {
			x.w.logf("closing the device: %s: %v", what, err)
		}
	}
	if x.state != nil {
		note("state", x.state.Close())
	}
	if x.bounce != 0 {
		note("staging", x.dev.Free(x.bounce))
		note("pinned staging", x.dev.FreeHost(x.pinned))
	}
	if x.slot != 0 {
		note("pinned memory", x.dev.FreeHost(x.slot))
	}
	for _, s := range []device.Stream{x.watch.probe, x.aside} {
		if s != 0 {
			note("stream", x.dev.FreeStream(s))
		}
	}
	x.hideHost()
	if x.heap != nil {
		note("heap", x.heap.Close())
	}
	note("device", x.dev.Close())
}

// symmetric says whether an address is in this PE's part of the symmetric heap on the device.
func (x *accelerator) symmetric(at uintptr, n uint64) bool { return x != nil && x.arena.covers(at, n) }

// holds says whether an address is memory of the device.
func (x *accelerator) holds(at uintptr) bool { return x != nil && at != 0 && x.dev.Holds(at) }

// twin is where a PE's copy of [at, at+n) is mapped here.
func (x *accelerator) twin(op string, at uintptr, n uint64, pe int) (uintptr, error) {
	if err := x.w.usable(op); err != nil {
		return 0, err
	}
	if err := x.w.CheckPE(op, pe); err != nil {
		return 0, err
	}
	if !x.arena.covers(at, n) {
		return 0, status.New(status.NotSymmetric, op, "[%#x, +%d) is not inside this PE's symmetric heap on the device [%#x, +%d)", at, n, x.arena.low, x.arena.size)
	}
	base := x.heap.Base(pe)
	if base == 0 {
		return 0, status.At(status.Unsupported, op, pe, "its device memory is not mapped here (%s); use symmetric host memory, which any peer reaches", x.far[pe])
	}
	return base + uintptr(x.arena.off) + (at - x.arena.low), nil
}

// reaches says whether all members of a team have mapped each other's device memory; the same answer on all of them.
func (x *accelerator) reaches(t *Team) error {
	for _, a := range t.pes {
		for _, b := range t.pes {
			if a != b && !x.near[a][b] {
				return status.At(status.Unsupported, "", b, "PE %d has not mapped its device memory; use the collectives on host memory", a)
			}
		}
	}
	return nil
}
