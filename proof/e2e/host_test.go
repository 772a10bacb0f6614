package e2e

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	eventsv1 "k8s.io/api/events/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file hosts controllers that do nothing against the real API server: how they come and go with the objects that
// describe them, and with the kinds that these name.

// hostedTest counts what is done to the controllers of one test.
type hostedTest struct {
	*env

	selector labels.Set
	// user is who the manager is, an administrator if it is empty.
	user string

	built, closed atomic.Int32
	parents       sync.Map // those that passes were run for
}

func newHosting(t *testing.T) *hostedTest {
	t.Helper()
	h := &hostedTest{env: metacontrollerEnv(t)}
	h.selector = labels.Set{"host-test": h.namespace}
	return h
}

// start runs a manager that hosts the controllers of this test, until the returned function is called.
func (h *hostedTest) start() (stop func()) {
	h.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		h.Fatal(err)
	}
	cfg := h.sandbox.Config()
	cfg.QPS = -1
	cfg.Impersonate.UserName = h.user
	mgr, err := ctrl.NewManager(cfg, ctrl.Options{
		Scheme:                  scheme,
		Logger:                  klog.Background(),
		Cache:                   cache.Options{DefaultUnsafeDisableDeepCopy: new(true)},
		Metrics:                 server.Options{BindAddress: "0"},
		GracefulShutdownTimeout: new(20 * time.Second),
		Controller:              config.Controller{SkipNameValidation: new(true)},
	})
	if err != nil {
		h.Fatal(err)
	}
	hosted, err := host.NewEnvironment(mgr, host.Options{})
	if err != nil {
		h.Fatal(err)
	}
	build := func(ctx context.Context, c *v1alpha1.CompositeController) (*hosting.Controller, error) {
		return h.build(ctx, hosted, c)
	}
	if err := hosting.Supervise(mgr, hosted.Host, hosting.Kind[*v1alpha1.CompositeController]{
		Name: "composite", Noun: "controller", Selector: h.selector.AsSelector(), Build: build,
		Status: func(c *v1alpha1.CompositeController) hosting.Status { return hosting.Status(c.Status) },
	}); err != nil {
		h.Fatal(err)
	}
	return h.run(mgr.Start)
}

// build makes a controller that notes its parents.
func (h *hostedTest) build(ctx context.Context, hosted *host.Environment, c *v1alpha1.CompositeController) (*hosting.Controller, error) {
	rule := c.Spec.ParentResource.ResourceRule
	parent, err := hosted.Resource(rule.APIVersion, rule.Resource)
	if err != nil {
		return nil, err
	}
	if _, err := hosted.ConsistencyOf(ctx, []watching.Resource{watching.Revisions}, []watching.Resource{parent}); err != nil {
		return nil, err
	}
	h.built.Add(1)
	return &hosting.Controller{
		Reconciler: reconcile.Func(func(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
			o := parent.New()
			if err := hosted.Cache.Get(ctx, req.NamespacedName, o); err != nil {
				return reconcile.Result{}, client.IgnoreNotFound(err)
			}
			if o.GetLabels()["panic"] != "" {
				panic("a parent that nobody can look at")
			}
			h.parents.Store(req.NamespacedName, c.Generation)
			return reconcile.Result{}, nil
		}),
		Sources: []source.Source{
			&watching.Events{Cache: hosted.Cache, Object: parent.New(), Handler: &handler.EnqueueRequestForObject{}},
		},
		Close: func() { h.closed.Add(1) },
	}, nil
}

// describe creates a CompositeController for a resource.
func (h *hostedTest) describe(apiVersion, resource string) *v1alpha1.CompositeController {
	h.Helper()
	c := &v1alpha1.CompositeController{
		ObjectMeta: metav1.ObjectMeta{GenerateName: "host-", Labels: h.selector},
		Spec: v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
			ResourceRule: v1alpha1.ResourceRule{APIVersion: apiVersion, Resource: resource},
		}},
	}
	h.create(c)
	h.Cleanup(func() { _ = h.Delete(context.WithoutCancel(h.Context()), c) })
	return c
}

// ready waits until the condition Ready of c is about its newest spec and has a reason.
func (h *hostedTest) ready(c *v1alpha1.CompositeController, reason string) {
	h.Helper()
	h.eventually("wait for Ready with reason "+reason, func() error {
		if err := h.Get(h.Context(), client.ObjectKeyFromObject(c), c); err != nil {
			return err
		}
		got := meta.FindStatusCondition(c.Status.Conditions, hosting.Ready)
		if got == nil || got.Reason != reason || got.ObservedGeneration != c.Generation || c.Status.ObservedGeneration != c.Generation {
			return fmt.Errorf("generation %d, status %+v", c.Generation, c.Status)
		}
		return nil
	})
}

// sees waits until a pass was run for a parent, by the controller of a generation of its object.
func (h *hostedTest) sees(o client.Object, generation int64) {
	h.Helper()
	h.eventually("wait for a pass", func() error {
		if at, _ := h.parents.Load(client.ObjectKeyFromObject(o)); at != generation {
			return fmt.Errorf("the last one was at generation %v", at)
		}
		return nil
	})
}

func (h *hostedTest) configMap(name string, set labels.Set) *unstructured.Unstructured {
	h.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	o.SetNamespace(h.namespace)
	o.SetName(name)
	o.SetLabels(set)
	h.create(o)
	return o
}

// happened waits until events about c have been sent, and returns their reasons in order.
func (h *hostedTest) happened(c client.Object, reasons ...string) {
	h.Helper()
	core, err := client.New(h.sandbox.Config(), client.Options{})
	if err != nil {
		h.Fatal(err)
	}
	h.eventually("wait for events", func() error {
		var list eventsv1.EventList
		if err := core.List(h.Context(), &list, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		slices.SortStableFunc(list.Items, func(a, b eventsv1.Event) int { return a.EventTime.Compare(b.EventTime.Time) })
		var got []string
		for _, e := range list.Items {
			if e.Regarding.UID == c.GetUID() {
				got = append(got, e.Reason)
			}
		}
		if !slices.Equal(got, reasons) {
			return fmt.Errorf("%q, not %q", got, reasons)
		}
		return nil
	})
}

func TestHostedControllersComeAndGo(t *testing.T) {
	h := newHosting(t)
	h.start()
	old := h.configMap("old", nil)
	c := h.describe("v1", "configmaps")
	h.ready(c, hosting.Running)
	h.sees(old, 1)
	h.configMap("bad", labels.Set{"panic": "always"})
	h.sees(h.configMap("new", nil), 1)

	// What is no part of the spec starts nothing.
	c.Annotations = map[string]string{"note": "only this"}
	if err := h.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.sees(h.configMap("newer", nil), 1)
	if got := h.built.Load(); got != 1 {
		t.Errorf("built %d times for one spec", got)
	}

	c.Spec.ResyncPeriodSeconds = new(int32(60))
	if err := h.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.ready(c, hosting.Running)
	h.sees(old, 2)
	if built, closed := h.built.Load(), h.closed.Load(); built != 2 || closed != 1 {
		t.Errorf("built %d times and closed %d times for two specs", built, closed)
	}

	if err := h.Delete(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.happened(c, "Starting", "Started", "Stopping", "Stopped", "Starting", "Started", "Stopping", "Stopped")
	if closed := h.closed.Load(); closed != 2 {
		t.Errorf("closed %d times", closed)
	}
	// A controller that is selected no longer ends as well.
	c = h.describe("v1", "configmaps")
	h.ready(c, hosting.Running)
	c.Labels = nil
	if err := h.Update(t.Context(), c); err != nil {
		t.Fatal(err)
	}
	h.happened(c, "Starting", "Started", "Stopping", "Stopped")
}

// thing is a kind that comes and goes.
const thing = `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.host.cairn.dev}
spec:
  group: host.cairn.dev
  names: {kind: Thing, listKind: ThingList, plural: things, singular: thing}
  scope: Namespaced
  versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}}]
`

func TestHostedControllerWaitsForItsKind(t *testing.T) {
	h := newHosting(t)
	h.start()
	c := h.describe("host.cairn.dev/v1", "things")
	h.ready(c, hosting.NotServed)
	other := h.describe("v1", "configmaps")
	h.ready(other, hosting.Running) // nobody waits for the one that cannot be started

	if err := install.Apply(t.Context(), h.sandbox.Config(), thing); err != nil {
		t.Fatal(err)
	}
	h.Cleanup(h.forgetThings)
	h.ready(c, hosting.Running)
	h.sees(h.thing("first"), 1)

	// Its kind goes and comes again. Passes over other kinds go on, and in the end it is as if nothing had happened.
	h.forgetThings()
	h.sees(h.configMap("meanwhile", nil), 1)
	if err := install.Apply(t.Context(), h.sandbox.Config(), thing); err != nil {
		t.Fatal(err)
	}
	h.sees(h.thing("second"), 1)
	h.ready(c, hosting.Running)
}

func (h *hostedTest) thing(name string) *unstructured.Unstructured {
	h.Helper()
	o := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "host.cairn.dev/v1", "kind": "Thing"}}
	o.SetNamespace(h.namespace)
	o.SetName(name)
	h.eventually("create a thing", func() error { return h.Create(h.Context(), o) })
	return o
}

// forgetThings deletes the definition of things, and waits until it is gone.
func (h *hostedTest) forgetThings() {
	h.Helper()
	ctx := context.WithoutCancel(h.Context())
	crd := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition"}}
	crd.SetName("things.host.cairn.dev")
	h.eventually("delete the definition of things", func() error {
		err := h.Delete(ctx, crd)
		if err == nil {
			return errors.New("it is still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// hostRole lets a user host controllers, and see no parents.
const hostRole = `
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: host-test}
rules:
- {apiGroups: [metacontroller.k8s.io], resources: [compositecontrollers, controllerrevisions], verbs: [get, list, watch]}
- {apiGroups: [metacontroller.k8s.io], resources: [compositecontrollers/status], verbs: [patch]}
- {apiGroups: [""], resources: [events], verbs: [create, patch]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: host-test}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: host-test}
subjects:
- {apiGroup: rbac.authorization.k8s.io, kind: User, name: host-test}
`

// TestHostedControllerWithoutRights: the condition says what is missing, and the controller starts once it is there.
func TestHostedControllerWithoutRights(t *testing.T) {
	h := newHosting(t)
	if err := install.Apply(t.Context(), h.sandbox.Config(), hostRole); err != nil {
		t.Fatal(err)
	}
	h.user = "host-test"
	h.start()
	c := h.describe("v1", "configmaps")
	h.eventually("wait for the reason", func() error {
		h.ready(c, hosting.Starting)
		why := meta.FindStatusCondition(c.Status.Conditions, hosting.Ready).Message
		if !strings.Contains(why, `User "host-test" cannot list resource "configmaps"`) {
			return errors.New(why)
		}
		return nil
	})
	allowed := strings.ReplaceAll(hostRole, "rules:", `rules:
- {apiGroups: [""], resources: [configmaps], verbs: [get, list, watch]}`)
	if err := install.Apply(t.Context(), h.sandbox.Config(), allowed); err != nil {
		t.Fatal(err)
	}
	h.ready(c, hosting.Running)
}

func TestHostingEndsAtOnce(t *testing.T) {
	h := newHosting(t)
	stops := []func(){h.start(), h.start()}
	c := h.describe("v1", "configmaps")
	h.ready(c, hosting.Running)
	h.eventually("wait for both managers", func() error {
		if built := h.built.Load(); built != 2 {
			return fmt.Errorf("%d of them host", built)
		}
		return nil
	})
	before := time.Now()
	for _, stop := range stops {
		stop()
	}
	if took := time.Since(before); took > 10*time.Second {
		t.Errorf("two managers took %s to end, one after the other", took)
	}
	if closed := h.closed.Load(); closed != 2 {
		t.Errorf("closed %d times", closed)
	}
}
