package bootstrap

import (
	"net"
	"net/netip"
	"sort"
	"strings"

	"goshmem/gocore/status"
)

// Candidates lists the addresses to listen on for an interface choice, best first: "" is loopback and every other usable
// address; else a comma-separated list of interface names, addresses or prefixes (10.0.0.0/8). IPv6 link-local addresses are left
// out unless named, since a peer would need to know the zone.
func Candidates(choice string) ([]netip.Addr, error) {
	all, err := hostAddresses()
	if err != nil {
		return nil, status.Wrap(status.System, "interfaces", err, "cannot list the network interfaces")
	}
	var out []netip.Addr
	for _, want := range splitList(choice) {
		for _, a := range all {
			if a.matches(want) {
				out = append(out, a.ip)
			}
		}
	}
	if len(out) == 0 {
		return nil, status.New(status.BadConfig, "interfaces", "no usable address for SHMEM_INTERFACE=%q; this host has %s", choice, describe(all))
	}
	return unique(out), nil
}

type hostAddress struct {
	name string
	ip   netip.Addr
}

func (a hostAddress) matches(want string) bool {
	if want == "" {
		return true
	}
	if p, err := netip.ParsePrefix(want); err == nil {
		return p.Contains(a.ip)
	}
	if ip, err := netip.ParseAddr(want); err == nil {
		return ip.Unmap() == a.ip
	}
	return want == a.name
}

// hostAddresses lists the addresses of interfaces that are up: loopback first, then IPv4, then IPv6.
func hostAddresses() ([]hostAddress, error) {
	interfaces, err := net.Interfaces()
	if err != nil {
		return nil, err
	}
	var out []hostAddress
	for _, i := range interfaces {
		if i.Flags&net.FlagUp == 0 {
			continue
		}
		addrs, err := i.Addrs()
		if err != nil {
			continue // the interface went away between the two questions
		}
		for _, a := range addrs {
			p, err := netip.ParsePrefix(a.String())
			if err != nil || p.Addr().IsLinkLocalUnicast() && p.Addr().Is6() {
				continue
			}
			out = append(out, hostAddress{i.Name, p.Addr().Unmap()})
		}
	}
	sort.SliceStable(out, func(x, y int) bool { return rank(out[x].ip) < rank(out[y].ip) })
	return out, nil
}

func rank(a netip.Addr) int {
	r := 0
	if !a.IsLoopback() {
		r += 2
	}
	if a.Is6() {
		r++
	}
	return r
}

func splitList(s string) []string {
	parts := strings.Split(s, ",")
	for i := range parts {
		parts[i] = strings.TrimSpace(parts[i])
	}
	return parts
}

func unique(in []netip.Addr) []netip.Addr {
	seen := map[netip.Addr]bool{}
	var out []netip.Addr
	for _, a := range in {
		if !seen[a] {
			seen[a] = true
			out = append(out, a)
		}
	}
	return out
}

func describe(all []hostAddress) string {
	var parts []string
	for _, a := range all {
		parts = append(parts, a.name+"="+a.ip.String())
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// isLoopback says whether every address a host name stands for stays inside this host.
func isLoopback(hostport string) bool {
	name, _, err := net.SplitHostPort(hostport)
	if err != nil {
		return false
	}
	if name == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(name)
	return err == nil && ip.Unmap().IsLoopback()
}

// checkEndpoint refuses what cannot be an endpoint of PE 0.
func checkEndpoint(endpoint string) error {
	name, port, err := net.SplitHostPort(endpoint)
	if err != nil || name == "" || port == "" || port == "0" {
		return status.New(status.BadConfig, "rendezvous", "%q is not an endpoint; write host:port or [v6]:port with the fixed port PE 0 listens on", endpoint)
	}
	return nil
}
