package decorator

// What the tests share: a DecoratorController over a fake API server, a hook that is a function, and objects in few
// words.

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/ownership"
)

// The kinds that there are.
var (
	statefulSets = watching.Resource{Kind: appsv1.SchemeGroupVersion.WithKind("StatefulSet"), Resource: appsv1.SchemeGroupVersion.WithResource("statefulsets"), Namespaced: true}
	services     = watching.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Service"), Resource: corev1.SchemeGroupVersion.WithResource("services"), Namespaced: true}
	configMaps   = watching.Resource{Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespaced: true}
	namespaces   = watching.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Namespace"), Resource: corev1.SchemeGroupVersion.WithResource("namespaces")}
	// plants have no status of their own.
	plants = watching.Resource{
		Kind:     schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Plant"},
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "plants"}, Namespaced: true,
	}
)

// served finds resources among them.
type served struct{}

func (served) Resource(apiVersion, resource string) (watching.Resource, error) {
	for _, r := range []watching.Resource{statefulSets, services, configMaps, namespaces, plants} {
		if r.Resource.GroupVersion().String() == apiVersion && r.Resource.Resource == resource {
			return r, nil
		}
	}
	return watching.Resource{}, fmt.Errorf("no resource %s in %s", resource, apiVersion)
}

// controller reads a spec, as people write it.
func controller(t testing.TB, name, spec string) *settings {
	t.Helper()
	dc := &v1alpha1.DecoratorController{ObjectMeta: metav1.ObjectMeta{Name: name}}
	must(t, yaml.UnmarshalStrict([]byte(spec), &dc.Spec))
	s, err := read(dc, served{})
	must(t, err)
	for _, d := range s.resources {
		d.status = d.Resource != plants
	}
	return s
}

// perPod is Metacontroller's example: a Service for each pod of a StatefulSet that asks for it.
const perPod = `
resources:
- apiVersion: apps/v1
  resource: statefulsets
  annotationSelector: {matchExpressions: [{key: service-per-pod-label, operator: Exists}]}
attachments:
- {apiVersion: v1, resource: services, updateStrategy: {method: InPlace}}
hooks:
  sync: {}
  finalize: {}
`

// answers is a hook as a function of what it is told. It returns the body of its answer.
type answers func(q *hook.Question) string

// world is a server with a controller.
type world struct {
	*fakeserver.Server

	t      testing.TB
	r      *Reconciler
	events *fakeserver.Recorder
	resync *resyncing
	asked  []string
	// forgotten are objects of which no related ones are wanted any more.
	forgotten []types.UID
}

func newWorld(t testing.TB, s *settings, h answers, objects ...client.Object) *world {
	t.Helper()
	kinds := fakeserver.Kinds{Status: []client.Object{&appsv1.StatefulSet{}, &corev1.Namespace{}}}
	for _, r := range []watching.Resource{services, configMaps, namespaces} {
		kinds.Indexed = append(kinds.Indexed, r.New())
	}
	return worldOn(t, fakeserver.NewWith(t, kinds, objects...), s, h)
}

// worldOn makes one more controller for a server.
func worldOn(t testing.TB, server *fakeserver.Server, s *settings, h answers) *world {
	t.Helper()
	w := &world{Server: server, t: t, events: &fakeserver.Recorder{}, resync: &resyncing{after: map[types.NamespacedName]time.Duration{}}}
	w.r = newReconciler(&host.Environment{Host: &hosting.Host{
		// The cache is what is stored, so that only live reads are requests.
		Server:   &watching.Server{Client: w.Server, Live: w.Server, Clock: clock.RealClock{}, Cache: cached{Reader: w.Raw}},
		Recorder: w.events,
	}}, s, ownership.NewConsistencyStore(nil))
	w.r.resync = w.resync
	w.r.forgotten = func(types.UID) {}
	for _, d := range s.resources {
		w.r.related[d.Kind.GroupKind()] = nothing{w}
	}
	w.r.sync = asking{w, hook.Sync, h}
	if s.finalizes {
		w.r.finalize = asking{w, hook.Finalize, h}
	}
	return w
}

// cached is a cache that shows what a reader does. Nobody asks it for informers.
type cached struct {
	cache.Informers
	client.Reader
}

// asking is a hook.
type asking struct {
	world *world

	kind hook.Kind
	h    answers
}

func (a asking) Ask(_ context.Context, q *hook.Question) (*hook.Answer, error) {
	a.world.asked = append(a.world.asked, fmt.Sprintf("%s %s", a.kind, q.Parent.GetName()))
	form := hook.Form{Hook: a.kind, Type: hook.Decorator, Namespace: q.Parent.GetNamespace()}
	for _, r := range a.world.r.attachments {
		form.Kinds = append(form.Kinds, hook.ChildKind{GroupVersionKind: r.Kind, Namespaced: r.Namespaced})
	}
	return form.Decode([]byte(a.h(q)))
}

// nothing is related.
type nothing struct{ world *world }

func (nothing) Gather(context.Context, *unstructured.Unstructured) ([]hook.Group, error) {
	return nil, nil
}
func (n nothing) Forget(uid types.UID) { n.world.forgotten = append(n.world.forgotten, uid) }

// resyncing keeps when objects want to be asked again.
type resyncing struct {
	after map[types.NamespacedName]time.Duration
	due   bool
}

func (r *resyncing) After(key types.NamespacedName, d time.Duration) {
	if d > 0 {
		r.after[key] = d
	}
}

func (r *resyncing) Take(types.NamespacedName) bool {
	due := r.due
	r.due = false
	return due
}
func (r *resyncing) Put(types.NamespacedName)    { r.due = true }
func (r *resyncing) Forget(types.NamespacedName) {}

// webRequest is the request for web.
var webRequest = requestFor(&decorated{Resource: statefulSets}, types.NamespacedName{Namespace: "default", Name: "web"})

func (w *world) reconcile(req reconcile.Request) (reconcile.Result, error) {
	w.t.Helper()
	return w.r.Reconcile(context.Background(), req)
}

func (w *world) mustReconcile(req reconcile.Request) {
	w.t.Helper()
	result, err := w.reconcile(req)
	must(w.t, err)
	if result.RequeueAfter > 0 {
		w.t.Fatalf("the pass was dropped, to be made again in %v", result.RequeueAfter)
	}
}

// settle makes passes until one writes nothing.
func (w *world) settle(req reconcile.Request) {
	w.t.Helper()
	for range 20 {
		before := len(w.Writes())
		_, err := w.reconcile(req)
		must(w.t, err)
		if len(w.Writes()) == before {
			return
		}
	}
	w.t.Fatalf("it writes for ever: %v", w.Writes())
}

// get reads an object as it is stored, nil if it is not there.
func (w *world) get(r watching.Resource, name string) *unstructured.Unstructured {
	w.t.Helper()
	o := fakeserver.Of(r.Kind)
	key := types.NamespacedName{Name: name}
	if r.Namespaced {
		key.Namespace = "default"
	}
	if err := w.Raw.Get(context.Background(), key, o); err != nil {
		must(w.t, client.IgnoreNotFound(err))
		return nil
	}
	return o
}

// edit changes an object as a person would.
func (w *world) edit(r watching.Resource, name string, change func(o *unstructured.Unstructured)) {
	w.t.Helper()
	o := w.get(r, name)
	change(o)
	must(w.t, w.Raw.Update(context.Background(), o))
}

// names are those of the objects of a kind, sorted.
func (w *world) names(r watching.Resource) []string {
	w.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(r.Kind.GroupVersion().WithKind(r.Kind.Kind + "List"))
	must(w.t, w.Raw.List(context.Background(), list))
	var out []string
	for i := range list.Items {
		out = append(out, list.Items[i].GetName())
	}
	slices.Sort(out)
	return out
}

// calls are the requests so far, as text, without the reads if there are any.
func (w *world) calls() string {
	var out []string
	for _, c := range w.Calls() {
		out = append(out, c.String())
	}
	return strings.Join(out, ", ")
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// object makes an object of what people write.
func object(t testing.TB, manifest string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	must(t, yaml.UnmarshalStrict([]byte(manifest), &o.Object))
	return o
}

// web is a StatefulSet that asks for a Service for each of its pods.
func web(t testing.TB, replicas int) *unstructured.Unstructured {
	t.Helper()
	return object(t, fmt.Sprintf(`
apiVersion: apps/v1
kind: StatefulSet
metadata:
  name: web
  namespace: default
  uid: uid-of-web
  generation: 1
  labels: {app: web}
  annotations: {service-per-pod-label: pod-name}
spec: {replicas: %d, serviceName: web, selector: {matchLabels: {app: web}}}
`, replicas))
}

// optOut takes the annotation away.
func optOut(o *unstructured.Unstructured) { o.SetAnnotations(nil) }

// going is an object that somebody has deleted.
func going(o *unstructured.Unstructured) {
	o.SetDeletionTimestamp(new(metav1.NewTime(time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC))))
	o.SetFinalizers(append(o.GetFinalizers(), "example.com/stays"))
}

// servicePerPod is the hook of the example. Finalizing, it is done once the Services are gone.
func servicePerPod(q *hook.Question) string {
	label, asked := q.Parent.GetAnnotations()["service-per-pod-label"]
	attachments := []any{}
	there := 0
	for _, g := range q.Children {
		there += len(g.Objects)
	}
	replicas, _, _ := unstructured.NestedInt64(q.Parent.Object, "spec", "replicas")
	if asked && q.Parent.GetDeletionTimestamp() == nil {
		for i := range replicas {
			name := fmt.Sprintf("%s-%d", q.Parent.GetName(), i)
			attachments = append(attachments, map[string]any{
				"apiVersion": "v1", "kind": "Service", "metadata": map[string]any{"name": name},
				"spec": map[string]any{"selector": map[string]any{label: name}, "ports": []any{map[string]any{"port": 80}}},
			})
		}
	}
	return encode(map[string]any{"attachments": attachments, "finalized": there == 0})
}

func encode(answer map[string]any) string {
	raw, err := json.Marshal(answer)
	if err != nil {
		return err.Error()
	}
	return string(raw)
}

// says is a hook that always answers the same.
func says(body string) answers { return func(*hook.Question) string { return body } }

// labels are those of an object, as text.
func text(values map[string]string) string {
	var out []string
	for _, k := range slices.Sorted(maps.Keys(values)) {
		out = append(out, k+"="+values[k])
	}
	return strings.Join(out, " ")
}

// past is a cache that shows one object as it was.
type past struct {
	client.Reader

	old *unstructured.Unstructured
}

func (p past) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	u, ok := o.(*unstructured.Unstructured)
	if !ok || key.Name != p.old.GetName() || u.GetKind() != p.old.GetKind() {
		return p.Reader.Get(ctx, key, o, opts...)
	}
	u.Object = p.old.DeepCopy().Object
	return nil
}

// unseen is a cache that does not show the objects of a kind.
type unseen struct {
	client.Reader

	kind string
}

func (u unseen) Get(ctx context.Context, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
	if o.GetObjectKind().GroupVersionKind().Kind == u.kind {
		return apierrors.NewNotFound(schema.GroupResource{Resource: u.kind}, key.Name)
	}
	return u.Reader.Get(ctx, key, o, opts...)
}

// empty is a cache in which no lists have arrived.
type empty struct{ client.Reader }

func (empty) List(context.Context, client.ObjectList, ...client.ListOption) error { return nil }
