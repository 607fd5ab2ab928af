package bootstrap

import (
	"encoding/hex"
	"net"
	"net/netip"
	"sync"

	"goshmem/gocore/status"
)

// Offer is a unique id together with the sockets that wait for its job: what the process that makes an id keeps until it joins.
// Whoever joins with the id in this process becomes the host, whatever its rank.
type Offer struct {
	UID []byte

	mu        sync.Mutex
	listeners []net.Listener
	used      bool
}

// NewOffer makes a unique id and listens from now on, on the addresses that the interface choice names (see [Candidates]), or on
// exactly the address and port it is ("10.0.0.1:9000", "[fd00::1]:9000"). Close it when no join follows.
func NewOffer(choice string) (*Offer, error) {
	port := uint16(0)
	var ips []netip.Addr
	if exact, err := netip.ParseAddrPort(choice); err == nil {
		ips, port = []netip.Addr{exact.Addr().Unmap()}, exact.Port()
	} else if ips, err = Candidates(choice); err != nil {
		return nil, err
	}
	o := &Offer{}
	var addrs []netip.AddrPort
	var last error
	for _, ip := range ips {
		if len(addrs) == maxCandidates {
			break
		}
		l, err := net.Listen("tcp", netip.AddrPortFrom(ip, port).String())
		if err != nil {
			last = err // an address that cannot be bound (IPv6 switched off) is no candidate
			continue
		}
		o.listeners = append(o.listeners, l)
		a := l.Addr().(*net.TCPAddr).AddrPort()
		addrs = append(addrs, netip.AddrPortFrom(a.Addr().Unmap(), a.Port()))
	}
	if len(addrs) == 0 {
		return nil, status.Wrap(status.Rendezvous, "unique id", last, "cannot listen on any of %v", ips)
	}
	uid, err := encodeUID(newSecret(), addrs)
	if err != nil {
		o.Close()
		return nil, err
	}
	o.UID = uid
	return o, nil
}

// Hex is the id as SHMEM_UNIQUE_ID takes it.
func (o *Offer) Hex() string { return hex.EncodeToString(o.UID) }

// Close stops listening when no join has begun; afterwards it does nothing.
func (o *Offer) Close() {
	o.mu.Lock()
	defer o.mu.Unlock()
	if !o.used {
		o.used = true
		for _, l := range o.listeners {
			_ = l.Close()
		}
	}
}

// take hands the sockets over to a join.
func (o *Offer) take() ([]net.Listener, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.used {
		return nil, status.New(status.Rendezvous, opJoin, "this unique id was used or closed already; make a new one for every init")
	}
	o.used = true
	return o.listeners, nil
}
