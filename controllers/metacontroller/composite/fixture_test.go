package composite

// What the tests of passes share: a CompositeController over a fake API server, and a hook that is a function.

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clocktesting "k8s.io/utils/clock/testing"
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
	"github.com/cairn-dev/cairn/revision"
)

// The kinds that there are.
var (
	cats = watching.Resource{
		Kind:     schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Cat"},
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "cats"}, Namespaced: true,
	}
	pods    = watching.Resource{Kind: corev1.SchemeGroupVersion.WithKind("Pod"), Resource: corev1.SchemeGroupVersion.WithResource("pods"), Namespaced: true}
	configs = watching.Resource{
		Kind: corev1.SchemeGroupVersion.WithKind("ConfigMap"), Resource: corev1.SchemeGroupVersion.WithResource("configmaps"), Namespaced: true,
	}
	globals = watching.Resource{
		Kind:     schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Global"},
		Resource: schema.GroupVersionResource{Group: "example.com", Version: "v1", Resource: "globals"},
	}
)

type served struct{}

func (served) Resource(apiVersion, resource string) (watching.Resource, error) {
	for _, r := range []watching.Resource{cats, pods, configs, globals} {
		if r.Resource.GroupVersion().String() == apiVersion && r.Resource.Resource == resource {
			return r, nil
		}
	}
	return watching.Resource{}, fmt.Errorf("no resource %s in %s", resource, apiVersion)
}

const catSpec = `
parentResource:
  apiVersion: example.com/v1
  resource: cats
  revisionHistory: {fieldPaths: [spec.image]}
childResources:
- apiVersion: v1
  resource: pods
  updateStrategy:
    method: RollingRecreate
    statusChecks: {conditions: [{type: Ready, status: "True"}]}
hooks:
  sync: {}
`

// passes is a fake API server with a controller of cats.
type passes struct {
	*fakeserver.Server

	t      testing.TB
	r      *reconciler
	clock  *clocktesting.FakeClock
	events *fakeserver.Recorder
	// hook answers; asked lists the revisions that it was asked about.
	hook  func(q *hook.Question) string
	asked []string
	due   bool
}

func newPasses(t testing.TB, spec string) *passes {
	t.Helper()
	cc := &v1alpha1.CompositeController{ObjectMeta: metav1.ObjectMeta{Name: "cats"}}
	must(t, yaml.UnmarshalStrict([]byte(spec), &cc.Spec))
	s, err := readSettings(cc, served{})
	must(t, err)
	kinds := fakeserver.Kinds{
		AddToScheme: v1alpha1.AddToScheme,
		Status:      []client.Object{cats.New()},
		Indexed:     []client.Object{pods.New(), configs.New(), &v1alpha1.ControllerRevision{}},
	}
	cat := fakeserver.Of(cats.Kind)
	cat.SetNamespace("default")
	cat.SetName("tom")
	cat.SetUID("tom-uid")
	cat.SetGeneration(1)
	cat.Object["spec"] = map[string]any{
		"replicas": int64(3), "image": "a", "selector": map[string]any{"matchLabels": map[string]any{"app": "tom"}},
	}
	p := &passes{
		Server: fakeserver.NewWith(t, kinds, cat), t: t, events: &fakeserver.Recorder{},
		clock: clocktesting.NewFakeClock(time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)),
	}
	p.hook = wantsPods
	p.start(s)
	return p
}

// start makes a new process: nothing is remembered.
func (p *passes) start(s *settings) { p.startIn(p.environment(), s) }

func (p *passes) startIn(env *host.Environment, s *settings) {
	p.r = newReconciler(env, s, ownership.NewConsistencyStore(nil))
	p.r.asker.sync, p.r.asker.related, p.r.asker.resync = asking{p, hook.Sync}, nothing{}, &resyncing{p}
	if s.finalizes {
		p.r.asker.finalize = asking{p, hook.Finalize}
	}
}

func (p *passes) environment() *host.Environment {
	return &host.Environment{
		Host: &hosting.Host{
			// The cache is what is stored, so that only live reads are requests.
			Server:   &watching.Server{Client: p.Server, Live: p.Server, Clock: p.clock, Cache: cached{Reader: p.Raw}},
			Recorder: p.events,
		},
		Encoder: hook.NewEncoder(0),
	}
}

// cached is a cache that shows what a reader does. Nobody asks it for informers.
type cached struct {
	cache.Informers
	client.Reader
}

// wantsPods answers pods tom-0 to tom-n-1 of the parent's image, the last one first.
func wantsPods(q *hook.Question) string {
	n, _, _ := unstructured.NestedInt64(q.Parent.Object, "spec", "replicas")
	image, _, _ := unstructured.NestedString(q.Parent.Object, "spec", "image")
	children := []any{}
	for i := n - 1; i >= 0; i-- {
		children = append(children, map[string]any{
			"apiVersion": "v1", "kind": "Pod",
			"metadata": map[string]any{"name": fmt.Sprintf("tom-%d", i), "labels": map[string]any{"app": "tom"}},
			"spec":     map[string]any{"containers": []any{map[string]any{"name": "main", "image": image}}},
		})
	}
	body, err := json.Marshal(map[string]any{"children": children, "status": map[string]any{"wants": n}})
	if err != nil {
		panic(err)
	}
	return string(body)
}

type asking struct {
	passes *passes
	kind   hook.Kind
}

func (a asking) Ask(_ context.Context, q *hook.Question) (*hook.Answer, error) {
	a.passes.asked = append(a.passes.asked, q.Revision)
	form := hook.Form{Hook: a.kind, Type: hook.Composite, Namespace: q.Parent.GetNamespace()}
	for _, r := range a.passes.r.children {
		form.Kinds = append(form.Kinds, hook.ChildKind{GroupVersionKind: r.Kind, Namespaced: r.Namespaced})
	}
	return form.Decode([]byte(a.passes.hook(q)))
}

type nothing struct{}

func (nothing) GatherFor(context.Context, *hook.Question) ([]hook.Group, error) { return nil, nil }
func (nothing) Forget(types.UID)                                                {}

type resyncing struct{ passes *passes }

func (r *resyncing) After(types.NamespacedName, time.Duration) {}
func (r *resyncing) Forget(types.NamespacedName)               {}
func (r *resyncing) Put(types.NamespacedName)                  { r.passes.due = true }
func (r *resyncing) Take(types.NamespacedName) bool {
	due := r.passes.due
	r.passes.due = false
	return due
}

// pass runs one pass, after the children have settled.
func (p *passes) pass() (reconcile.Result, error) {
	p.clock.Step(2 * time.Second)
	return p.r.Reconcile(context.Background(), p.request())
}

// run runs n passes that succeed.
func (p *passes) run(n int) {
	p.t.Helper()
	for range n {
		_, err := p.pass()
		must(p.t, err)
	}
}

// lose deletes the first pod.
func (p *passes) lose() {
	p.t.Helper()
	must(p.t, p.Raw.Delete(context.Background(), &p.pods()[0]))
}

func (*passes) request() reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: "default", Name: "tom"}}
}

// settle makes passes until one writes nothing, and returns how few pods were ready at a time.
func (p *passes) settle() (least int) {
	p.t.Helper()
	least = p.serving()
	for range 60 {
		before := len(p.Writes())
		_, err := p.pass()
		must(p.t, err)
		least = min(least, p.serving())
		if len(p.Writes()) == before && p.serving() == len(p.pods()) {
			return least
		}
		p.makeReady()
	}
	p.t.Fatalf("it writes for ever: %v", p.Writes())
	return 0
}

func (p *passes) pods() []unstructured.Unstructured {
	p.t.Helper()
	list := &unstructured.UnstructuredList{}
	list.SetGroupVersionKind(pods.Kind.GroupVersion().WithKind("PodList"))
	must(p.t, p.Raw.List(context.Background(), list))
	return list.Items
}

func (p *passes) serving() int {
	n := 0
	for _, pod := range p.pods() {
		if isReady(&pod) {
			n++
		}
	}
	return n
}

func isReady(pod *unstructured.Unstructured) bool {
	conditions, _, _ := unstructured.NestedSlice(pod.Object, "status", "conditions")
	return len(conditions) > 0
}

// makeReady makes every pod ready whose image is not "broken".
func (p *passes) makeReady() {
	p.t.Helper()
	for _, pod := range p.pods() {
		if !isReady(&pod) && podImage(&pod) != "broken" {
			pod.Object["status"] = map[string]any{"conditions": []any{map[string]any{"type": "Ready", "status": "True"}}}
			must(p.t, p.Raw.Status().Update(context.Background(), &pod))
		}
	}
}

func podImage(pod *unstructured.Unstructured) string {
	list, _, _ := unstructured.NestedSlice(pod.Object, "spec", "containers")
	container, _ := list[0].(map[string]any)
	return fmt.Sprint(container["image"])
}

// images are those of the pods, by name.
func (p *passes) images() string {
	p.t.Helper()
	var out []string
	for _, pod := range p.pods() {
		out = append(out, podImage(&pod))
	}
	return strings.Join(out, " ")
}

// all reports whether there are three pods, all of that image.
func (p *passes) all(image string) bool {
	p.t.Helper()
	return p.images() == strings.TrimSpace(strings.Repeat(image+" ", 3))
}

func (p *passes) tom() *unstructured.Unstructured {
	p.t.Helper()
	tom := fakeserver.Of(cats.Kind)
	must(p.t, p.Raw.Get(context.Background(), types.NamespacedName{Namespace: "default", Name: "tom"}, tom))
	return tom
}

// edit changes the spec as a person would.
func (p *passes) edit(field string, value any) {
	p.t.Helper()
	tom := p.tom()
	must(p.t, unstructured.SetNestedField(tom.Object, value, "spec", field))
	tom.SetGeneration(tom.GetGeneration() + 1)
	must(p.t, p.Raw.Update(context.Background(), tom))
}

// updated is the condition Updated: its status, reason and message.
func (p *passes) updated() string {
	p.t.Helper()
	conditions, _, _ := unstructured.NestedSlice(p.tom().Object, "status", "conditions")
	for _, c := range conditions {
		if c, ok := c.(map[string]any); ok && c["type"] == conditionUpdated {
			return fmt.Sprintf("%s %s: %s", c["status"], c["reason"], c["message"])
		}
	}
	return ""
}

// revisionObject returns the object that records what tom asks for, which is not stored.
func (p *passes) revisionObject(number int64) *v1alpha1.ControllerRevision {
	p.t.Helper()
	tom := p.tom()
	snapshot, err := p.r.format.Snapshot(tom)
	must(p.t, err)
	o, err := p.r.format.Object(tom, snapshot, nil, number, revision.Stamp{ParentUID: tom.GetUID(), Generation: tom.GetGeneration()})
	must(p.t, err)
	return o.(*v1alpha1.ControllerRevision)
}

// revisions are the stored ones as number, image and children.
func (p *passes) revisions() []string {
	p.t.Helper()
	list := &v1alpha1.ControllerRevisionList{}
	must(p.t, p.Raw.List(context.Background(), list))
	slices.SortFunc(list.Items, func(a, b v1alpha1.ControllerRevision) int { return int(a.Revision - b.Revision) })
	var out []string
	for _, r := range list.Items {
		var patch struct{ Spec struct{ Image string } }
		must(p.t, json.Unmarshal(r.ParentPatch.Raw, &patch))
		n := 0
		for _, c := range r.Children {
			n += len(c.Names)
		}
		out = append(out, fmt.Sprintf("%d:%s:%d", r.Revision, patch.Spec.Image, n))
	}
	return out
}

func must(t testing.TB, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}
