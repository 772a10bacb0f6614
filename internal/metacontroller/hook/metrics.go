package hook

import (
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"
)

// This file counts calls under the names that Metacontroller's dashboards read.

// Metrics are the metrics of all hooks. Make them with [NewMetrics].
type Metrics struct {
	families map[Kind]*family
}

// family is the metrics of one kind of hook.
type family struct {
	requests           *prometheus.CounterVec
	duration, dns, tls *prometheus.HistogramVec
	inFlight           *prometheus.GaugeVec
}

var hookLabels = []string{"url", "controller_name", "controller_type"}

// NewMetrics registers the metrics. Those that are registered already are used: a process may run several managers. An
// error means that one of their names is taken.
func NewMetrics(registerer prometheus.Registerer) (*Metrics, error) {
	m := &Metrics{families: map[Kind]*family{}}
	for _, kind := range []Kind{Sync, Finalize, Customize} {
		f := newFamily(kind)
		m.families[kind] = f
		if err := errors.Join(register(registerer, &f.requests), register(registerer, &f.duration), register(registerer, &f.dns),
			register(registerer, &f.tls), register(registerer, &f.inFlight)); err != nil {
			return nil, err
		}
	}
	return m, nil
}

// register registers a metric, or replaces it by the one that was registered before.
func register[C prometheus.Collector](registerer prometheus.Registerer, c *C) error {
	err := registerer.Register(*c)
	if there, ok := errors.AsType[prometheus.AlreadyRegisteredError](err); ok {
		if same, ok := there.ExistingCollector.(C); ok {
			*c, err = same, nil
		}
	}
	return err
}

func newFamily(kind Kind) *family {
	histogram := func(name, help, label string, buckets []float64) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{
			Namespace: "metacontroller", Subsystem: string(kind), Name: name, Help: help, Buckets: buckets,
		}, append([]string{label}, hookLabels...))
	}
	return &family{
		requests: prometheus.NewCounterVec(prometheus.CounterOpts{
			Namespace: "metacontroller", Subsystem: string(kind), Name: "requests_total",
			Help: "Calls of the hook that were answered, by status and method.",
		}, append([]string{"code", "method"}, hookLabels...)),
		duration: histogram("request_duration_histogram_seconds", "How long calls of the hook took until the answer began.",
			"method", prometheus.DefBuckets),
		dns: histogram("dns_duration_histogram_seconds", "When in a call its name was looked up.",
			"event", []float64{.005, .01, .025, .05}),
		tls: histogram("tls_duration_histogram_seconds", "When in a call TLS was set up.",
			"event", []float64{.05, .1, .25, .5}),
		inFlight: prometheus.NewGaugeVec(prometheus.GaugeOpts{
			Namespace: "metacontroller", Subsystem: string(kind), Name: "in_flight_requests",
			Help: "Calls of the hook that wait for an answer.",
		}, hookLabels),
	}
}

// gate is closed when a hook is. A connection that was begun before may be established after that, and would recreate
// the series of a deleted controller.
type gate struct {
	mu     sync.RWMutex
	closed bool
}

// pass calls f unless the gate is closed.
func (g *gate) pass(f func()) {
	g.mu.RLock()
	defer g.mu.RUnlock()
	if !g.closed {
		f()
	}
}

// close returns when no call of pass is under way, and none will be.
func (g *gate) close() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.closed = true
}

// wrap counts the requests through next, as long as the gate is open. m may be nil.
func (m *Metrics) wrap(kind Kind, c Controller, u *url.URL, open *gate, next http.RoundTripper) http.RoundTripper {
	if m == nil {
		return next
	}
	f := m.families[kind]
	// A label that is not UTF-8 is a panic.
	at := strings.ToValidUTF8(shown(u), "?")
	labels := prometheus.Labels{"url": at, "controller_name": c.Name, "controller_type": string(c.Type)}
	dns, tls := f.dns.MustCurryWith(labels), f.tls.MustCurryWith(labels)
	observe := func(v prometheus.ObserverVec, event string) func(float64) {
		return func(seconds float64) { open.pass(func() { v.WithLabelValues(event).Observe(seconds) }) }
	}
	trace := &promhttp.InstrumentTrace{
		DNSStart: observe(dns, "dns_start"), DNSDone: observe(dns, "dns_done"),
		TLSHandshakeStart: observe(tls, "tls_handshake_start"), TLSHandshakeDone: observe(tls, "tls_handshake_done"),
	}
	next = promhttp.InstrumentRoundTripperDuration(f.duration.MustCurryWith(labels), next)
	next = promhttp.InstrumentRoundTripperTrace(trace, next)
	next = promhttp.InstrumentRoundTripperCounter(f.requests.MustCurryWith(labels), next)
	return promhttp.InstrumentRoundTripperInFlight(f.inFlight.With(labels), next)
}

// Forget removes the metrics of a deleted controller. Close its hooks before that.
func (m *Metrics) Forget(c Controller) {
	if m == nil {
		return
	}
	labels := prometheus.Labels{"controller_name": c.Name, "controller_type": string(c.Type)}
	for _, f := range m.families {
		f.requests.DeletePartialMatch(labels)
		f.inFlight.DeletePartialMatch(labels)
		for _, h := range []*prometheus.HistogramVec{f.duration, f.dns, f.tls} {
			h.DeletePartialMatch(labels)
		}
	}
}
