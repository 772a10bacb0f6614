package related

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file is a hosted controller for the tests of related objects, with a customize hook that answers what stands in
// the parent's spec.related.

var (
	configMaps = corev1.SchemeGroupVersion.WithKind("ConfigMap")
	nodeKind   = corev1.SchemeGroupVersion.WithKind("Node")
)

var noon = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)

// relations is a hosted controller with a customize hook.
type relations struct {
	*Objects
	*feeds

	t     *testing.T
	clock *clocktesting.FakeClock
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// lookups counts questions for resources.
	lookups *lookups
}

// lookups is a mapper that counts.
type lookups struct {
	meta.RESTMapper

	n int
}

func (l *lookups) KindsFor(r schema.GroupVersionResource) ([]schema.GroupVersionKind, error) {
	l.n++
	return l.RESTMapper.KindsFor(r)
}

func newRelations(t *testing.T, version v1alpha1.HookVersion) *relations {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var question struct {
			Parent struct {
				Spec struct{ Related json.RawMessage }
			}
		}
		if err := json.NewDecoder(r.Body).Decode(&question); err != nil {
			t.Error(err)
		}
		_, _ = io.WriteString(w, `{"relatedResources":`+string(question.Parent.Spec.Related)+`}`)
	}))
	t.Cleanup(server.Close)
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{corev1.SchemeGroupVersion})
	mapper.Add(configMaps, meta.RESTScopeNamespace)
	mapper.Add(nodeKind, meta.RESTScopeRoot)
	mapper.Add(namespaces.Kind, meta.RESTScopeRoot)
	r := &relations{
		t: t, clock: clocktesting.NewFakeClock(noon), lookups: &lookups{RESTMapper: mapper},
		queue: workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]()),
		feeds: &feeds{
			sources: map[schema.GroupVersionKind]*slowSource{}, informers: map[schema.GroupVersionKind]toolscache.SharedIndexInformer{},
			failures: map[schema.GroupVersionKind]error{},
		},
	}
	t.Cleanup(r.queue.ShutDown)
	customize, err := hook.New(hook.Options{
		Controller: hook.Controller{Type: hook.Composite, Name: "test"}, Kind: hook.Customize,
		Declared: &v1alpha1.Hook{Version: &version, Webhook: &v1alpha1.Webhook{URL: &server.URL}}, Now: r.clock.Now,
		Guard: &hook.Guard{Allow: []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}},
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(customize.Close)
	s := &watching.Server{Cache: r.feeds, Mapper: r.lookups, Clock: r.clock}
	r.Objects = New(s, customize, version, watching.Resource{Resource: schema.GroupVersionResource{Resource: "cats"}, Namespaced: true})
	if err := r.Source().Start(t.Context(), r.queue); err != nil {
		t.Fatal(err)
	}
	return r
}

// parentOf returns a parent whose hook answers rules, as JSON. Its UID is its name.
func parentOf(namespace, name, rules string) *unstructured.Unstructured {
	p := objectOf(schema.GroupVersionKind{Group: "x", Version: "v1", Kind: "Cat"}, namespace, name)
	p.SetUID(types.UID(name))
	var related any
	if err := json.Unmarshal([]byte(rules), &related); err != nil {
		panic(err)
	}
	p.Object["spec"] = map[string]any{"related": related}
	return p
}

// objectOf returns an object with labels that are given as key=value.
func objectOf(kind schema.GroupVersionKind, namespace, name string, set ...string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(kind)
	o.SetNamespace(namespace)
	o.SetName(name)
	o.SetLabels(labelled(set...))
	return o
}

func labelled(set ...string) map[string]string {
	if len(set) == 0 {
		return nil
	}
	out := map[string]string{}
	for _, pair := range set {
		key, value, _ := strings.Cut(pair, "=")
		out[key] = value
	}
	return out
}

// add makes objects exist.
func (r *relations) add(objects ...*unstructured.Unstructured) {
	for _, o := range objects {
		r.of(o.GroupVersionKind()).Add(o.DeepCopy())
	}
}

func (r *relations) modify(o *unstructured.Unstructured) {
	r.of(o.GroupVersionKind()).Modify(o.DeepCopy())
}
func (r *relations) remove(o *unstructured.Unstructured) { r.of(o.GroupVersionKind()).Delete(o) }

// told is what Gather returns, as "kind: namespace/name namespace/name; ...", once all kinds are listed.
func (r *relations) told(q *hook.Question) string {
	r.t.Helper()
	groups, err := r.GatherFor(r.t.Context(), q)
	for err != nil && r.soon(err) {
		groups, err = r.GatherFor(r.t.Context(), q)
	}
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, g := range groups {
		line := g.Kind + ":"
		for _, o := range g.Objects {
			line += " " + strings.TrimPrefix(o.GetNamespace()+"/"+o.GetName(), "/")
		}
		out = append(out, line)
	}
	return strings.Join(out, "; ")
}

// asks is told for a parent as it is, of which only one thing is expected.
func (r *relations) asks(parent *unstructured.Unstructured, want string) {
	r.t.Helper()
	if got := r.told(&hook.Question{Parent: parent}); got != want {
		r.t.Errorf("%s is told %q, not %q", parent.GetName(), got, want)
	}
}

// woken returns the parents that were woken by what was fed of a kind, sorted. It feeds something more, with the label
// test=marker, which wakes a parent of its own: events come in order.
func (r *relations) woken(kind schema.GroupVersionKind) string {
	r.t.Helper()
	resource := strings.ToLower(kind.Kind) + "s"
	marker := objectOf(kind, map[bool]string{true: "marks"}[kind == configMaps], "marker", "test=marker")
	watcher := parentOf("marks", "marker-of-"+resource, fmt.Sprintf(`[{"apiVersion":"v1","resource":%q,"names":["marker"]}]`, resource))
	r.told(&hook.Question{Parent: watcher})
	r.add(marker)
	found := map[string]bool{}
	for {
		next, _ := r.queue.Get()
		r.queue.Done(next)
		if next.Name == watcher.GetName() {
			break
		}
		found[next.Name] = true
	}
	r.remove(marker)
	for next, _ := r.queue.Get(); next.Name != watcher.GetName(); next, _ = r.queue.Get() {
		r.queue.Done(next)
		found[next.Name] = true
	}
	r.queue.Done(reconcile.Request{NamespacedName: client.ObjectKeyFromObject(watcher)})
	r.Forget(watcher.GetUID())
	out := make([]string, 0, len(found))
	for name := range found {
		out = append(out, name)
	}
	slices.Sort(out)
	return strings.Join(out, " ")
}

// wakes is woken, of which only one thing is expected.
func (r *relations) wakes(kind schema.GroupVersionKind, want string) {
	r.t.Helper()
	if got := r.woken(kind); got != want {
		r.t.Errorf("%s: woken is %q, not %q", kind.Kind, got, want)
	}
}

// soon reports whether an error says to try again soon, and waits a little if it does.
func (r *relations) soon(err error) bool {
	if !isNotSynced(err) {
		return false
	}
	select {
	case <-time.After(time.Millisecond):
	case <-r.t.Context().Done():
	}
	return true
}
