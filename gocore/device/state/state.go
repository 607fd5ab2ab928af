// Package state is the struct in device memory through which kernels find PEs, teams and the abort word
// (kernels/include/device/shmem_state.h).
//
// Part of it is symmetric: the flags of the teams' barriers take the last [Reserved] bytes of every PE's heap. Make the heap that much
// larger, and hand out only what is below.
package state

import (
	"context"
	"encoding/binary"
	"fmt"
	"sync"
	"time"

	"goshmem/gocore/device"
	"goshmem/gocore/status"
)

// Reserved is how many bytes at the end of each PE's heap belong to the state.
const Reserved uint64 = teamSyncBytes * maxTeams

// MaxTeams is how many entries there are; entry 0 is the world.
const MaxTeams = maxTeams

// patience bounds every step here: copies of a few bytes on a stream that nobody else uses.
const patience = 10 * time.Second

// Options say whose state it is.
type Options struct {
	Me, N int
	// Heap is where the peers are mapped; peers that are not are out of kernels' reach.
	Heap device.Heap
}

// State is the state of one world on one device.
//
// States: open -> closed. Closed stays closed.
type State struct {
	d    device.Device
	o    Options
	at   uintptr // the struct
	own  uintptr // everything else that is local; see the offsets below
	word uintptr // pinned: the abort word as it is copied from

	mu     sync.Mutex    // guards what follows
	stage  uintptr       // pinned: what put copies from
	side   device.Stream // of its own, so that nothing here, the abort word above all, stands behind a kernel
	teams  map[int]uintptr
	closed bool
}

var _ device.State = (*State)(nil)

// stageBytes holds the largest of what is put: a team, or the addresses of all PEs.
const stageBytes = max(tmBytes, 8*maxPEs)

// windows is where kernels stage in the unified buffer until told otherwise, by engine: MTE, SDMA, RDMA, UDMA. Those with queues build
// their entries at its end, apart from what MTE moves.
var windows = [4]struct {
	at   uint64
	size int
}{{0, 16 << 10}, {191 << 10, 64}, {190 << 10, 128}, {189 << 10, 128}}

// Offsets in the local block.
const (
	ownAbort    = 0
	ownCounters = line // one line for each team
	ownCore     = ownCounters + line*maxTeams
	ownPeers    = ownCore + coreSyncBytes + line
)

// New puts the state of a world into device memory. Every PE calls it when its heap is mapped, then all meet, then kernels may
// run. Where the chip lets us, the struct is at the address that kernels know without being told.
func New(d device.Device, o Options) (*State, error) {
	if o.N < 1 || o.N > maxPEs || o.Me < 0 || o.Me >= o.N || o.Heap == nil || o.Heap.Size() <= Reserved {
		return nil, status.New(status.InvalidArgument, "device state", "PE %d of %d; at most %d PEs, and a heap of more than %d bytes", o.Me, o.N, maxPEs, Reserved)
	}
	s := &State{d: d, o: o, teams: map[int]uintptr{}}
	if err := s.make(); err != nil {
		_ = s.Close() // the first failure is the one to report
		return nil, err
	}
	return s, nil
}

func (s *State) make() (err error) {
	if s.side, err = s.d.NewStream(); err != nil {
		return err
	}
	if s.word, err = s.d.AllocHost(line); err != nil {
		return err
	}
	if s.stage, err = s.d.AllocHost(stageBytes); err != nil {
		return err
	}
	if s.own, err = s.d.Alloc(ownPeers + 16*uint64(s.o.N)); err != nil {
		return err
	}
	if s.at, err = s.d.AllocAt(fixedBytes, fixedAddress); err != nil {
		if s.at, err = s.d.Alloc(stBytes); err != nil { // Facts say why it is not at the fixed address
			return err
		}
	}
	if err := s.d.Clear(s.pool(), Reserved, s.side); err != nil {
		return err
	}
	if err := s.put(s.at, s.encode()); err != nil {
		return err
	}
	return s.refresh()
}

// pool is where the flags of all teams begin.
func (s *State) pool() uintptr { return s.o.Heap.Base(s.o.Me) + uintptr(s.o.Heap.Size()-Reserved) }

// encode is the struct as it is when the world comes up; [State.refresh] fills what depends on the peers.
func (s *State) encode() []byte {
	b := make([]byte, stBytes)
	i32 := func(at, v int) { binary.LittleEndian.PutUint32(b[at:], uint32(v)) }
	u64 := func(at int, v uint64) { binary.LittleEndian.PutUint64(b[at:], v) }
	i32(stVersion, 1)
	i32(stMe, s.o.Me)
	i32(stN, s.o.N)
	u64(stHeapBase, uint64(s.o.Heap.Base(s.o.Me)))
	u64(stPeers, uint64(s.own+ownPeers))
	u64(stHeapSize, s.o.Heap.Size())
	u64(stSyncPool, uint64(s.pool()))
	u64(stSyncCounter, uint64(s.own+ownCounters))
	u64(stCoreSyncPool, uint64(s.own+ownCore))
	u64(stCoreSyncCounter, uint64(s.own+ownCore+coreSyncBytes))
	b[stInitialized], b[stCreated] = 1, 1
	for engine, window := range windows {
		u64(stMTE+engine*ubBytes+ubAt, window.at)
		i32(stMTE+engine*ubBytes+ubSize, window.size)
	}
	u64(stMagic, magic)
	u64(stAbort, uint64(s.own+ownAbort))
	return b
}

// Address implements [device.State].
func (s *State) Address() uintptr { return s.at }

// SetBuffer moves the staging buffer that kernels use when they are given none: at bytes into the unified buffer, size bytes, with
// this event. engine is 0 MTE, 1 SDMA, 2 RDMA, 3 UDMA. No kernel may be running.
func (s *State) SetBuffer(engine int, at int64, size, event uint32) error {
	const op = "set kernel buffer"
	if engine < 0 || engine > 3 || at < 0 || at%32 != 0 || size == 0 || size%32 != 0 || event > 5 {
		return status.New(status.InvalidArgument, op, "engine %d of 0..3, offset %d and size %d in units of 32 bytes, event %d of 0..5", engine, at, size, event)
	}
	b := binary.LittleEndian.AppendUint64(nil, uint64(at))
	b = binary.LittleEndian.AppendUint32(b, size)
	b = binary.LittleEndian.AppendUint32(b, event)
	return s.locked(op, func() error { return s.put(s.at+uintptr(stMTE+engine*ubBytes), b) })
}

// Refresh implements [device.State].
func (s *State) Refresh() error { return s.locked("refresh device state", s.refresh) }

func (s *State) refresh() error {
	bases, topo := make([]byte, 8*s.o.N), make([]byte, s.o.N)
	for pe := range s.o.N {
		base := s.o.Heap.Base(pe)
		binary.LittleEndian.PutUint64(bases[8*pe:], uint64(base))
		if base != 0 {
			topo[pe] = topoMTE // the engines with queues need drivers that nobody has written (kernels/README.md)
		}
	}
	if err := s.put(s.own+ownPeers, bases); err != nil {
		return err
	}
	return s.put(s.at+stTopo, topo)
}

// HostHeap is the heaps in host memory, as far as kernels reach them.
type HostHeap struct {
	Low   uintptr   // where the CPU has this PE's
	Size  uint64    // of each
	Bases []uintptr // by PE: where kernels find it, 0 where they do not; nil: nowhere
}

// SetHostHeap tells kernels of the heaps in host memory. No kernel may be running.
func (s *State) SetHostHeap(h HostHeap) error {
	const op = "set host heap"
	if h.Bases == nil {
		h = HostHeap{Bases: make([]uintptr, s.o.N)}
	}
	if len(h.Bases) != s.o.N {
		return status.New(status.InvalidArgument, op, "%d heaps in a world of %d PEs", len(h.Bases), s.o.N)
	}
	var table []byte
	for _, base := range h.Bases {
		table = binary.LittleEndian.AppendUint64(table, uint64(base))
	}
	return s.locked(op, func() error {
		if err := s.put(s.own+s.hostPeers(), table); err != nil {
			return err
		}
		for at, v := range map[uintptr]uint64{stHostPeers: uint64(s.own + s.hostPeers()), stHostBase: uint64(h.Bases[s.o.Me]), stHostSize: h.Size, stHostAddress: uint64(h.Low)} {
			if err := s.put(s.at+at, binary.LittleEndian.AppendUint64(nil, v)); err != nil {
				return err
			}
		}
		return nil
	})
}

// hostPeers is the offset of that table in the local block.
func (s *State) hostPeers() uintptr { return ownPeers + 8*uintptr(s.o.N) }

// locked runs f with mu held, while the state is open.
func (s *State) locked(op string, f func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return status.New(status.Finalized, op, "the world of this device state has ended")
	}
	return f()
}

// put writes host bytes to device memory, after what the side stream has before it, and returns when they are there. Needs mu, or
// a state that nobody else has yet.
func (s *State) put(at uintptr, b []byte) error {
	fill(s.stage, b)
	if err := s.d.Copy(at, s.stage, uint64(len(b)), s.side); err != nil {
		return err
	}
	return s.wait()
}

func (s *State) wait() error {
	ctx, cancel := context.WithTimeoutCause(context.Background(), patience,
		status.New(status.Timeout, "device state", "a few bytes were not copied in %v; the device is stuck", patience))
	defer cancel()
	return s.d.Wait(ctx, s.side)
}

// Abort implements [device.State]. It has a stream of its own, so it reaches kernels that run.
func (s *State) Abort(reason int32) error {
	if reason == 0 {
		return status.New(status.InvalidArgument, "abort kernels", "reason 0 means that nothing is aborted")
	}
	return s.locked("abort kernels", func() error { return s.sign(reason) })
}

func (s *State) sign(reason int32) error {
	setWord(s.word, reason)
	if err := s.d.Copy(s.own+ownAbort, s.word, 4, s.side); err != nil {
		return err
	}
	return s.wait()
}

// Resume implements [device.State].
func (s *State) Resume() error {
	return s.locked("resume kernels", func() error {
		if err := s.d.Clear(s.own+ownCore, coreSyncBytes+line, s.side); err != nil {
			return err
		}
		if err := s.wait(); err != nil {
			return err
		}
		return s.sign(0)
	})
}

// Close implements [device.State]. No kernel of the world may be running.
func (s *State) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return nil
	}
	s.closed = true
	var first error
	note := func(err error) {
		if err != nil && first == nil {
			first = err
		}
	}
	if s.side != device.Own {
		note(s.d.FreeStream(s.side))
	}
	for _, at := range s.teams {
		note(s.d.Free(at))
	}
	note(s.d.Free(s.at))
	note(s.d.Free(s.own))
	note(s.d.FreeHost(s.word))
	note(s.d.FreeHost(s.stage))
	return first
}

// String says where the state is, for logs.
func (s *State) String() string { return fmt.Sprintf("device state of PE %d at %#x", s.o.Me, s.at) }
