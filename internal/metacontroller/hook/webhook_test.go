package hook

import (
	"net/url"
	"testing"
)

func TestAddresses(t *testing.T) {
	for _, c := range []struct {
		webhook Webhook
		want    string
	}{
		{Webhook{URL: "https://example.com/x?y=z"}, "https://example.com/x?y=z"},
		{Webhook{URL: "http://a", Service: &Service{Name: "b", Namespace: "c"}, Path: "/"}, "http://a"},
		{Webhook{Service: &Service{Name: "hook", Namespace: "ns"}, Path: "/sync"}, "http://hook.ns:80/sync"},
		{Webhook{Service: &Service{Name: "hook", Namespace: "ns"}, Path: "sync"}, "http://hook.ns:80/sync"},
		{Webhook{Service: &Service{Name: "hook", Namespace: "ns", Port: 8443, Protocol: "https"}, Path: "/a/b?c"}, "https://hook.ns:8443/a/b?c"},
	} {
		u, err := c.webhook.address()
		if err != nil || u.String() != c.want {
			t.Errorf("%v, %v, want %s", u, err, c.want)
		}
	}
}

func TestHosts(t *testing.T) {
	for _, c := range []struct {
		url, host string
		want      bool
	}{
		{"http://example.com/", "example.com", true},
		{"http://example.com/", "EXAMPLE.com", true},
		{"http://Example.com/", "example.com", true},
		{"http://example.com/", "example.com:80", true},
		{"http://example.com:80/", "example.com", true},
		{"https://example.com/", "example.com:443", true},
		{"https://example.com:443/", "example.com", true},
		{"https://example.com/", "example.com:80", false},
		{"https://example.com:8443/", "example.com", false},
		{"https://example.com:8443/", "example.com:8443", true},
		{"https://example.com/", "www.example.com", false},
		{"https://[fd00::1]/", "[fd00::1]", true},
		{"https://[fd00::1]:443/", "[fd00::1]", true},
		{"https://[fd00::1]/", "[fd00::1]:443", true},
	} {
		u, err := url.Parse(c.url)
		if err != nil {
			t.Fatal(err)
		}
		w := Webhook{}
		configs := []EndpointConfig{{Host: c.host, Endpoint: Endpoint{BasicAuth: &BasicAuth{}}}}
		if got := w.endpoint(u, configs) != (Endpoint{}); got != c.want {
			t.Errorf("%s and %s: %t", c.url, c.host, got)
		}
	}
}

func TestStrictness(t *testing.T) {
	yes, no := true, false
	for _, c := range []struct {
		set  *bool
		v    Version
		want bool
	}{{nil, V1, false}, {nil, "", false}, {nil, V2, true}, {&no, V2, false}, {&yes, V1, true}} {
		w := Webhook{Strict: c.set}
		if w.strict(c.v) != c.want {
			t.Errorf("%v, %s", c.set, c.v)
		}
	}
	if w := (Webhook{Timeout: -1}); w.timeout() != DefaultTimeout {
		t.Error(w.timeout())
	}
}
