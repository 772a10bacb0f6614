package hook

import (
	"context"
	"fmt"
	"net"
	"net/netip"
	"net/url"
	"slices"
	"strconv"
	"syscall"
)

// This file keeps hooks away from addresses that only the manager can reach. Any user who may write a controller may
// write any URL, and the metadata service, the node and the API server trust the address of the manager.

// Guard says which addresses hooks may have. The zero value refuses what is link-local, loopback, multicast or
// unspecified, metadata services, and the ports of kubelets. It checks the address that is dialled, so a name that
// resolves to another address than before does not matter.
type Guard struct {
	// Allow lists addresses that hooks may have nevertheless, such as those of a sidecar.
	Allow []netip.Prefix
	// APIServers are host:port of the API server, under every name that the manager knows. They are refused, Allow or not,
	// unless AllowAPIServers is set.
	APIServers      []string
	AllowAPIServers bool
	// Endpoints, unless it is nil, looks up host:port of the API servers behind their Service, which are refused as well.
	// It is asked before each hook is dialled, so it is to remember what it found for a while.
	Endpoints func(context.Context) ([]string, error)
	// Resolver looks up names. Nil is Go's own.
	Resolver *net.Resolver
}

// refusedError is why an address was not dialled. flag is that of the manager that would allow it.
type refusedError struct {
	addr      netip.AddrPort
	why, flag string
}

func (e *refusedError) Error() string {
	return fmt.Sprintf("%s is %s, which a hook may not have unless the manager is started with %s", e.addr, e.why, e.flag)
}

// allowing returns the flag that allows an address and no other.
func allowing(ip netip.Addr) string {
	return "--hook-allow-address=" + netip.PrefixFrom(ip, ip.BitLen()).String()
}

// metadata holds addresses of clouds' metadata services that no other rule covers.
var metadata = []netip.Addr{
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd00:ec2::23"),    // Amazon: credentials of pods (EKS)
	netip.MustParseAddr("fd20:ce::254"),    // Google
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:c1::a9fe:a9fe"),
	netip.MustParseAddr("fd00:42::42"), // Scaleway
}

// kubeletPorts are those that a kubelet serves its API on by default. Who is taken for the API server there, or asks
// the second one, is told what runs on the node, or runs something in it.
var kubeletPorts = []uint16{10250, 10255}

// thisNetwork are addresses that some kernels take for the machine itself.
var thisNetwork = netip.MustParsePrefix("0.0.0.0/8")

// embeddings are the IPv6 prefixes that contain an IPv4 address, with the index of its first byte. A gateway of the
// network sends the packets there.
var embeddings = []struct {
	prefix netip.Prefix
	at     int
}{
	{netip.MustParsePrefix("64:ff9b::/96"), 12}, // NAT64 (RFC 6052)
	{localNAT64, 12},                               // if it is used as a /96
	{netip.MustParsePrefix("2002::/16"), 2},        // 6to4
	{netip.MustParsePrefix("::/96"), 12},           // IPv4-compatible
	{netip.MustParsePrefix("::ffff:0:0:0/96"), 12}, // IPv4-translated
}

// localNAT64 is the prefix of RFC 8215. Networks divide it, and an IPv4 address comes after the first 48, 56, 64 or 96
// bits (RFC 6052, 2.2). Byte 8 is not part of it, and zeros follow.
var localNAT64 = netip.MustParsePrefix("64:ff9b:1::/48")

// control is called with each address before it is dialled.
func (g *Guard) control(ctx context.Context, _, address string, _ syscall.RawConn) error {
	addr, err := netip.ParseAddrPort(address)
	if err != nil {
		return fmt.Errorf("dial %s: %w", address, err)
	}
	return g.check(ctx, addr)
}

// check returns a *refusedError if a hook may not have the address addr.
func (g *Guard) check(ctx context.Context, addr netip.AddrPort) error {
	for _, ip := range targets(addr.Addr()) {
		if err := g.checkTarget(ctx, ip, addr); err != nil {
			return err
		}
	}
	return nil
}

// checkTarget checks one of the addresses that packets to addr may reach.
func (g *Guard) checkTarget(ctx context.Context, ip netip.Addr, addr netip.AddrPort) error {
	if !g.AllowAPIServers {
		servers, err := g.servers(ctx)
		if err != nil {
			return fmt.Errorf("tell %s from the API server: %w", addr, err)
		}
		for _, server := range servers {
			is, err := g.at(ctx, server, netip.AddrPortFrom(ip, addr.Port()))
			if err != nil {
				return err
			}
			if is {
				return &refusedError{addr, "the API server", "--hook-allow-api-server"}
			}
		}
	}
	why := refused(ip, addr.Port())
	if why == "" || slices.ContainsFunc(g.Allow, func(p netip.Prefix) bool { return p.Contains(ip) }) {
		return nil
	}
	return &refusedError{addr, why, allowing(ip)}
}

// servers returns the addresses of the API server.
func (g *Guard) servers(ctx context.Context) ([]string, error) {
	if g.Endpoints == nil {
		return g.APIServers, nil
	}
	found, err := g.Endpoints(ctx)
	return slices.Concat(g.APIServers, found), err
}

// refused says what is special about an address, empty if it is an ordinary one.
func refused(ip netip.Addr, port uint16) string {
	switch {
	case ip.IsLoopback():
		return "a loopback address"
	case ip.IsLinkLocalUnicast() || ip.IsLinkLocalMulticast() || ip.IsInterfaceLocalMulticast():
		return "a link-local address"
	case ip.IsMulticast():
		return "a multicast address"
	case ip.IsUnspecified() || thisNetwork.Contains(ip):
		return "no address at all" // the kernel takes it for loopback
	case slices.Contains(metadata, ip):
		return "a metadata service"
	case slices.Contains(kubeletPorts, port):
		return "at the port of a kubelet"
	default:
		return ""
	}
}

// targets returns the addresses that packets to ip may reach, in a comparable form: ip, and the IPv4 addresses that it
// contains.
func targets(ip netip.Addr) []netip.Addr {
	ip = plain(ip)
	out := []netip.Addr{ip}
	if ip.Is4() || ip.IsLoopback() || ip.IsUnspecified() {
		return out
	}
	b := ip.As16()
	if localNAT64.Contains(ip) && [3]byte(b[13:]) == [3]byte{} {
		rest := append(slices.Clone(b[:8]), b[9:]...)
		for _, at := range []int{6, 7, 8} {
			if v4 := netip.AddrFrom4([4]byte(rest[at:])); !thisNetwork.Contains(v4) {
				out = append(out, v4)
			}
		}
		return out
	}
	for _, e := range embeddings {
		if e.prefix.Contains(ip) {
			out = append(out, netip.AddrFrom4([4]byte(b[e.at:])))
		}
	}
	return out
}

// plain returns the comparable form of an address.
func plain(ip netip.Addr) netip.Addr { return ip.Unmap().WithZone("") }

// at reports whether addr is one of the addresses of server, a host:port. A name that cannot be looked up is an error:
// it might be that address.
func (g *Guard) at(ctx context.Context, server string, addr netip.AddrPort) (bool, error) {
	host, port, err := net.SplitHostPort(server)
	if err != nil {
		return false, fmt.Errorf("the API server's address: %w", err)
	}
	if port != strconv.Itoa(int(addr.Port())) {
		return false, nil
	}
	if ip, err := netip.ParseAddr(host); err == nil {
		return plain(ip) == addr.Addr(), nil
	}
	ips, err := g.resolver().LookupNetIP(ctx, "ip", host)
	if err != nil {
		return false, fmt.Errorf("tell it from the API server: %w", err)
	}
	return slices.ContainsFunc(ips, func(ip netip.Addr) bool { return plain(ip) == addr.Addr() }), nil
}

// checkProxied checks a URL that a proxy will dial. The proxy looks up names itself and decides in the end, so a name
// that we cannot look up is left to it.
func (g *Guard) checkProxied(ctx context.Context, u *url.URL) error {
	host, port, err := net.SplitHostPort(withPort(u.Host, u.Scheme))
	if err != nil {
		return err
	}
	number, err := strconv.ParseUint(port, 10, 16)
	if err != nil {
		return fmt.Errorf("port %s: %w", port, err)
	}
	ips := []netip.Addr{}
	if ip, err := netip.ParseAddr(host); err == nil {
		ips = append(ips, ip)
	} else if found, err := g.resolver().LookupNetIP(ctx, "ip", host); err == nil {
		ips = found
	}
	for _, ip := range ips {
		if err := g.check(ctx, netip.AddrPortFrom(ip, uint16(number))); err != nil {
			return err
		}
	}
	return nil
}

func (g *Guard) resolver() *net.Resolver {
	if g.Resolver == nil {
		return net.DefaultResolver
	}
	return g.Resolver
}
