package composite

// This file is the load: a kind of parents like those that Metacontroller was measured with, a controller for it, and
// parents with pods. It knows when a load has become what was asked for and nobody does anything any more.

import (
	"context"
	_ "embed"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/dynamic"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

const (
	// pollInterval is the pause between two looks. It does not blur what is measured: the kubelet keeps the times.
	pollInterval = 20 * time.Millisecond
	// patience is how long a load may take.
	patience = 10 * time.Minute
	// calm is how long nothing has to happen until all is over. A status is held back for a second at most.
	calm = 1500 * time.Millisecond
)

//go:embed parents.yaml
var parentsCRD string

var (
	parentsResource     = schema.GroupVersionResource{Group: "bench.cairn.dev", Version: "v1", Resource: "parents"}
	controllersResource = schema.GroupVersionResource{
		Group: "metacontroller.k8s.io", Version: "v1alpha1", Resource: "compositecontrollers",
	}
)

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
	testing.TB
	*kubelet

	load      load
	namespace string
	// subject is a configuration whose requests are counted.
	subject *rest.Config
	user    dynamic.Interface
	image   int
}

// newCluster prepares a load: all but the parents and the manager.
func newCluster(tb testing.TB, l load) *cluster {
	tb.Helper()
	s := sandboxtest.Get(tb)
	if err := errors.Join(install.CRDs(tb.Context(), s.Config()), install.Apply(tb.Context(), s.Config(), parentsCRD)); err != nil {
		tb.Fatal(err)
	}
	c := &cluster{TB: tb, load: l, namespace: sandboxtest.Namespace(tb, s)}
	var err error
	if c.subject, err = s.ConfigFor(subject, "system:masters"); err != nil {
		tb.Fatal(err)
	}
	if c.user, err = dynamic.NewForConfig(s.Config()); err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(c.clear)
	c.kubelet = startKubelet(tb, s.Config(), c.namespace)
	c.eventually("serve the parents' kind", func(ctx context.Context) (bool, error) {
		_, err := c.parents().List(ctx, metav1.ListOptions{Limit: 1})
		return err == nil, nil
	})
	return c
}

// clear deletes all pods: a thousand of them take longer than the end of a namespace does otherwise.
func (c *cluster) clear() {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(c.Context()), time.Minute)
	defer cancel()
	pods := c.user.Resource(corev1.SchemeGroupVersion.WithResource("pods")).Namespace(c.namespace)
	if err := pods.DeleteCollection(ctx, metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.Error(err)
	}
}

func (c *cluster) parents() dynamic.ResourceInterface {
	return c.user.Resource(parentsResource).Namespace(c.namespace)
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
	controllers := c.user.Resource(controllersResource)
	o := &unstructured.Unstructured{Object: m{
		"apiVersion": "metacontroller.k8s.io/v1alpha1", "kind": "CompositeController",
		"metadata": m{"name": c.namespace}, "spec": spec,
	}}
	if _, err := controllers.Create(c.Context(), o, metav1.CreateOptions{}); err != nil {
		c.Fatal(err)
	}
	c.Cleanup(func() {
		if err := controllers.Delete(context.WithoutCancel(c.Context()), c.namespace, metav1.DeleteOptions{}); err != nil {
			c.Error(err)
		}
	})
}

// controlled waits until a manager says that it runs the controller, and is done with saying so.
func (c *cluster) controlled() {
	c.Helper()
	c.eventually("the controller to run", func(ctx context.Context) (bool, error) {
		o, err := c.user.Resource(controllersResource).Get(ctx, c.namespace, metav1.GetOptions{})
		return err == nil && condition(o, "Ready") == "True", err
	})
	c.rested()
}

// create makes the parents, with the first image.
func (c *cluster) create() {
	c.Helper()
	c.image = 1
	c.each(func(ctx context.Context, name string) error {
		labels := m{"parent": name}
		o := &unstructured.Unstructured{Object: m{
			"apiVersion": "bench.cairn.dev/v1", "kind": "Parent", "metadata": m{"name": name},
			"spec": m{
				"replicas": int64(c.load.children), "selector": m{"matchLabels": labels},
				"template": m{"metadata": m{"labels": labels}, "spec": podSpec(c.image)},
			},
		}}
		_, err := c.parents().Create(ctx, o, metav1.CreateOptions{})
		return err
	})
}

// scheduler is nobody's name: a scheduler that says of each pod that it finds no node is one more write to each.
const scheduler = "nobody"

// podSpec is that of every pod.
func podSpec(image int) m {
	return m{
		"schedulerName": scheduler,
		"containers":    []any{m{"name": "main", "image": imageName(image)}},
	}
}

func imageName(image int) string { return fmt.Sprintf("bench:%d", image) }

// edit gives the next image to all parents.
func (c *cluster) edit() {
	c.Helper()
	c.image++
	patch := fmt.Sprintf(`[{"op":"replace","path":"/spec/template/spec/containers/0/image","value":%q}]`, imageName(c.image))
	c.each(func(ctx context.Context, name string) error {
		_, err := c.parents().Patch(ctx, name, types.JSONPatchType, []byte(patch), metav1.PatchOptions{})
		return err
	})
}

// remove deletes the parents and waits until their pods are gone.
func (c *cluster) remove() {
	c.Helper()
	if err := c.parents().DeleteCollection(c.Context(), metav1.DeleteOptions{}, metav1.ListOptions{}); err != nil {
		c.Fatal(err)
	}
	c.eventually("the pods to go", func(context.Context) (bool, error) {
		these, others, _ := c.serve("")
		return these+others == 0, nil
	})
}

// each does something for all parents at once.
func (c *cluster) each(f func(ctx context.Context, name string) error) {
	c.Helper()
	errs := make([]error, c.load.parents)
	var all sync.WaitGroup
	for i := range errs {
		all.Go(func() { errs[i] = f(c.Context(), fmt.Sprintf("p%d", i)) })
	}
	all.Wait()
	if err := errors.Join(errs...); err != nil {
		c.Fatal(err)
	}
}

// served waits until every pod serves with the image that the parents have, and returns when that was so.
func (c *cluster) served() time.Time {
	c.Helper()
	var at time.Time
	c.eventually("all pods to serve", func(context.Context) (bool, error) {
		these, others, last := c.serve(imageName(c.image))
		at = last
		return these == c.load.pods() && others == 0, nil
	})
	return at
}

// settled waits until the parents are updated and all is at rest.
func (c *cluster) settled() {
	c.Helper()
	c.updated()
	c.rested()
}

// updated waits until the parents say that they are.
func (c *cluster) updated() {
	c.Helper()
	c.eventually("the parents to be updated", func(ctx context.Context) (bool, error) {
		list, err := c.parents().List(ctx, metav1.ListOptions{})
		if err != nil {
			return false, err
		}
		for _, o := range list.Items {
			if !isUpdated(&o) {
				return false, nil
			}
		}
		return len(list.Items) == c.load.parents, nil
	})
}

// rested waits until nothing is counted any more but calls of the hook by a resync.
func (c *cluster) rested() {
	c.Helper()
	c.eventually("rest", func(context.Context) (bool, error) { return counted.quiet(calm, c.load.resync > 0), nil })
}

// isUpdated reports whether a parent says so, of the generation that it has.
func isUpdated(o *unstructured.Unstructured) bool {
	generation, _, _ := unstructured.NestedInt64(o.Object, "status", "observedGeneration")
	return generation == o.GetGeneration() && condition(o, "Updated") == "True"
}

// condition returns the status of a condition, nothing if there is none of that type.
func condition(o *unstructured.Unstructured, kind string) any {
	conditions, _, _ := unstructured.NestedSlice(o.Object, "status", "conditions")
	for _, item := range conditions {
		if found, ok := item.(m); ok && found["type"] == kind {
			return found["status"]
		}
	}
	return ""
}

// eventually waits for a condition, patiently.
func (c *cluster) eventually(what string, f wait.ConditionWithContextFunc) {
	c.Helper()
	if err := wait.PollUntilContextTimeout(c.Context(), pollInterval, patience, true, f); err != nil {
		c.Fatalf("wait for %s: %v", what, errors.Join(err, c.state()))
	}
}

// state says what there is, for a failure.
func (c *cluster) state() error {
	these, others, _ := c.serve(imageName(c.image))
	lines := []string{fmt.Sprintf("%d pods serve with %s, %d others do; so far: %s", these, imageName(c.image), others, counted.read())}
	list, err := c.parents().List(context.WithoutCancel(c.Context()), metav1.ListOptions{Limit: 3})
	if err != nil && !apierrors.IsNotFound(err) {
		return err
	}
	for _, o := range list.Items {
		lines = append(lines, fmt.Sprintf("%s: generation %d, status %v", o.GetName(), o.GetGeneration(), o.Object["status"]))
	}
	return errors.New(strings.Join(lines, "\n"))
}
