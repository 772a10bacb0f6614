package authored

// This file is the pair: who is measured, with which parents.

import (
	"context"
	_ "embed"
	"maps"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// program runs either of the pair.
const program = "github.com/cairn-dev/cairn/proof/bench/authored/cmd/subject"

// subject is one of the pair.
type subject struct {
	name string
	// argument is what the program is told.
	argument string
	kind     lab.Kind
}

const (
	statefulSet = "StatefulSet controller"
	authored    = "made with builder"
)

var pair = []*subject{
	{statefulSet, "statefulset", parents(appsv1.SchemeGroupVersion, "StatefulSet", "statefulsets", m{"podManagementPolicy": "Parallel"})},
	{authored, "fleet", parents(schema.GroupVersion{Group: "bench.cairn.dev", Version: "v1"}, "Fleet", "fleets", nil)},
}

//go:embed bench.cairn.dev_fleets.yaml
var fleetsCRD string

// m is an object in JSON.
type m = lab.M

// parents is a kind whose parents have a template, a selector and replicas, as both have. more is what one has beside
// that. Pods that are missing are made at once by both, and replaced one at a time.
func parents(gv schema.GroupVersion, kind, resource string, more m) lab.Kind {
	return lab.Kind{
		Resource: gv.WithResource(resource),
		Parent: func(name string, children int) m {
			labels := m{"parent": name}
			spec := m{
				"replicas": int64(children), "selector": m{"matchLabels": labels},
				"template": m{"metadata": m{"labels": labels}, "spec": lab.PodSpec(1)},
			}
			maps.Copy(spec, more)
			return m{"apiVersion": gv.String(), "kind": kind, "metadata": m{"name": name}, "spec": spec}
		},
		Updated: lab.ObservedUpdated,
	}
}

// start prepares a load and the process that looks after it.
func (s *subject) start(tb testing.TB, l lab.Load) (*lab.Cluster, *lab.Process) {
	tb.Helper()
	if err := install.Apply(tb.Context(), sandboxtest.Get(tb).Config(), fleetsCRD); err != nil {
		tb.Fatal(err)
	}
	c := lab.NewCluster(tb, counted, l, s.kind)
	before := counted.Read()
	p := lab.Start(tb, c.Subject, lab.Build(tb, program), s.argument)
	watches := "watch " + s.kind.Resource.Resource
	c.Eventually(watches, func(context.Context) (bool, error) {
		return counted.Since(before).Requests[watches] > 0, nil
	})
	c.Rested()
	return c, p
}
