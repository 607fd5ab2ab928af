package world

import (
	"context"
	"strings"

	"goshmem/gocore/fabric"
	"goshmem/gocore/fabric/shm"
	"goshmem/gocore/fabric/tcp"
	"goshmem/gocore/hot"
	"goshmem/gocore/status"
)

// network is how this PE reaches all others: mapped memory where there is some, TLS over TCP elsewhere.
type network struct {
	fabric.Transport // the router, once bound
	w                *World
	router           *fabric.Router
	tcp              *tcp.Transport // nil where nobody is reached by it
}

// listen opens what unmapped peers connect to. A PE alone, or one that is told to map everybody, opens nothing.
func (w *World) listen(secret []byte) (*network, error) {
	n := &network{w: w}
	if w.n == 1 || w.cfg.Transport == "shm" {
		return n, nil
	}
	t, err := tcp.New(tcp.Config{Me: w.me, N: w.n, Secret: secret, Memory: own{w}, Interface: w.cfg.Interface, Lost: n.report})
	if err != nil {
		return nil, err
	}
	n.tcp = t
	return n, nil
}

func (n *network) addresses() []string {
	if n.tcp == nil {
		return nil
	}
	return n.tcp.Addresses()
}

// connect reaches the PEs that are not mapped. Where all are, the listener closes: nobody may come any more.
func (w *World) connect(ctx context.Context, far []int) error {
	if len(far) == 0 {
		if w.net.tcp != nil {
			_ = w.net.tcp.Close() // it has no connections
			w.net.tcp = nil
		}
		return nil
	}
	if w.net.tcp == nil {
		return status.At(status.PeerUnreachable, "init", far[0], "its memory cannot be mapped (%s) and SHMEM_TRANSPORT=shm allows nothing else", w.how[far[0]])
	}
	peers := map[int][]string{}
	for _, pe := range far {
		peers[pe] = w.peers[pe].Net
	}
	return w.net.tcp.Connect(ctx, peers)
}

// bind makes the router once it is known who is mapped.
func (n *network) bind(w *World) {
	mapped := shm.New(shm.Config{N: w.n, Segment: n.segment, Ring: w.hot.RingPE, Dead: w.lost, Copy: hot.Copy})
	routes := make([]fabric.Route, w.n)
	for pe := range w.n {
		if w.segs[pe] != nil {
			routes[pe] = fabric.Route{Via: mapped, Reason: "mapped: " + w.how[pe]}
		} else {
			routes[pe] = fabric.Route{Via: n.tcp, Reason: "TLS over TCP, not mapped: " + w.how[pe]}
		}
	}
	n.router = fabric.NewRouter(routes)
	n.Transport = n.router
}

func (n *network) segment(pe int, seg uint8) []byte {
	if seg != 0 || n.w.segs[pe] == nil {
		return nil
	}
	return n.w.segs[pe].Bytes()
}

// report is told by tcp that a connection ended.
func (n *network) report(pe int, err error) {
	m := n.w.monitor
	if m == nil { // still coming up: connect or the rendezvous fails by itself
		return
	}
	if n.w.left(pe) {
		return // it said that it leaves
	}
	m.ReportLost(pe, err)
}

// Of is the name of the transport to a PE, Reason why it is that one.
func (n *network) Of(pe int) string { return n.router.Of(pe).Via.Name() }

// Reason is why a PE is reached the way it is.
func (n *network) Reason(pe int) string { return strings.TrimSpace(n.router.Of(pe).Reason) }

// Close closes whatever was opened.
func (n *network) Close() error {
	if n.router != nil {
		return n.router.Close()
	}
	if n.tcp != nil {
		return n.tcp.Close()
	}
	return nil
}

// own is this PE's memory as remote requests see it.
type own struct{ w *World }

// Span is the bytes at ref, if they are all in the segment.
func (o own) Span(ref fabric.Ref, n uint64) ([]byte, error) {
	all := o.w.seg.Bytes()
	off := ref.Off()
	if ref.Seg() != 0 || off > uint64(len(all)) || n > uint64(len(all))-off {
		return nil, status.New(status.NotSymmetric, "serve", "segment %d, [%d, +%d) is outside of the %d bytes of PE %d", ref.Seg(), off, n, len(all), o.w.me)
	}
	return all[off : off+n : off+n], nil
}

// Atomic updates a word in place, as the C hot path does.
func (o own) Atomic(ref fabric.Ref, op fabric.Atomic) (uint64, error) {
	mem, err := o.Span(ref, uint64(op.Width))
	if err != nil {
		return 0, err
	}
	return fabric.Update(mem, op)
}

// Ring wakes this PE's waiters.
func (o own) Ring() { hot.HeaderAt(o.w.seg.Bytes()).Ring() }
