package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/controllers/recorder"
	"github.com/cairn-dev/cairn/internal/manager/skew"
)

// newField is an API server's schema of DaemonSets with a field that nobody here knows.
const newField = `{"components":{"schemas":{
	"ds":{"x-kubernetes-group-version-kind":[{"group":"apps","version":"v1","kind":"DaemonSet"}],"properties":{"spec":{"$ref":"#/s/spec"}}},
	"spec":{"properties":{"template":{"$ref":"#/s/template"}}},
	"template":{"properties":{"spec":{"$ref":"#/s/pod"}}},
	"pod":{"properties":{"hostname":{},"newField":{}}}
}}}`

// cluster is an API server of that version.
func cluster(t *testing.T, minor int) *rest.Config {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/version":
			fmt.Fprintf(w, `{"major":"1","minor":"%d"}`, minor)
		case "/openapi/v3/apis/apps/v1":
			fmt.Fprint(w, newField)
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(s.Close)
	return &rest.Config{Host: s.URL}
}

// TestTypedControllers: every controller reads objects into types, or keeps what it does not know.
func TestTypedControllers(t *testing.T) {
	all := slices.Sorted(maps.Keys(typed))
	all = append(all, composite.Name, decorator.Name, recorder.Name)
	slices.Sort(all)
	if !slices.Equal(all, Names()) {
		t.Errorf("%v are known to lose fields, or not to; there are %v", all, Names())
	}
}

// TestVersionSkew: what is started, what is said and what is measured, for API servers of each age.
func TestVersionSkew(t *testing.T) {
	both := []string{composite.Name, "daemonset"}
	now := skew.Types()
	for name, c := range map[string]struct {
		minor       int
		controllers []string
		allow       bool
		started     []string
		said        string // in the log or the error
		unsaid      bool
	}{
		"too old":                     {minor: 33, controllers: both, said: "1.34 is the oldest that is supported"},
		"too old, allowed":            {minor: 33, controllers: both, allow: true, started: both, said: "is not of the version"},
		"the oldest":                  {minor: 34, controllers: both, started: both, said: "spec.template.spec.newField"}, // an alpha field that went
		"older, all known":            {minor: 34, controllers: both[:1], started: both[:1], unsaid: true},
		"the same":                    {minor: now, controllers: both, started: both, unsaid: true},
		"one newer":                   {minor: now + 1, controllers: both, started: both, said: "spec.template.spec.newField"},
		"two newer":                   {minor: now + 2, controllers: []string{"daemonset"}, said: "without what is newer: spec.template.spec.newField;"},
		"two newer, allowed":          {minor: now + 2, controllers: both, allow: true, started: both, said: "spec.template.spec.newField"},
		"two newer, and unstructured": {minor: now + 2, controllers: both, started: both[:1], said: "controllers daemonset are not started"},
		"unstructured":                {minor: now + 2, controllers: both[:1], started: both[:1], said: "no field of their objects"},
		"no schema":                   {minor: now + 2, controllers: []string{"replicationcontroller"}, said: "which fields cannot be said"},
	} {
		t.Run(name, func(t *testing.T) {
			var said strings.Builder
			o := Options{
				Config: cluster(t, c.minor), Controllers: c.controllers, AllowVersionSkew: c.allow,
				Logger: funcr.New(func(_, args string) { said.WriteString(args + "\n") }, funcr.Options{}),
			}
			v, err := fit(t.Context(), &o)
			if err != nil {
				said.WriteString(err.Error())
			}
			if _, refused := errors.AsType[*SkewError](err); refused != (c.started == nil) {
				t.Fatalf("%v, want %v to be started", err, c.started)
			}
			if err == nil && !slices.Equal(o.Controllers, c.started) {
				t.Errorf("started: %v, want %v", o.Controllers, c.started)
			}
			if got := said.String(); !strings.Contains(got, c.said) || c.unsaid && got != "" {
				t.Errorf("said: %s\nwant: %s", got, c.said)
			}
			if err == nil && (v.ready() == nil) != (len(c.started) == len(c.controllers)) {
				t.Errorf("ready: %v, started: %v", v.ready(), c.started)
			}
			if got := measured(t); got != float64(c.minor-now) {
				t.Errorf("the metric says %v, want %d", got, c.minor-now)
			}
		})
	}
}

// measured is the skew as Prometheus is told of it.
func measured(t *testing.T) float64 {
	t.Helper()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "cairn_manager_version_skew" {
			return family.GetMetric()[0].GetGauge().GetValue()
		}
	}
	t.Fatal("it is not measured")
	return 0
}

// TestNewLooksAtTheVersion: nothing is started that was refused.
func TestNewLooksAtTheVersion(t *testing.T) {
	_, err := New(t.Context(), Options{Config: cluster(t, skew.Types()+2), Controllers: []string{"daemonset"}})
	if _, refused := errors.AsType[*SkewError](err); !refused {
		t.Error(err)
	}
}

// TestStoppedBeforeItStarted: whoever is told to stop while the API server does not answer has done what it was told.
func TestStoppedBeforeItStarted(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	s := httptest.NewServer(http.HandlerFunc(func(http.ResponseWriter, *http.Request) { cancel() }))
	defer s.Close()
	if err := Run(ctx, Options{Config: &rest.Config{Host: s.URL}, Controllers: []string{"daemonset"}}); err != nil {
		t.Error(err)
	}
}

func TestLongLists(t *testing.T) {
	fields := make([]string, maxLost+3)
	for i := range fields {
		fields[i] = fmt.Sprintf("spec.f%d", i)
	}
	if got := lostText(fields, nil); !strings.HasSuffix(got, fmt.Sprintf("spec.f%d and 3 more", maxLost-1)) {
		t.Error(got)
	}
}
