package hook

import (
	"context"
	"errors"
	"net/netip"
	"net/url"
	"testing"
)

func TestGuard(t *testing.T) {
	for _, c := range []struct {
		addr  string
		why   string
		guard Guard
	}{
		{addr: "10.0.0.1:80"},
		{addr: "93.184.215.14:443"},
		{addr: "[2001:db8::1]:443"},
		{addr: "[fd00::1]:443"},
		{addr: "127.0.0.1:80", why: "a loopback address"},
		{addr: "127.8.9.10:80", why: "a loopback address"},
		{addr: "[::1]:80", why: "a loopback address"},
		{addr: "[::ffff:127.0.0.1]:80", why: "a loopback address"},
		{addr: "[64:ff9b::7f00:1]:80", why: "a loopback address"},
		{addr: "169.254.169.254:80", why: "a link-local address"},
		{addr: "[::ffff:169.254.169.254]:80", why: "a link-local address"},
		{addr: "[64:ff9b::a9fe:a9fe]:80", why: "a link-local address"},
		{addr: "[64:ff9b:1::a9fe:a9fe]:80", why: "a link-local address"},
		{addr: "[64:ff9b:1:a9fe:a9:fe00::]:80", why: "a link-local address"},
		{addr: "[64:ff9b:1:7f:0:100::]:80", why: "a loopback address"},
		{addr: "[64:ff9b:1:2:7f:0:100:0]:80", why: "a loopback address"},
		{addr: "[64:ff9b:1:0:a9:fea9:fe00:0]:80", why: "a link-local address"},
		{addr: "[64:ff9b:1:a9:fe:a9fe::]:80", why: "a link-local address"},
		{addr: "[64:ff9b:1::a00:1]:80"},
		{addr: "[64:ff9b:1:a00:0:100::]:80"},
		{addr: "[2002:a9fe:a9fe::1]:80", why: "a link-local address"},
		{addr: "[2002:5db8:d70e::1]:80"},
		{addr: "[::127.0.0.1]:80", why: "a loopback address"},
		{addr: "[::ffff:0:127.0.0.1]:80", why: "a loopback address"},
		{addr: "[2002:a60:1::1]:443", guard: Guard{APIServers: []string{"10.96.0.1:443"}}, why: "the API server"},
		{addr: "[fe80::1]:80", why: "a link-local address"},
		{addr: "[fe80::1%eth0]:80", why: "a link-local address"},
		{addr: "[fd00:ec2::254]:80", why: "a metadata service"},
		{addr: "[fd00:ec2::23]:80", why: "a metadata service"},
		{addr: "[fd00:c1::a9fe:a9fe]:80", why: "a metadata service"},
		{addr: "[fd00:42::42]:80", why: "a metadata service"},
		{addr: "[fd20:ce::254]:80", why: "a metadata service"},
		{addr: "168.63.129.16:80", why: "a metadata service"},
		{addr: "[::ffff:168.63.129.16]:32526", why: "a metadata service"},
		{addr: "100.100.100.200:80", why: "a metadata service"},
		{addr: "[64:ff9b::6464:64c8]:80", why: "a metadata service"},
		{addr: "192.0.0.192:80", why: "a metadata service"},
		{addr: "10.0.0.1:10250", why: "at the port of a kubelet"},
		{addr: "10.0.0.1:10255", why: "at the port of a kubelet"},
		{addr: "10.0.0.1:10250", guard: Guard{Allow: prefixes("10.0.0.0/8")}},
		{addr: "0.1.2.3:80", why: "no address at all"},
		{addr: "0.0.0.0:80", why: "no address at all"},
		{addr: "[::]:80", why: "no address at all"},
		{addr: "224.0.0.1:80", why: "a link-local address"},
		{addr: "239.1.1.1:80", why: "a multicast address"},
		{addr: "[ff0e::1]:80", why: "a multicast address"},

		{addr: "127.0.0.1:80", guard: Guard{Allow: prefixes("127.0.0.1/32")}},
		{addr: "[::ffff:127.0.0.1]:80", guard: Guard{Allow: prefixes("127.0.0.1/32")}},
		{addr: "127.0.0.2:80", guard: Guard{Allow: prefixes("127.0.0.1/32")}, why: "a loopback address"},

		{addr: "10.96.0.1:443", guard: Guard{APIServers: []string{"10.96.0.1:443"}}, why: "the API server"},
		{addr: "[::ffff:10.96.0.1]:443", guard: Guard{APIServers: []string{"10.96.0.1:443"}}, why: "the API server"},
		{addr: "10.96.0.1:8443", guard: Guard{APIServers: []string{"10.96.0.1:443"}}},
		{addr: "10.96.0.2:443", guard: Guard{APIServers: []string{"10.96.0.1:443"}}},
		{addr: "[fd00::1]:443", guard: Guard{APIServers: []string{"[fd00::1]:443"}}, why: "the API server"},
		{addr: "127.0.0.1:6443", guard: Guard{APIServers: []string{"127.0.0.1:6443"}, Allow: prefixes("127.0.0.0/8")}, why: "the API server"},
		{addr: "127.0.0.1:6443", guard: Guard{APIServers: []string{"localhost:6443"}, Allow: prefixes("127.0.0.0/8")}, why: "the API server"},
		{addr: "127.0.0.1:7443", guard: Guard{APIServers: []string{"localhost:6443"}, Allow: prefixes("127.0.0.0/8")}},
		{addr: "127.0.0.1:6443", guard: Guard{APIServers: []string{"127.0.0.1:6443"}, Allow: prefixes("127.0.0.0/8"), AllowAPIServers: true}},
		{addr: "127.0.0.1:6443", guard: Guard{AllowAPIServers: true}, why: "a loopback address"},
	} {
		err := c.guard.check(t.Context(), netip.MustParseAddrPort(c.addr))
		var no *refusedError
		switch {
		case c.why == "" && err != nil:
			t.Errorf("%s: %v", c.addr, err)
		case c.why != "" && (!errors.As(err, &no) || no.why != c.why):
			t.Errorf("%s: %v, want %s", c.addr, err, c.why)
		}
	}
}

// TestRefusalNamesTheFlag that would allow the address, and no other one.
func TestRefusalNamesTheFlag(t *testing.T) {
	guard := Guard{APIServers: []string{"10.96.0.1:443"}}
	for addr, want := range map[string]string{
		"127.0.0.1:80":         "127.0.0.1:80 is a loopback address, which a hook may not have unless the manager is started with --hook-allow-address=127.0.0.1/32",
		"[::1]:80":             "[::1]:80 is a loopback address, which a hook may not have unless the manager is started with --hook-allow-address=::1/128",
		"[64:ff9b::7f00:1]:80": "[64:ff9b::7f00:1]:80 is a loopback address, which a hook may not have unless the manager is started with --hook-allow-address=127.0.0.1/32",
		"10.96.0.1:443":        "10.96.0.1:443 is the API server, which a hook may not have unless the manager is started with --hook-allow-api-server",
	} {
		if err := guard.check(t.Context(), netip.MustParseAddrPort(addr)); err == nil || err.Error() != want {
			t.Errorf("%s: %v", addr, err)
		}
	}
}

func prefixes(texts ...string) (all []netip.Prefix) {
	for _, text := range texts {
		all = append(all, netip.MustParsePrefix(text))
	}
	return all
}

func TestAnAPIServerThatCannotBeFoundIsNotRuledOut(t *testing.T) {
	g := Guard{APIServers: []string{"api.invalid:443"}}
	if err := g.check(t.Context(), netip.MustParseAddrPort("10.0.0.1:443")); err == nil {
		t.Error("it might be the API server")
	}
	if err := g.check(t.Context(), netip.MustParseAddrPort("10.0.0.1:80")); err != nil {
		t.Errorf("it cannot be the API server: %v", err)
	}
	g.APIServers = []string{"no port"}
	if err := g.check(t.Context(), netip.MustParseAddrPort("10.0.0.1:80")); err == nil {
		t.Error("nobody knows what this means")
	}
}

// TestTheAPIServersBehindTheService: they are looked up, and an address is not dialled while that fails.
func TestTheAPIServersBehindTheService(t *testing.T) {
	found, failed := []string{"10.1.1.1:6443"}, error(nil)
	g := Guard{APIServers: []string{"10.96.0.1:443"}, Endpoints: func(context.Context) ([]string, error) { return found, failed }}
	for addr, want := range map[string]bool{"10.1.1.1:6443": true, "10.96.0.1:443": true, "10.1.1.1:443": false, "10.2.2.2:6443": false} {
		_, is := errors.AsType[*refusedError](g.check(t.Context(), netip.MustParseAddrPort(addr)))
		if is != want {
			t.Errorf("%s is refused: %v", addr, is)
		}
	}
	failed = errors.New("no role")
	other := netip.MustParseAddrPort("10.3.3.3:443")
	if err := g.check(t.Context(), other); !errors.Is(err, failed) {
		t.Errorf("it might be an API server: %v", err)
	}
	g.AllowAPIServers = true
	if err := g.check(t.Context(), other); err != nil {
		t.Errorf("whether it is one does not matter: %v", err)
	}
}

func TestWhatAProxyIsAskedFor(t *testing.T) {
	for address, refused := range map[string]bool{
		"http://169.254.169.254/": true, "http://[::ffff:169.254.169.254]/": true, "http://localhost/": true,
		"https://10.0.0.1/": false, "https://name.invalid/": false, // the proxy may know it
	} {
		u, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := (&Guard{}).checkProxied(t.Context(), u); (err != nil) != refused {
			t.Errorf("%s: %v", address, err)
		}
	}
}
