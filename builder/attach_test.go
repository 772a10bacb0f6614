package builder

import (
	"context"
	"errors"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	toolscache "k8s.io/client-go/tools/cache"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/fakeserver"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// attach attaches to a manager that has no API server.
func attach[P client.Object](t *testing.T, scheme *runtime.Scheme, parent P, versions ...string) error {
	t.Helper()
	m, ok := mapper().(*meta.DefaultRESTMapper)
	if !ok {
		t.Fatal("another mapper")
	}
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	m.Add(appsv1.SchemeGroupVersion.WithKind("StatefulSet"), meta.RESTScopeNamespace)
	mgr, err := ctrl.NewManager(&rest.Config{}, ctrl.Options{
		Scheme: scheme, MapperProvider: func(*rest.Config, *http.Client) (meta.RESTMapper, error) { return m, nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	_, err = Attach(t.Context(), mgr, parent, versions...)
	return err
}

func TestWhatAttachRefuses(t *testing.T) {
	all, few := clientgoscheme.Scheme, runtime.NewScheme()
	if err := corev1.AddToScheme(few); err != nil {
		t.Fatal(err)
	}
	typeless, pets := &unstructured.Unstructured{}, &unstructured.Unstructured{}
	pets.SetGroupVersionKind(schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Pet"})
	for name, c := range map[string]struct {
		got  error
		want []string
	}{
		"no parent":      {attach[*corev1.ConfigMap](t, all, nil, "data"), []string{"parent is not set"}},
		"a wrong path":   {attach(t, all, &corev1.ConfigMap{}, "dat"), []string{`versions: "dat": v1.ConfigMap has no field dat`}},
		"no path":        {attach(t, all, &corev1.ConfigMap{}), []string{"versions: ", "at least one field path"}},
		"nested paths":   {attach(t, all, &corev1.ConfigMap{}, "data", "data.a"), []string{"lies inside"}},
		"not served":     {attach(t, all, &corev1.Secret{}, "data"), []string{"parent: the API server does not serve /v1, Kind=Secret"}},
		"no CRD":         {attach(t, all, pets, "spec"), []string{"does not serve example.com/v1, Kind=Pet", "is its CRD installed"}},
		"no kind":        {attach(t, all, typeless, "spec"), []string{"set apiVersion and kind"}},
		"no namespace":   {attach(t, all, &corev1.Node{}, "spec"), []string{"Node is in no namespace"}},
		"not ours":       {attach(t, all, &appsv1.StatefulSet{}, "spec.template"), []string{"a StatefulSet has one already"}},
		"no revisions":   {attach(t, few, &corev1.ConfigMap{}, "data"), []string{"does not know apps/v1, Kind=ControllerRevision"}},
		"metadata alone": {attach(t, all, &metav1.PartialObjectMetadata{}, "data"), []string{"has no field data"}},
		"all of it":      {attach(t, all, &corev1.Node{}, "spec.x"), []string{"attach a history to *v1.Node", "in no namespace", "spec.x"}},
	} {
		for _, want := range c.want {
			if c.got == nil || !strings.Contains(c.got.Error(), want) {
				t.Errorf("%s: %v, want %s", name, c.got, want)
			}
		}
	}
}

// attached is a history on a fake API server.
type attached struct {
	*fakeserver.Server
	*History[*corev1.ConfigMap]

	t *testing.T
}

func newAttached(t *testing.T, o client.Object) *attached {
	t.Helper()
	m := meta.NewDefaultRESTMapper(nil)
	m.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	v, err := describeParent(clientgoscheme.Scheme, m, &corev1.ConfigMap{}, []string{"data"}, arguments{"parent", "versions"})
	if err != nil {
		t.Fatal(err)
	}
	s := fakeserver.New(t, o)
	h := newHistory[*corev1.ConfigMap](v, ownership.NewConsistencyStore(nil), history.Options{
		Client: s, Indexed: true, Cache: history.NewCache(history.DefaultCacheBytes),
	})
	return &attached{s, h, t}
}

func settings() *corev1.ConfigMap {
	return &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{Namespace: "shop", Name: "settings", UID: "settings-uid"},
		Data:       map[string]string{"color": "red"},
	}
}

// color stores another color, and returns the parent as a fresh read shows it.
func (a *attached) color(color string) *corev1.ConfigMap {
	a.t.Helper()
	o := settings()
	if err := a.Raw.Get(a.t.Context(), client.ObjectKeyFromObject(o), o); err != nil {
		a.t.Fatal(err)
	}
	o.Data = map[string]string{"color": color}
	if err := a.Raw.Update(a.t.Context(), o); err != nil {
		a.t.Fatal(err)
	}
	return o
}

func (a *attached) record(o *corev1.ConfigMap) *Recorded[*corev1.ConfigMap] {
	a.t.Helper()
	r, err := a.Record(a.t.Context(), o)
	if err != nil {
		a.t.Fatal(err)
	}
	return r
}

func (a *attached) stored() []appsv1.ControllerRevision {
	a.t.Helper()
	var all appsv1.ControllerRevisionList
	if err := a.Raw.List(a.t.Context(), &all); err != nil {
		a.t.Fatal(err)
	}
	return all.Items
}

// A parent is recorded, found again without a request, undone, shown as it was, and its log is kept short.
func TestRecord(t *testing.T) {
	a := newAttached(t, settings())
	first := a.record(a.color("red"))
	if first.Number != 1 || first.Change != revision.RollForward || !strings.HasSuffix(first.Name, first.Label) || first.Label == "" {
		t.Errorf("%+v", first)
	}
	a.record(a.color("green"))
	writes := len(a.Writes())
	second := a.record(a.color("green"))
	if second.Number != 2 || second.Change != revision.NoChange || len(a.Writes()) != writes || len(second.Revisions) != 2 {
		t.Errorf("%+v after %v", second, a.Writes())
	}
	now := a.color("green")
	was, err := second.At(second.Revisions[0])
	if err != nil || was.Data["color"] != "red" || was.UID != now.UID || second.parent.Data["color"] != "green" {
		t.Errorf("%+v, %v", was, err)
	}
	back := a.record(a.color("red"))
	if back.Number != 3 || back.Name != first.Name || back.Change != revision.Rollback || back.Revisions[1].Name != first.Name {
		t.Errorf("%+v", back)
	}
	a.record(a.color("blue"))
	last := a.record(a.color("white"))
	if err := last.Truncate(t.Context(), -1); err != nil || len(a.stored()) != 4 {
		t.Errorf("%d are left, %v", len(a.stored()), err)
	}
	if err := last.Truncate(t.Context(), 1, second.Label, back.Name); err != nil || len(a.stored()) != 4 {
		t.Errorf("%d are left where two are named, and one is within the limit: %v", len(a.stored()), err)
	}
	if err := last.Truncate(t.Context(), 1); err != nil || len(a.stored()) != 2 {
		t.Errorf("%d are left, %v", len(a.stored()), err)
	}
	for _, call := range a.Calls("delete") {
		if call.UID == "" || call.Version == "" {
			t.Errorf("%s without preconditions", call)
		}
	}
	for _, o := range a.stored() {
		if o.Annotations[history.FieldPathsAnnotation] != "data" || o.Labels["configmap"] != "settings" || !metav1.IsControlledBy(&o, now) {
			t.Errorf("the command line does not find %+v", o.ObjectMeta)
		}
		if children, ok := o.Annotations[history.ChildrenAnnotation]; ok {
			t.Errorf("children of kind %q", children)
		}
	}
}

// What a reconciler returns is retried, or not.
func TestErrorsOfRecord(t *testing.T) {
	terminating, stranger, old := settings(), settings(), settings()
	terminating.DeletionTimestamp, terminating.Finalizers = new(metav1.Now()), []string{"example.com/wait"}
	stranger.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Secret"))
	huge := settings()
	huge.Data["color"] = strings.Repeat("x", history.MaxData)
	fail := func(verb string, err error) func(fakeserver.Call) error {
		return func(c fakeserver.Call) error {
			if c.Verb == verb && c.Kind == "ControllerRevision" {
				return err
			}
			return nil
		}
	}
	type about struct{ terminal, stale bool }
	for name, c := range map[string]struct {
		parent *corev1.ConfigMap
		before func(fakeserver.Call) error
		want   about
		says   string
	}{
		"nothing":         {nil, nil, about{terminal: true}, "nil"},
		"not read":        {&corev1.ConfigMap{}, nil, about{terminal: true}, "was not read from the API server"},
		"another kind":    {stranger, nil, about{terminal: true}, "attached to /v1, Kind=ConfigMap"},
		"terminating":     {terminating, nil, about{terminal: true}, "ConfigMap shop/settings: it was deleted: it is terminating"},
		"too large":       {huge, nil, about{terminal: true}, "make the template smaller"},
		"an old read":     {old, nil, about{stale: true}, "has changed since it was read"},
		"quota":           {nil, fail("create", apierrors.NewForbidden(history.AppsResource, "", errors.New("quota"))), about{}, "quota"},
		"conflict":        {nil, fail("create", apierrors.NewConflict(history.AppsResource, "", errors.New("first"))), about{stale: true}, "first"},
		"ending":          {nil, fail("create", ending()), about{}, "its namespace is being deleted"},
		"the API is down": {nil, fail("create", apierrors.NewServiceUnavailable("down")), about{}, "down"},
	} {
		t.Run(name, func(t *testing.T) {
			a := newAttached(t, settings())
			parent := c.parent
			switch {
			case name == "an old read":
				a.color("green")
			case parent == nil && name != "nothing":
				parent = a.color("red")
			case name == "too large":
				parent = a.color(huge.Data["color"])
			}
			a.Before = c.before
			_, err := a.Record(t.Context(), parent)
			got := about{errors.Is(err, reconcile.TerminalError(nil)), errors.Is(err, history.ErrStale)}
			if err == nil || got != c.want || !strings.Contains(err.Error(), c.says) || len(a.stored()) != 0 {
				t.Errorf("%+v: %v, want %+v: %s", got, err, c.want, c.says)
			}
			a.Before = nil
			if r := a.record(a.color("red")); r.Number != 1 {
				t.Errorf("afterwards %+v", r)
			}
		})
	}
}

// ending is what the API server says to a create in a terminating namespace.
func ending() error {
	err := apierrors.NewForbidden(history.AppsResource, "", errors.New("it is being terminated"))
	err.ErrStatus.Details.Causes = []metav1.StatusCause{{Type: corev1.NamespaceTerminatingCause}}
	return err
}

// A revision with the highest number there is blocks a new one, and is named.
func TestNoNumberIsLeft(t *testing.T) {
	a := newAttached(t, settings())
	a.record(a.color("red"))
	o := &a.stored()[0]
	o.Revision = 1<<63 - 1
	if err := a.Raw.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if r := a.record(a.color("red")); r.Name != o.Name || len(r.Warnings) != 0 {
		t.Errorf("%+v", r)
	}
	_, err := a.Record(t.Context(), a.color("green"))
	if !errors.Is(err, reconcile.TerminalError(nil)) || !strings.Contains(err.Error(), o.Name) {
		t.Error(err)
	}
}

// A revision that cannot be read is kept, and said. One that is equal to another is deleted once Relabel has pointed
// what carries its label at that one.
func TestOddRevisions(t *testing.T) {
	a := newAttached(t, settings())
	first := a.record(a.color("red"))
	double, broken := a.stored()[0].DeepCopy(), a.stored()[0].DeepCopy()
	double.Name, double.UID, double.Labels[HashLabel] = "settings-twin", "twin", "twin"
	broken.Name, broken.UID, broken.Labels[HashLabel] = "settings-odd", "odd", "odd"
	broken.Data.Raw = []byte(`[]`)
	for _, o := range []*appsv1.ControllerRevision{double, broken} {
		o.ResourceVersion = ""
		if err := a.Raw.Create(t.Context(), o); err != nil {
			t.Fatal(err)
		}
	}
	var moved []string
	a.Relabel = func(_ context.Context, parent *corev1.ConfigMap, from, to revision.Revision) error {
		moved = append(moved, parent.Name+": "+from.Hash+" to "+to.Hash)
		return errors.New("one is left")
	}
	if _, err := a.Record(t.Context(), a.color("red")); err == nil || len(a.stored()) != 3 {
		t.Errorf("%d are left, %v", len(a.stored()), err)
	}
	relabel := a.Relabel
	a.Relabel = func(ctx context.Context, parent *corev1.ConfigMap, from, to revision.Revision) error {
		_ = relabel(ctx, parent, from, to)
		return nil
	}
	r := a.record(a.color("red"))
	kept := r.Label
	if len(moved) != 2 || moved[0] != moved[1] || !strings.HasSuffix(moved[0], " to "+kept) || (kept != "twin" && kept != first.Label) {
		t.Errorf("%v, kept %s", moved, kept)
	}
	if len(a.stored()) != 2 || len(r.Revisions) != 2 || len(r.Warnings) != 1 || !strings.Contains(r.Warnings[0].Error(), "settings-odd") {
		t.Errorf("%+v", r)
	}
	for _, one := range r.Revisions {
		if _, err := r.At(one); (err != nil) != (one.Name == "settings-odd") {
			t.Errorf("%s: %v", one.Name, err)
		}
	}
	if err := r.Truncate(t.Context(), 0); err != nil || len(a.stored()) != 2 {
		t.Errorf("%d are left, %v", len(a.stored()), err)
	}
}

// store is a cache that has reached no version yet.
type store struct{}

func (store) LastStoreSyncResourceVersion() string           { return "1" }
func (store) GetByKey(string) (item any, ok bool, err error) { return nil, false, nil }

// A record that does not see the one before it is none: it would count from an old list.
func TestRecordWaitsForItsOwnWrites(t *testing.T) {
	a := newAttached(t, settings())
	a.consistency = ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{history.AppsResource: store{}})
	a.History = newHistory[*corev1.ConfigMap](a.versioned, a.consistency, history.Options{Client: a.Server, Indexed: true})
	a.record(a.color("red"))
	if _, err := a.Record(t.Context(), a.color("green")); !errors.Is(err, history.ErrStale) || len(a.stored()) != 1 {
		t.Errorf("%d revisions, %v", len(a.stored()), err)
	}
	ended, end := context.WithCancel(t.Context())
	end()
	if _, err := a.Record(ended, a.color("green")); !errors.Is(err, context.Canceled) || errors.Is(err, history.ErrStale) {
		t.Error(err)
	}
}

// Parents without a Go type are restored as they are written.
func TestRecordUntyped(t *testing.T) {
	o := &unstructured.Unstructured{}
	o.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("ReplicaSet"))
	v, err := describeParent(clientgoscheme.Scheme, mapper(), o, []string{"spec.template"}, arguments{})
	if err != nil {
		t.Fatal(err)
	}
	o = o.DeepCopy()
	o.SetNamespace("shop")
	o.SetName("web")
	o.SetUID("web-uid")
	at := []string{"spec", "template", "metadata", "labels", "app"}
	if err := unstructured.SetNestedField(o.Object, "one", at...); err != nil {
		t.Fatal(err)
	}
	s := fakeserver.New(t, o)
	h := newHistory[*unstructured.Unstructured](v, ownership.NewConsistencyStore(nil), history.Options{Client: s, Indexed: true})
	if _, err := h.Record(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	if err := unstructured.SetNestedField(o.Object, "two", at...); err != nil {
		t.Fatal(err)
	}
	if err := s.Raw.Update(t.Context(), o); err != nil {
		t.Fatal(err)
	}
	r, err := h.Record(t.Context(), o)
	if err != nil {
		t.Fatal(err)
	}
	was, err := r.At(r.Revisions[0])
	if text, _, _ := unstructured.NestedString(was.Object, at...); err != nil || text != "one" || was.GetKind() != "ReplicaSet" {
		t.Errorf("%v, %v", was, err)
	}
}

// reached is a cache that has reached a version, and shows nothing.
type reached struct {
	store

	version string
}

func (r *reached) LastStoreSyncResourceVersion() string { return r.version }

// What is remembered of a deleted parent goes with its revisions, also if nobody asks for the parent any more.
func TestADeletedParentIsForgotten(t *testing.T) {
	cache := &reached{version: "1"}
	consistency := ownership.NewConsistencyStore(map[schema.GroupResource]ownership.Store{history.AppsResource: cache})
	o := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Name: "settings-a", ResourceVersion: "7"}}
	o.OwnerReferences = []metav1.OwnerReference{*metav1.NewControllerRef(settings(), corev1.SchemeGroupVersion.WithKind("ConfigMap"))}
	consistency.WroteAt("settings-uid", history.AppsResource, o)
	cache.version = "9"
	forgetOwner(consistency)(toolscache.DeletedFinalStateUnknown{Obj: o})
	cache.version = "1" // what is still remembered would be waited for
	if unseen := consistency.Unseen("settings-uid"); unseen != "" {
		t.Error(unseen)
	}
}
