package fabric

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"goshmem/gocore/status"
)

// Route is the transport that reaches a PE, and why it was chosen. A nil Via means that the PE cannot be reached.
type Route struct {
	Via    Transport
	Reason string
}

// Router is a Transport that sends each operation on its PE's route. The table does not change once operations run. It owns the
// transports: Close closes each of them.
type Router struct {
	routes []Route
	all    []Transport // each transport once
}

// NewRouter makes a router; routes are by PE. Transports that serve no PE but must be closed with it can be given as extra.
func NewRouter(routes []Route, extra ...Transport) *Router {
	r := &Router{routes: routes}
	for _, route := range routes {
		r.own(route.Via)
	}
	for _, t := range extra {
		r.own(t)
	}
	return r
}

func (r *Router) own(t Transport) {
	if t == nil {
		return
	}
	for _, known := range r.all {
		if known == t {
			return
		}
	}
	r.all = append(r.all, t)
}

// Of is the route to a PE, for shmem.info() and for error texts.
func (r *Router) Of(pe int) Route { return r.routes[pe] }

func (r *Router) via(pe int) (Transport, error) {
	if pe < 0 || pe >= len(r.routes) {
		return nil, status.At(status.InvalidPE, "fabric", pe, "PEs are 0 to %d", len(r.routes)-1)
	}
	if r.routes[pe].Via == nil {
		return nil, status.At(status.PeerUnreachable, "fabric", pe, "no transport reaches it: %s", r.routes[pe].Reason)
	}
	return r.routes[pe].Via, nil
}

// Name joins the names of the transports in use.
func (r *Router) Name() string {
	var names []string
	for _, t := range r.all {
		names = append(names, t.Name())
	}
	return strings.Join(names, "+")
}

// Abilities are those that every transport in use has.
func (r *Router) Abilities() Abilities {
	a := Abilities{LoadStore: true, StreamOrdered: true, NativeAtomics: true, Encrypted: true, Authenticated: true}
	for _, t := range r.all {
		b := t.Abilities()
		a.LoadStore = a.LoadStore && b.LoadStore
		a.StreamOrdered = a.StreamOrdered && b.StreamOrdered
		a.NativeAtomics = a.NativeAtomics && b.NativeAtomics
		a.Encrypted = a.Encrypted && b.Encrypted
		a.Authenticated = a.Authenticated && b.Authenticated
	}
	return a
}

// Put implements Transport.
func (r *Router) Put(ctx context.Context, dst Addr, src []byte) error {
	t, err := r.via(dst.PE)
	if err != nil {
		return err
	}
	return t.Put(ctx, dst, src)
}

// Get implements Transport.
func (r *Router) Get(ctx context.Context, dst []byte, src Addr) error {
	t, err := r.via(src.PE)
	if err != nil {
		return err
	}
	return t.Get(ctx, dst, src)
}

// Atomic implements Transport.
func (r *Router) Atomic(ctx context.Context, at Addr, op Atomic) (uint64, error) {
	t, err := r.via(at.PE)
	if err != nil {
		return 0, err
	}
	return t.Atomic(ctx, at, op)
}

// PutSignal implements Transport.
func (r *Router) PutSignal(ctx context.Context, dst Addr, src []byte, sig Addr, op SignalOp, value uint64) error {
	t, err := r.via(dst.PE)
	if err != nil {
		return err
	}
	return t.PutSignal(ctx, dst, src, sig, op, value)
}

// Fence implements Transport.
func (r *Router) Fence(ctx context.Context, pe int) error {
	t, err := r.via(pe)
	if err != nil {
		return err
	}
	return t.Fence(ctx, pe)
}

// Quiet waits for every transport, also after one of them failed, and joins their errors.
func (r *Router) Quiet(ctx context.Context) error {
	return r.each(func(t Transport) error { return t.Quiet(ctx) })
}

// Close closes every transport.
func (r *Router) Close() error { return r.each(Transport.Close) }

func (r *Router) each(do func(Transport) error) error {
	var errs []error
	for _, t := range r.all {
		if err := do(t); err != nil {
			errs = append(errs, err)
		}
	}
	if len(errs) == 1 {
		return errs[0]
	}
	return errors.Join(errs...)
}

// String shows the table: one PE a line.
func (r *Router) String() string {
	var s strings.Builder
	for pe, route := range r.routes {
		name := "none"
		if route.Via != nil {
			name = route.Via.Name()
		}
		fmt.Fprintf(&s, "PE %d: %s (%s)\n", pe, name, route.Reason)
	}
	return s.String()
}
