package composite

// This file is the load: a kind of parents like those that Metacontroller was measured with, and a controller for it.

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

//go:embed parents.yaml
var parentsCRD string

var controllersResource = schema.GroupVersionResource{
	Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "compositecontrollers",
}

// m is an object in JSON.
type m = lab.M

// parents are as plain as they can be.
var parents = lab.Kind{
	Resource: schema.GroupVersionResource{Group: "bench.cairn.dev", Version: "v1", Resource: "parents"},
	Parent: func(name string, children int) m {
		labels := m{"parent": name}
		return m{
			"apiVersion": "bench.cairn.dev/v1", "kind": "Parent", "metadata": m{"name": name},
			"spec": m{
				"replicas": int64(children), "selector": m{"matchLabels": labels},
				"template": m{"metadata": m{"labels": labels}, "spec": lab.PodSpec(1)},
			},
		}
	},
	Updated: lab.ObservedUpdated,
}

// load is so many parents with so many children each.
type load struct {
	parents, children int
	// maxUnavailable is that of the rollout, one at a time if it is 0; resync the controller's period in seconds, if any.
	maxUnavailable, resync int
}

func (l load) pods() int { return l.parents * l.children }

// String is the name of the load: 10x100, 1x100-max10, 100x10-resync10s.
func (l load) String() string {
	name := fmt.Sprintf("%dx%d", l.parents, l.children)
	if l.maxUnavailable > 0 {
		name += fmt.Sprintf("-max%d", l.maxUnavailable)
	}
	if l.resync > 0 {
		name += fmt.Sprintf("-resync%ds", l.resync)
	}
	return name
}

// cluster is a namespace of the sandbox with a load in it, or without.
type cluster struct {
	*lab.Cluster

	load load
}

// newCluster prepares a load: all but the parents and the manager.
func newCluster(tb testing.TB, l load) *cluster {
	tb.Helper()
	cfg := sandboxtest.Get(tb).Config()
	if err := errors.Join(install.CRDs(tb.Context(), cfg), install.Apply(tb.Context(), cfg, parentsCRD)); err != nil {
		tb.Fatal(err)
	}
	c := &cluster{lab.NewCluster(tb, counted, lab.Load{Parents: l.parents, Children: l.children}, parents), l}
	c.Resyncs = l.resync > 0
	return c
}

// control makes the CompositeController, until the test ends.
func (c *cluster) control() {
	c.Helper()
	strategy := m{
		"method":       "RollingRecreate",
		"statusChecks": m{"conditions": []any{m{"type": "Ready", "status": "True"}}},
	}
	if c.load.maxUnavailable > 0 {
		strategy["maxUnavailable"] = int64(c.load.maxUnavailable)
	}
	spec := m{
		"parentResource": m{
			"apiVersion": "bench.cairn.dev/v1", "resource": "parents",
			"revisionHistory": m{"fieldPaths": []any{"spec.template"}},
		},
		"childResources": []any{m{"apiVersion": "v1", "resource": "pods", "updateStrategy": strategy}},
		"hooks":          m{"sync": m{"webhook": m{"url": startHook(c.TB)}}},
	}
	if c.load.resync > 0 {
		spec["resyncPeriodSeconds"] = int64(c.load.resync)
	}
	controllers := c.User.Resource(controllersResource)
	o := &unstructured.Unstructured{Object: m{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
		"metadata": m{"name": c.Namespace}, "spec": spec,
	}}
	if _, err := controllers.Create(c.Context(), o, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := controllers.Delete(context.WithoutCancel(c.Context()), c.Namespace, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	})
}

// controlled waits until a manager says that it runs the controller, and is done with saying so.
func (c *cluster) controlled() {
	c.Helper()
	c.Eventually("the controller to run", func(ctx context.Context) (bool, error) {
		o, err := c.User.Resource(controllersResource).Get(ctx, c.Namespace, metav1.GetOptions{})
		return err == nil && lab.Condition(o, "Ready") == "True", err
	})
	c.Rested()
}
