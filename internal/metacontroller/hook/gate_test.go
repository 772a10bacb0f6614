package hook

import (
	"context"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httptrace"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// lateTrace answers at once, and keeps what wants to know of connections.
type lateTrace struct{ trace *httptrace.ClientTrace }

func (l *lateTrace) RoundTrip(r *http.Request) (*http.Response, error) {
	l.trace = httptrace.ContextClientTrace(r.Context())
	w := httptest.NewRecorder()
	return w.Result(), nil
}

// TestNoSeriesAfterTheEnd: a connection that was begun before a hook was closed is made after that.
func TestNoSeriesAfterTheEnd(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	late := &lateTrace{}
	c := Controller{Type: Composite, Name: "gone"}
	h, err := New(Options{Controller: c, Kind: Sync, Declared: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new("http://a.example/")}}, Metrics: metrics, Transport: late})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := h.caller.call(context.Background(), nil, ""); err != nil {
		t.Fatal(err)
	}
	late.trace.DNSStart(httptrace.DNSStartInfo{})
	if families, err := registry.Gather(); err != nil || len(families) != 4 {
		t.Fatal(families, err)
	}
	h.Close()
	metrics.Forget(c)
	late.trace.DNSDone(httptrace.DNSDoneInfo{Addrs: []net.IPAddr{}})
	if families, err := registry.Gather(); err != nil || len(families) > 0 {
		t.Error(families, err)
	}
}
