package hook_test

import (
	"context"
	"encoding/binary"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"os/exec"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// These tests dial. What a guard says of an address is in guard_test.go.

func TestNoHookIsAtALoopbackAddress(t *testing.T) {
	s := serve(t, always(noChildren))
	for _, address := range []string{s.URL, strings.Replace(s.URL, "127.0.0.1", "localhost", 1), strings.Replace(s.URL, "127.0.0.1", "0.0.0.0", 1)} {
		o := options(address)
		o.Guard = nil
		_, err := ask(t, o)
		if f := failure(t, err); f.Reason != hook.AddressRefused || !strings.Contains(err.Error(), "which a hook may not have") {
			t.Errorf("%s: %s, %v", address, f.Reason, err)
		}
	}
	if s.count() > 0 {
		t.Error("it was called")
	}
}

func TestNoHookIsTheAPIServer(t *testing.T) {
	s := serve(t, always(noChildren))
	o := options(s.URL)
	o.Guard = &hook.Guard{Allow: here, APIServers: []string{s.Listener.Addr().String()}}
	_, err := ask(t, o)
	if f := failure(t, err); f.Reason != hook.AddressRefused || s.count() > 0 {
		t.Errorf("%s, %v", f.Reason, err)
	}
}

// TestANameThatChangesItsMeaning: the name server says an allowed address first, so that whoever looked the name up
// before the call was content, and another one after that.
func TestANameThatChangesItsMeaning(t *testing.T) {
	s := unstarted(t, func(w http.ResponseWriter, _ []call) {
		w.Header().Set("Connection", "close") // or no name is looked up again
		_, _ = w.Write([]byte(noChildren))
	})
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp4", "0.0.0.0:0")
	if err != nil {
		t.Fatal(err)
	}
	_ = s.Listener.Close()
	s.Listener = listener
	s.Start()
	var answer atomic.Pointer[net.IP]
	set := func(d byte) { ip := net.IPv4(127, 0, 0, d).To4(); answer.Store(&ip) }
	o := options("http://hook.example:" + port(t, listener) + "/")
	o.Guard = &hook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.2/32")}, Resolver: nameServer(t, &answer)}
	h := newHook(t, o)
	set(2)
	q := &hook.Question{Parent: catset("1"), Again: true}
	if _, err := h.Ask(t.Context(), q); err != nil {
		t.Fatal(err)
	}
	set(3)
	_, err = h.Ask(t.Context(), q)
	if f := failure(t, err); f.Reason != hook.AddressRefused || !strings.Contains(err.Error(), "127.0.0.3") {
		t.Errorf("%s: %v", f.Reason, err)
	}
	if s.count() != 1 {
		t.Errorf("%d calls", s.count())
	}
}

func port(t *testing.T, l net.Listener) string {
	t.Helper()
	_, p, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	return p
}

// nameServer returns a resolver for which every name means what answer says.
func nameServer(t *testing.T, answer *atomic.Pointer[net.IP]) *net.Resolver {
	t.Helper()
	conn, err := new(net.ListenConfig).ListenPacket(t.Context(), "udp4", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	go func() {
		query := make([]byte, 512)
		for {
			n, from, err := conn.ReadFrom(query)
			if err != nil {
				return
			}
			_, _ = conn.WriteTo(dnsReply(query[:n], *answer.Load()), from)
		}
	}()
	return &net.Resolver{PreferGo: true, Dial: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "udp4", conn.LocalAddr().String())
	}}
}

// dnsReply answers a query of one question: an address for type A, nothing for any other. It keeps the question and
// drops what follows it (RFC 1035, 4.1).
func dnsReply(query []byte, ip net.IP) []byte {
	end := 12
	for query[end] != 0 {
		end += int(query[end]) + 1
	}
	end += 5
	reply := append([]byte{}, query[:end]...)
	binary.BigEndian.PutUint16(reply[2:], 0x8180) // an answer, no error
	answers := uint16(0)
	if binary.BigEndian.Uint16(query[end-4:]) == 1 {
		answers = 1
		reply = append(reply, 0xc0, 12, 0, 1, 0, 1, 0, 0, 0, 0, 0, 4)
		reply = append(reply, ip...)
	}
	binary.BigEndian.PutUint16(reply[6:], answers)
	copy(reply[8:12], []byte{0, 0, 0, 0})
	return reply
}

// TestAProxy: the proxy is on loopback, as the operator wants it, and no hook may be.
func TestAProxy(t *testing.T) {
	proxy := serve(t, always(noChildren)) // it answers itself
	via, err := url.Parse(proxy.URL)
	if err != nil {
		t.Fatal(err)
	}
	for address, reason := range map[string]hook.Reason{
		"http://hook.invalid/sync": "", "http://169.254.169.254/sync": hook.AddressRefused, proxy.URL + "/direct": hook.AddressRefused,
	} {
		o := options(address)
		o.Guard = nil
		o.Proxy = func(r *http.Request) (*url.URL, error) {
			if r.URL.Path == "/direct" {
				return nil, nil
			}
			return via, nil
		}
		before := proxy.count()
		_, err := ask(t, o)
		switch {
		case reason == "" && (err != nil || proxy.count() != before+1):
			t.Errorf("%s: %v, %d calls", address, err, proxy.count()-before)
		case reason != "" && (failure(t, err).Reason != reason || proxy.count() != before):
			t.Errorf("%s: %v, %d calls", address, err, proxy.count()-before)
		}
	}
}

// TestTheEnvironmentsProxy asks in a process of its own: net/http reads the environment once.
func TestTheEnvironmentsProxy(t *testing.T) {
	const inside = "CAIRN_TEST_ASKS_THROUGH_PROXY"
	if os.Getenv(inside) != "" {
		o := options("http://hook.invalid/")
		o.Proxy, o.Guard = nil, nil
		if _, err := ask(t, o); err != nil {
			t.Fatal(err)
		}
		return
	}
	proxy := serve(t, always(noChildren))
	again := exec.CommandContext(t.Context(), os.Args[0], "-test.run=^TestTheEnvironmentsProxy$")
	again.Env = append(os.Environ(), inside+"=1", "HTTP_PROXY="+proxy.URL, "NO_PROXY=")
	if out, err := again.CombinedOutput(); err != nil || proxy.count() != 1 {
		t.Errorf("%v, %d calls\n%s", err, proxy.count(), out)
	}
}
