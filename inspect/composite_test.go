package inspect

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/inspecttest"
)

// These tests are about parents of CompositeControllers. What a person sees of them is in the golden files of cli.

// TestWhoseParentIsIt: whether an object is a parent is found out when somebody asks, and what is in the way is said.
func TestWhoseParentIsIt(t *testing.T) {
	nap := inspecttest.CatSet("2")
	west := inspecttest.CatSet("2")
	west.SetKind("Zoo")
	west.SetNamespace("")
	zoos := inspecttest.ControllerOf("zoo", inspecttest.Pets.WithResource("zoos"), "spec.template")
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "metacontroller.k8s.io", Resource: "compositecontrollers"}, "", nil)
	broken := inspecttest.CatSets()
	broken.Spec.ParentResource.RevisionHistory.FieldPaths = []string{"status"}
	nonsense := inspecttest.ControllerOf("nonsense", inspecttest.Pets.WithResource("catsets"))
	nonsense.Spec.ParentResource.APIVersion = "a/b/c"
	elsewhere := inspecttest.CatSets() // it selected the parent once
	elsewhere.Spec.ParentResource.LabelSelector = &metav1.LabelSelector{MatchLabels: map[string]string{"kept": "elsewhere"}}
	for name, c := range map[string]struct {
		of      client.Object
		listing error
		more    []client.Object
		want    string
	}{
		"a parent":                 {of: nap, more: []client.Object{inspecttest.CatSets(), nonsense}},
		"a parent once":            {of: nap, more: []client.Object{elsewhere}},
		"nobody's":                 {of: nap, more: []client.Object{zoos}, want: "catset.pets.example.com has no history; to record later edits, create a HistoryPolicy; the parents of CompositeControllers are: zoos.pets.example.com"},
		"no such controllers":      {of: nap, listing: &meta.NoKindMatchError{}, want: "has no history; to record later edits"},
		"forbidden":                {of: nap, listing: refused, want: "find the CompositeController of catset.pets.example.com: compositecontrollers.metacontroller.k8s.io is forbidden"},
		"a controller that cannot": {of: nap, more: []client.Object{broken}, want: "CompositeController catset: spec.parentResource.revisionHistory.fieldPaths: status"},
		"no namespace":             {of: west, more: []client.Object{zoos}, want: "find the revisions of Zoo nap: the parent is in no namespace"},
		"a DaemonSet":              {of: inspecttest.Web("web:1"), listing: refused},
	} {
		t.Run(name, func(t *testing.T) {
			i := New(inspecttest.PetServer(t, inspecttest.Refusing(c.listing), append(c.more, c.of)...))
			_, err := i.History(t.Context(), c.of)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// TestBuiltinParents: a kind that has a log by itself is read as a composite parent only where that log is empty, and a
// parent may have a Go type.
func TestBuiltinParents(t *testing.T) {
	cc := inspecttest.ControllerOf("webs", appsv1.SchemeGroupVersion.WithResource("daemonsets"), "spec.template")
	ds := inspecttest.Web("web:2")
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ds)
	if err != nil {
		t.Fatal(err)
	}
	parent := &unstructured.Unstructured{Object: raw}
	parent.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	composite := inspecttest.Taken(t, cc, parent, 7)
	own := inspecttest.StoredOf(t, ds, 1, "aaa")
	for name, c := range map[string]struct {
		objects []client.Object
		want    int64
		by      string
	}{
		"its own":            {objects: []client.Object{own}, want: 1},
		"both":               {objects: []client.Object{own, composite}, want: 1},
		"the controller's":   {objects: []client.Object{composite}, want: 7, by: "webs"},
		"neither of the two": {},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := New(inspecttest.PetServer(t, interceptor.Funcs{}, append(c.objects, ds.DeepCopy(), cc.DeepCopy())...)).History(t.Context(), ds)
			if err != nil {
				t.Fatal(err)
			}
			if h.Controller != c.by || c.want > 0 && (len(h.Entries) != 1 || h.Entries[0].Number != c.want || !h.Entries[0].Current) {
				t.Errorf("%+v", h)
			}
		})
	}
}

// TestGetParent: an object of a custom kind is read without a Go type, at the version that its controller looks at.
func TestGetParent(t *testing.T) {
	old := schema.GroupVersion{Group: inspecttest.Pets.Group, Version: "v1alpha1"}
	cc := inspecttest.CatSets()
	var asked []string
	funcs := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		asked = append(asked, o.GetObjectKind().GroupVersionKind().String())
		return c.Get(ctx, key, o, opts...)
	}}
	nap := inspecttest.CatSet("2")
	i := New(inspecttest.PetServer(t, funcs, nap, cc, inspecttest.Taken(t, cc, nap, 1)))
	who, err := i.Get(t.Context(), inspecttest.Pets.WithKind("CatSet").GroupKind(), "shop", "nap")
	if err != nil || who.GetUID() != nap.GetUID() {
		t.Fatalf("%v, %v", who, err)
	}
	former := inspecttest.CatSet("2")
	former.SetGroupVersionKind(old.WithKind("CatSet"))
	h, err := i.History(t.Context(), former)
	if err != nil || h.Parent.Version != inspecttest.Pets.Version || !h.Entries[0].Current {
		t.Errorf("%+v, %v", h, err)
	}
	want := []string{inspecttest.Pets.WithKind("CatSet").String(), inspecttest.Pets.WithKind("CatSet").String()}
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
}

// TestStampFromTheFuture: a revision that says it was taken from a later parent makes us read again, and blocks nobody
// if that is a lie.
func TestStampFromTheFuture(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
	stamped := inspecttest.Taken(t, cc, nap, 2)
	stamped.Annotations = map[string]string{history.ParentUIDAnnotation: "nap-uid", history.ParentGenerationAnnotation: "4"}
	later := inspecttest.CatSet("3")
	later.SetGeneration(4)
	later.SetResourceVersion("101")
	for name, c := range map[string]struct {
		now     *unstructured.Unstructured
		current bool
	}{
		"the read is old":  {now: later},
		"the stamp is new": {now: nap, current: true},
	} {
		t.Run(name, func(t *testing.T) {
			h, err := New(inspecttest.PetServer(t, interceptor.Funcs{}, c.now, cc.DeepCopy(), stamped.DeepCopy())).History(t.Context(), nap)
			if err != nil || h.Entries[0].Current != c.current {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

// TestClaims: a child in two revisions belongs to the newer, and to that of the spec where there are no numbers.
func TestClaims(t *testing.T) {
	cc, nap := inspecttest.CatSets(), inspecttest.CatSet("2")
	for name, numbers := range map[string][3]int64{"numbered": {1, 2, 3}, "of Metacontroller": {0, 0, 0}, "gone back": {4, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			log := []client.Object{
				inspecttest.Taken(t, cc, inspecttest.CatSet("1"), numbers[0], "a", "b", "c"),
				inspecttest.Taken(t, cc, nap, numbers[2], "a"),
			}
			if numbers[1] > 0 {
				log = append(log, inspecttest.Taken(t, cc, inspecttest.CatSet("3"), numbers[1], "b", "a"))
			}
			h, err := New(inspecttest.PetServer(t, interceptor.Funcs{}, append(log, nap, cc)...)).History(t.Context(), nap)
			if err != nil {
				t.Fatal(err)
			}
			got := map[string]int{}
			for _, e := range h.Entries {
				content, err := e.Content()
				if err != nil {
					t.Fatal(err)
				}
				got[fmt.Sprintf("%d %s", e.Number, content)] = e.Children
			}
			want := map[string]int{
				`1 {"spec":{"template":{"text":"1"}}}`: 1, `2 {"spec":{"template":{"text":"3"}}}`: 1, `3 {"spec":{"template":{"text":"2"}}}`: 1,
			}
			if numbers[0] == 4 { // the spec is that of 3, which its controller has not renumbered yet
				want = map[string]int{
					`2 {"spec":{"template":{"text":"3"}}}`: 0, `3 {"spec":{"template":{"text":"2"}}}`: 0, `4 {"spec":{"template":{"text":"1"}}}`: 3,
				}
			}
			if numbers[1] == 0 {
				want = map[string]int{`0 {"spec":{"template":{"text":"1"}}}`: 2, `0 {"spec":{"template":{"text":"2"}}}`: 1}
			}
			if d := cmp.Diff(want, got); d != "" {
				t.Error(d)
			}
		})
	}
}
