package acl

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"

	"goshmem/gocore/status"
)

// way is how a heap travels to other processes.
type way uint32

// The ways; the numbers are part of cards.
const (
	byFabric way = iota + 1 // a handle that works between servers
	byHandle                // a handle for this server
	byList                  // the same by the older calls: the owner lists who may
	byKey                   // plain memory, known by a text
)

// String names the way for info.
func (w way) String() string {
	switch w {
	case byFabric:
		return "vmm fabric"
	case byHandle:
		return "vmm default"
	case byList:
		return "vmm default, listed processes"
	case byKey:
		return "ipc"
	}
	return fmt.Sprintf("way %d", uint32(w))
}

// export is the entry point that a way begins with.
func (w way) export() string {
	switch w {
	case byList:
		return "aclrtMemExportToShareableHandle"
	case byKey:
		return "aclrtIpcMemGetExportKey"
	}
	return "aclrtMemExportToShareableHandleV2"
}

// ways lists what to try on this chip, the best first.
func (d *Device) ways() []way {
	if d.fabric() {
		return []way{byFabric, byHandle, byList, byKey}
	}
	return []way{byHandle, byList, byKey}
}

// makePortion makes this PE's memory, zero and known to other processes. Nothing is left behind when it fails.
func (d *Device) makePortion(w way, size uint64) (portion, *failure) {
	if name := w.export(); d.b.symbol(name) == 0 {
		return portion{}, &failure{call: name, code: codeAbsent}
	}
	if w == byKey {
		return d.makeKeyed(size)
	}
	m, f := d.mapNew(size, 0)
	if f != nil {
		return portion{}, f
	}
	p := portion{mapped: m, way: w}
	if w == byList {
		var word uint64
		word, f = d.b.exportListed(m.handle)
		p.key.setWord(word)
	} else {
		p.key, f = d.b.exportHandle(m.handle, w == byFabric)
	}
	if f != nil {
		_ = d.unmapAll(m) // the first failure is the one to report
		return portion{}, f
	}
	return p, nil
}

func (d *Device) makeKeyed(size uint64) (portion, *failure) {
	at, f := d.b.malloc(size, true)
	if f != nil {
		return portion{}, f
	}
	p := portion{mapped: mapped{at: at}, way: byKey}
	if f = d.b.clearNow(at, size); f == nil {
		p.key, f = d.b.exportKey(at, size)
	}
	if f != nil {
		_ = d.b.freeMemory(at) // as above
		return portion{}, f
	}
	return p, nil
}

// takePortion maps a peer's memory.
func (d *Device) takePortion(c *card, size uint64) (portion, *failure) {
	p := portion{way: c.Way, key: c.Shared}
	var f *failure
	if c.Way == byKey {
		p.at, f = d.b.importKey(&p.key)
		return p, f
	}
	var handle uintptr
	if c.Way == byList {
		handle, f = d.b.importListed(c.Shared.word(), d.id)
	} else {
		handle, f = d.b.importHandle(&p.key, c.Way == byFabric)
	}
	if f == nil {
		p.mapped, f = d.mapImported(size, handle)
	}
	return p, f
}

// endPortion ends one PE's memory as mapped here; own frees it as well.
func (d *Device) endPortion(p portion, own bool) *failure {
	if p.way != byKey {
		return d.unmapAll(p.mapped)
	}
	f := d.b.closeKey(&p.key)
	if own {
		if g := d.b.freeMemory(p.at); f == nil {
			f = g
		}
	}
	return f
}

func (s *shared) word() uint64       { return binary.NativeEndian.Uint64(s[:]) }
func (s *shared) setWord(w uint64)   { binary.NativeEndian.PutUint64(s[:], w) }
func (w way) needsPeerAccess() bool  { return w == byHandle || w == byList }
func (w way) staysOnOneServer() bool { return w != byFabric }

// card is what a peer needs to map a PE's part.
type card struct {
	Magic    uint32
	Way      way
	PE       uint32
	Physical int32 // the device's number on its server, -1 when the release does not tell
	ID       int32 // its number as its own process sees it
	PID      int32 // as lists of processes want it
	Size     uint64
	Server   [36]byte // the boot id of its server
	Shared   shared
}

const cardMagic = 0x48534133 // "3ASH"

func (d *Device) newCard(me int, size uint64) card {
	c := card{Magic: cardMagic, PE: uint32(me), Physical: -1, ID: int32(d.id), PID: int32(os.Getpid()), Size: size}
	if n, f := d.b.physical(d.id); f == nil {
		c.Physical = int32(n)
	}
	if pid, f := d.b.bareTgid(); f == nil {
		c.PID = pid
	}
	if id, err := os.ReadFile("/proc/sys/kernel/random/boot_id"); err == nil { // unreadable: all servers look alike
		copy(c.Server[:], bytes.TrimSpace(id))
	}
	return c
}

func (c *card) bytes() []byte {
	b, err := binary.Append(nil, binary.LittleEndian, c)
	if err != nil {
		panic(err) // a struct of fixed-size fields
	}
	return b
}

func readCard(pe int, text []byte) (*card, error) {
	c := new(card)
	n, err := binary.Decode(text, binary.LittleEndian, c)
	if err != nil || n != len(text) || c.Magic != cardMagic || int(c.PE) != pe {
		return nil, status.At(status.InvalidArgument, "device heap", pe, "the card of %d bytes is not its card for an Ascend device; all PEs need the same kind of device and the same version of shmem", len(text))
	}
	return c, nil
}

// reach says whether a peer's memory can be mapped from here, and enables what that needs.
func (d *Device) reach(pe int, c, own *card) error {
	const op = "map device heap"
	if c.PID == own.PID && c.Server == own.Server {
		return status.At(status.PeerUnreachable, op, pe, "it is in this process; the runtime shares device memory between processes only")
	}
	far := c.Server != own.Server
	if far && c.Way.staysOnOneServer() {
		return status.At(status.PeerUnreachable, op, pe, "it is on another server, and its heap is shared by %s, which reaches one server only (910_93 has fabric handles)", c.Way)
	}
	if far {
		return nil
	}
	peer, ok := d.visible(c, own)
	if ok && peer == d.id {
		return nil
	}
	refused := "its device is not visible to this process; let ASCEND_RT_VISIBLE_DEVICES include it"
	if ok {
		refused = d.enable(peer)
	}
	if refused == "" || !c.Way.needsPeerAccess() {
		return nil
	}
	return status.At(status.PeerUnreachable, op, pe, "%s", refused)
}

// visible is the number under which this process sees a peer's device.
func (d *Device) visible(c, own *card) (int, bool) {
	if c.Physical < 0 || own.Physical < 0 {
		return int(c.ID), int(c.ID) < d.count // an old release: numbers are taken to mean the same everywhere
	}
	for id := range d.count {
		if physical, f := d.b.physical(id); f == nil && physical == int(c.Physical) {
			return id, true
		}
	}
	return 0, false
}

// enable lets this device reach another, once; the text says why it cannot.
func (d *Device) enable(peer int) string {
	if can, f := d.b.canAccessPeer(d.id, peer); f == nil && !can {
		return fmt.Sprintf("device %d cannot reach device %d (aclrtDeviceCanAccessPeer says no); npu-smi info -t topo shows the links", d.id, peer)
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.peers[peer] {
		return ""
	}
	if f := d.b.enablePeerAccess(peer); f != nil {
		return f.words()
	}
	d.peers[peer] = true
	return ""
}
