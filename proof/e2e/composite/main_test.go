// Package composite tests CompositeControllers against the real API server, garbage collector and scheduler, under the
// roles that are made for each controller, with webhooks in this process that can be made to fail.
package composite

import (
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"os"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file holds what all tests share: the cluster, a parent kind in both scopes, a webhook, and how to wait.

func TestMain(m *testing.M) {
	ctrl.SetLogger(klog.Background())
	os.Exit(sandboxtest.Main(m, sandbox.Options{Nodes: 3, Replaced: sandbox.Kinds()}))
}

// crd is the definition of a kind of the tests.
func crd(kind, scope, more string) string {
	return fmt.Sprintf(`
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %[1]ss.test.cairn.dev}
spec:
  group: test.cairn.dev
  scope: %[3]s
  names: {kind: %[2]s, plural: %[1]ss, singular: %[1]s}
  versions:
  - name: v1
    served: true
    storage: true
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
    %[4]s
`, strings.ToLower(kind), kind, scope, more)
}

var (
	setKind        = schema.GroupVersionKind{Group: "test.cairn.dev", Version: "v1", Kind: "Set"}
	clusterSetKind = schema.GroupVersionKind{Group: "test.cairn.dev", Version: "v1", Kind: "ClusterSet"}
	podKind        = schema.GroupVersionKind{Version: "v1", Kind: "Pod"}
)

// m is an object in JSON.
type m = map[string]any

// request is what a sync hook is told.
type request struct {
	Parent     *unstructured.Unstructured
	Children   map[string]map[string]*unstructured.Unstructured
	Related    map[string]map[string]*unstructured.Unstructured
	Finalizing bool
}

// lab is one test's view of the cluster: a namespace, a webhook, and a CompositeController with a name of its own.
type lab struct {
	*testing.T
	client.WithWatch

	sandbox   *sandbox.Sandbox
	namespace string
	name      string
	// hook answers; calls counts. Set hook before anything asks it, or through answer.
	hook  atomic.Pointer[func(request) any]
	raw   atomic.Pointer[http.HandlerFunc]
	calls atomic.Int64
	url   string
}

func newLab(t *testing.T) *lab {
	t.Helper()
	s := sandboxtest.Get(t)
	cfg := s.Config()
	cfg.QPS = -1
	scheme := runtime.NewScheme()
	must(t, clientgoscheme.AddToScheme(scheme))
	must(t, v1alpha1.AddToScheme(scheme))
	must(t, install.CRDs(t.Context(), cfg))
	const withStatus = "subresources: {status: {}}"
	must(t, install.Apply(t.Context(), cfg, crd("Set", "Namespaced", withStatus), crd("ClusterSet", "Cluster", withStatus)))
	c, err := client.NewWithWatch(cfg, client.Options{Scheme: scheme})
	if err != nil {
		t.Fatal(err)
	}
	l := &lab{T: t, WithWatch: c, sandbox: s, namespace: sandboxtest.Namespace(t, s)}
	l.name = l.namespace
	l.answer(l.pods)
	server := httptest.NewServer(http.HandlerFunc(l.serve))
	t.Cleanup(server.Close)
	l.url = server.URL
	for _, kind := range []schema.GroupVersionKind{setKind, clusterSetKind} {
		l.eventually("serve "+kind.Kind, func() error {
			list := &unstructured.UnstructuredList{}
			list.SetGroupVersionKind(kind.GroupVersion().WithKind(kind.Kind + "List"))
			return c.List(t.Context(), list)
		})
	}
	return l
}

func (l *lab) serve(w http.ResponseWriter, r *http.Request) {
	l.calls.Add(1)
	if raw := l.raw.Load(); raw != nil {
		(*raw)(w, r)
		return
	}
	var in request
	if err := json.NewDecoder(r.Body).Decode(&in); err != nil {
		http.Error(w, err.Error(), http.StatusBadRequest)
		return
	}
	if err := json.NewEncoder(w).Encode((*l.hook.Load())(in)); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}

// answer makes the webhook answer what f returns.
func (l *lab) answer(f func(request) any) {
	l.raw.Store(nil)
	l.hook.Store(&f)
}

// fail makes the webhook answer with f, whatever it is told.
func (l *lab) fail(f http.HandlerFunc) { l.raw.Store(&f) }

// pods is the plainest hook: pods <parent>-0 to n-1 from the template, the last one first.
func (l *lab) pods(in request) any {
	replicas, _, _ := unstructured.NestedInt64(in.Parent.Object, "spec", "replicas")
	children := []any{}
	for i := replicas - 1; i >= 0; i-- {
		children = append(children, l.pod(in, fmt.Sprintf("%s-%d", in.Parent.GetName(), i)))
	}
	return m{"status": m{"observed": len(in.Children["Pod.v1"])}, "children": children}
}

// pod is one pod of the parent's template.
func (l *lab) pod(in request, name string) m {
	template, _, _ := unstructured.NestedMap(in.Parent.Object, "spec", "template")
	pod := (&unstructured.Unstructured{Object: template}).DeepCopy().Object
	pod["apiVersion"], pod["kind"] = "v1", "Pod"
	_ = unstructured.SetNestedField(pod, name, "metadata", "name")
	_ = unstructured.SetNestedField(pod, l.namespace, "metadata", "namespace")
	return pod
}

// accountOf is the ServiceAccount that controllers of a namespace name.
func accountOf(namespace string) map[string]string {
	return map[string]string{cairn.ServiceAccountAnnotation: namespace + "/runner"}
}

// controller returns a CompositeController of Sets with pods that are rolled when ready. It has an account of its own.
func (l *lab) controller(change ...func(*v1alpha1.CompositeController)) *v1alpha1.CompositeController {
	cc := &v1alpha1.CompositeController{
		ObjectMeta: metav1.ObjectMeta{Name: l.name, Annotations: accountOf(l.namespace)},
		Spec: v1alpha1.CompositeControllerSpec{
			ParentResource: v1alpha1.ParentResource{
				ResourceRule:  v1alpha1.ResourceRule{APIVersion: "test.cairn.dev/v1", Resource: "sets"},
				LabelSelector: &metav1.LabelSelector{MatchLabels: map[string]string{"lab": l.namespace}},
				RevisionHistory: &v1alpha1.RevisionHistory{
					FieldPaths: []string{"spec.template"},
				},
			},
			ChildResources: []v1alpha1.ChildResource{{
				ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"},
				UpdateStrategy: &v1alpha1.ChildUpdateStrategy{
					Method: v1alpha1.ChildUpdateRollingRecreate,
					StatusChecks: v1alpha1.ChildUpdateStatusChecks{Conditions: []v1alpha1.StatusConditionCheck{
						{Type: "Ready", Status: new("True")},
					}},
				},
			}},
			Hooks: &v1alpha1.CompositeControllerHooks{
				Sync: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: new(l.url + "/sync")}},
			},
		},
	}
	for _, f := range change {
		f(cc)
	}
	return cc
}

// install creates a CompositeController.
func (l *lab) install(cc *v1alpha1.CompositeController) *v1alpha1.CompositeController {
	l.Helper()
	l.create(cc)
	l.Cleanup(func() { _ = l.Delete(context.WithoutCancel(l.Context()), cc) })
	return cc
}

// cairn runs cairn's manager, with the rights that each of the controllers needs and no more, until stop is called or
// the test ends.
func (l *lab) cairn(controllers ...*v1alpha1.CompositeController) (stop func()) {
	l.Helper()
	return l.cairnWith(func(*manager.Options) {}, controllers...)
}

func (l *lab) cairnWith(change func(*manager.Options), controllers ...*v1alpha1.CompositeController) (stop func()) {
	l.Helper()
	cfg := managerConfig(l.T, l.sandbox, "composite")
	for _, cc := range controllers {
		roles, err := deploy.CompositeRoles(cc, deploy.Grant{})
		if err != nil {
			l.Fatal(err)
		}
		must(l, install.Apply(l.Context(), l.sandbox.Config(), deploy.YAML(roles)))
	}
	o := manager.Options{
		NamedAccounts: true,
		Config:        cfg, Controllers: []string{"composite"}, Logger: klog.Background(),
		HookAllow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}, HookAllowAPIServers: true,
		MetricsBindAddress: manager.Off, HealthProbeBindAddress: manager.Off,
	}
	change(&o)
	ctx, cancel := context.WithCancel(context.WithoutCancel(l.Context()))
	done := make(chan error, 1)
	go func() { done <- manager.Run(ctx, o) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-done; err != nil {
			l.Errorf("the manager ended with: %v", err)
		}
	})
	l.Cleanup(stop)
	return stop
}

// managerConfig grants what controllers share, and returns the manager's configuration: with a certificate of its own,
// so that it acts for others by its own right.
func managerConfig(t *testing.T, s *sandbox.Sandbox, controllers ...string) *rest.Config {
	t.Helper()
	if _, err := install.Roles(t.Context(), s.Config(), controllers, false); err != nil {
		t.Fatal(err)
	}
	return configOf(t, s, deploy.ServiceAccount)
}

// configOf is that of a service account beside the manager's.
func configOf(t *testing.T, s *sandbox.Sandbox, name string) *rest.Config {
	t.Helper()
	cfg, err := s.ConfigAs(deploy.Namespace, name)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// set returns a parent that is not created yet.
func (l *lab) set(kind schema.GroupVersionKind, name string, replicas int64, image string) *unstructured.Unstructured {
	labels := m{"app": l.namespace + "-" + name}
	set := &unstructured.Unstructured{Object: m{"spec": m{
		"replicas": replicas,
		"selector": m{"matchLabels": labels},
		"template": m{
			"metadata": m{"labels": labels},
			"spec":     m{"containers": []any{m{"name": "main", "image": image}}},
		},
	}}}
	set.SetGroupVersionKind(kind)
	set.SetName(name)
	set.SetLabels(map[string]string{"lab": l.namespace})
	if kind == setKind {
		set.SetNamespace(l.namespace)
	}
	return set
}

func (l *lab) create(o client.Object) {
	l.Helper()
	must(l, l.Create(l.Context(), o))
}

// edit changes a parent on the server, whatever happened to it meanwhile, and leaves the result in set.
func (l *lab) edit(set *unstructured.Unstructured, change func(spec m)) {
	l.Helper()
	l.eventually("edit "+set.GetName(), func() error {
		l.reload(set)
		change(set.Object["spec"].(m))
		return l.Update(l.Context(), set)
	})
}

// image changes the image of the template.
func (l *lab) image(set *unstructured.Unstructured, image string) {
	l.Helper()
	l.edit(set, func(spec m) {
		_ = unstructured.SetNestedSlice(spec, []any{m{"name": "main", "image": image}}, "template", "spec", "containers")
	})
}

func (l *lab) scale(set *unstructured.Unstructured, replicas int64) {
	l.Helper()
	l.edit(set, func(spec m) { spec["replicas"] = replicas })
}

func (l *lab) reload(o client.Object) {
	l.Helper()
	must(l, l.Get(l.Context(), client.ObjectKeyFromObject(o), o))
}

// eventually waits until f succeeds. A wait that does not end fails the test with the last error.
func (l *lab) eventually(what string, f func() error) {
	l.Helper()
	deadline := time.Now().Add(time.Minute)
	for {
		err := f()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // this is the wait for a condition
	}
}

// updated is the condition Updated of a parent: status, reason and message.
func updated(set *unstructured.Unstructured) (status, reason, message string) {
	conditions, _, _ := unstructured.NestedSlice(set.Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(m); ok && c["type"] == "Updated" {
			return fmt.Sprint(c["status"]), fmt.Sprint(c["reason"]), fmt.Sprint(c["message"])
		}
	}
	return "", "", "there is no condition Updated"
}

// rolledOut waits until the parent's status says that its rollout is over.
func (l *lab) rolledOut(set *unstructured.Unstructured) {
	l.Helper()
	l.eventually("wait for the rollout of "+set.GetName(), func() error {
		l.reload(set)
		at, _, _ := unstructured.NestedInt64(set.Object, "status", "observedGeneration")
		status, reason, message := updated(set)
		if at < set.GetGeneration() || status != "True" {
			return fmt.Errorf("generation %d, observed %d: %s %s: %s", set.GetGeneration(), at, status, reason, message)
		}
		return nil
	})
}

// reports waits until the condition Updated has that reason and a message that contains text.
func (l *lab) reports(set *unstructured.Unstructured, reason, text string) {
	l.Helper()
	l.eventually("wait for "+reason, func() error {
		l.reload(set)
		status, got, message := updated(set)
		if status != "False" || got != reason || !strings.Contains(message, text) {
			return fmt.Errorf("Updated is %s, %s: %s", status, got, message)
		}
		return nil
	})
}

// podsOf returns the parent's pods by name, those that are going left out.
func (l *lab) podsOf(set *unstructured.Unstructured) map[string]*unstructured.Unstructured {
	l.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(podKind.GroupVersion().WithKind("PodList"))
	must(l, l.List(l.Context(), list, client.InNamespace(l.namespace)))
	out := map[string]*unstructured.Unstructured{}
	for i := range list.Items {
		pod := &list.Items[i]
		if metav1.IsControlledBy(pod, set) && pod.GetDeletionTimestamp() == nil {
			out[pod.GetName()] = pod
		}
	}
	return out
}

// images fails the test unless the parent has exactly so many pods, all with that image.
func (l *lab) images(set *unstructured.Unstructured, count int, image string) {
	l.Helper()
	pods := l.podsOf(set)
	if len(pods) != count {
		l.Errorf("%d pods, want %d", len(pods), count)
	}
	for name, pod := range pods {
		if got := imageOf(pod); got != image {
			l.Errorf("pod %s runs %s, want %s", name, got, image)
		}
	}
}

func imageOf(pod *unstructured.Unstructured) string {
	containers, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	return fmt.Sprint(containers[0].(m)["image"])
}

// uids are the parent's pods as name and UID.
func (l *lab) uids(set *unstructured.Unstructured) map[string]string {
	l.Helper()
	out := map[string]string{}
	for name, pod := range l.podsOf(set) {
		out[name] = string(pod.GetUID())
	}
	return out
}

// revisions returns the parent's revisions, oldest first.
func (l *lab) revisions(set *unstructured.Unstructured) []v1alpha1.ControllerRevision {
	l.Helper()
	list := &v1alpha1.ControllerRevisionList{}
	must(l, l.List(l.Context(), list, client.InNamespace(l.namespace)))
	var out []v1alpha1.ControllerRevision
	for _, r := range list.Items {
		if metav1.IsControlledBy(&r, set) {
			out = append(out, r)
		}
	}
	sortRevisions(out)
	return out
}

// broken is an image whose pods never get ready.
const broken = "broken:1"

// running returns a parent with so many pods of app:1 that is at rest.
func (l *lab) running(replicas int64, change ...func(*v1alpha1.CompositeController)) (*unstructured.Unstructured, *v1alpha1.CompositeController) {
	l.Helper()
	cc := l.install(l.controller(change...))
	l.cairn(cc)
	set := l.set(setKind, "web", replicas, "app:1")
	l.create(set)
	l.rolledOut(set)
	return set, cc
}

// must ends a test unless err is nil.
func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
