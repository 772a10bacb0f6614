package hook_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// TestMetricsAreMetacontrollers: dashboards and alerts that somebody has must go on working.
func TestMetricsAreMetacontrollers(t *testing.T) {
	registry := prometheus.NewRegistry()
	metrics, err := hook.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	a := newAuthority(t)
	s := secure(t, a, func(w http.ResponseWriter, calls []call) {
		if len(calls) == 2 {
			w.WriteHeader(http.StatusTeapot)
		}
		_, _ = w.Write([]byte(noChildren))
	}, nil)
	o := options(s.URL)
	o.Metrics = metrics
	o.Declared.Webhook.CABundle = &v1alpha1.CABundle{Inline: new(string(a.pem))}
	h := newHook(t, o)
	for range 3 {
		_, _ = h.Ask(t.Context(), &hook.Question{Parent: catset("1"), Again: true})
	}
	own := `controller_name="cats",controller_type="CompositeController",`
	want := []string{
		`metacontroller_sync_in_flight_requests{` + own + `url="` + s.URL + `"} 0`,
		`metacontroller_sync_request_duration_histogram_seconds{` + own + `method="post",url="` + s.URL + `"} 3`,
		`metacontroller_sync_requests_total{code="200",` + own + `method="post",url="` + s.URL + `"} 2`,
		`metacontroller_sync_requests_total{code="418",` + own + `method="post",url="` + s.URL + `"} 1`,
		`metacontroller_sync_tls_duration_histogram_seconds{` + own + `event="tls_handshake_done",url="` + s.URL + `"} 1`,
		`metacontroller_sync_tls_duration_histogram_seconds{` + own + `event="tls_handshake_start",url="` + s.URL + `"} 1`,
	}
	if diff := cmp.Diff(want, gathered(t, registry)); diff != "" {
		t.Errorf("-want +got\n%s", diff)
	}
	metrics.Forget(o.Controller)
	if got := gathered(t, registry); len(got) > 0 {
		t.Errorf("the controller is gone, and there is %q", got)
	}
	again, err := hook.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	o.Metrics = again
	_, _ = newHook(t, o).Ask(t.Context(), &hook.Question{Parent: catset("1")})
	if got := gathered(t, registry); len(got) == 0 {
		t.Error("what another manager of the process counts is in no metric")
	}
}

// gathered lists series and their values; histograms by their counts.
func gathered(t *testing.T, registry *prometheus.Registry) (lines []string) {
	t.Helper()
	families, err := registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			labels := ""
			for _, l := range m.GetLabel() {
				labels += "," + l.GetName() + `="` + l.GetValue() + `"`
			}
			value := m.GetCounter().GetValue() + m.GetGauge().GetValue() + float64(m.GetHistogram().GetSampleCount())
			lines = append(lines, f.GetName()+"{"+labels[1:]+"} "+string(rune('0'+int(value))))
		}
	}
	slices.Sort(lines)
	return lines
}

// A URL that no label can hold is no reason to end the process.
func TestMetricsOfAStrangeURL(t *testing.T) {
	metrics, err := hook.NewMetrics(prometheus.NewRegistry())
	if err != nil {
		t.Fatal(err)
	}
	o := options("http://a\xff.invalid/")
	o.Metrics = metrics
	h, err := hook.New(o)
	if err != nil {
		return // or not a URL at all
	}
	if _, err := h.Ask(t.Context(), &hook.Question{Parent: catset("1")}); err == nil {
		t.Error("somebody is there")
	}
}

// TestKeysOfAURLAreNotShown: user, password, query and fragment are in no error, as the reason of a condition or an
// event has it, and in no metric.
func TestKeysOfAURLAreNotShown(t *testing.T) {
	const key = "S3CR3T"
	s := serve(t, func(w http.ResponseWriter, calls []call) {
		switch len(calls) {
		case 1:
			w.WriteHeader(http.StatusInternalServerError)
		case 2:
			w.Header().Set("Location", "http://b.example/?code="+key)
			w.WriteHeader(http.StatusFound)
		case 3:
			_, _ = w.Write([]byte(`{"children":1}`))
		case 4:
			panic(http.ErrAbortHandler)
		}
	})
	s.Config.ErrorLog = quiet
	registry := prometheus.NewRegistry()
	metrics, err := hook.NewMetrics(registry)
	if err != nil {
		t.Fatal(err)
	}
	withKeys := func(address string) string {
		return strings.Replace(address, "//", "//"+key+":"+key+"@", 1) + "/path?code=" + key + "#" + key
	}
	o := options(withKeys(s.URL))
	o.Metrics = metrics
	h := newHook(t, o)
	ask := func(h *hook.Hook, ctx context.Context) {
		t.Helper()
		_, err := h.Ask(ctx, &hook.Question{Parent: catset("1")})
		if f := failure(t, err); strings.Contains(fmt.Sprintf("%v %+v", err, f), key) || !strings.Contains(f.URL, "/path") {
			t.Errorf("the error is %v", err)
		}
	}
	for range 4 {
		ask(h, t.Context())
	}
	ended, end := context.WithCancel(t.Context())
	end()
	ask(h, ended)
	s.Close()
	ask(h, t.Context())
	refused := options(withKeys(s.URL))
	refused.Guard = nil
	ask(newHook(t, refused), t.Context())
	refused.Proxy = func(*http.Request) (*url.URL, error) {
		return nil, errors.New("http://a:" + key + "@proxy is no proxy")
	}
	ask(newHook(t, refused), t.Context())
	if got := fmt.Sprint(gathered(t, registry)); strings.Contains(got, key) || !strings.Contains(got, "/path") {
		t.Error(got)
	}
}
