package inspect

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/history/record"
)

// These tests are about parents of CompositeControllers. What a person sees of them is in the golden files of cli.

var pets = schema.GroupVersion{Group: "pets.example.com", Version: "v1"}

// petServer returns a client of an API server that knows CatSets, and Metacontroller's types.
func petServer(t *testing.T, funcs interceptor.Funcs, objects ...client.Object) client.WithWatch {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), v1alpha1.AddToScheme(scheme)); err != nil {
		t.Fatal(err)
	}
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{pets, corev1.SchemeGroupVersion, appsv1.SchemeGroupVersion})
	mapper.Add(pets.WithKind("CatSet"), meta.RESTScopeNamespace)
	mapper.Add(pets.WithKind("Zoo"), meta.RESTScopeRoot)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("Pod"), meta.RESTScopeNamespace)
	mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("DaemonSet"), meta.RESTScopeNamespace)
	mapper.Add(appsv1.SchemeGroupVersion.WithKind("Deployment"), meta.RESTScopeNamespace)
	return fake.NewClientBuilder().WithScheme(scheme).WithRESTMapper(mapper).WithObjects(objects...).WithInterceptorFuncs(funcs).Build()
}

func catSet(text string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": pets.String(), "kind": "CatSet",
		"metadata": map[string]any{"namespace": "shop", "name": "nap", "uid": "nap-uid", "generation": int64(3), "resourceVersion": "100"},
		"spec": map[string]any{
			"replicas": int64(2),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "nap"}},
			"template": map[string]any{"text": text},
		},
	}}
}

// controllerOf returns a CompositeController whose parents are of that resource, and which versions these paths.
func controllerOf(name string, resource schema.GroupVersionResource, paths ...string) *v1alpha1.CompositeController {
	return &v1alpha1.CompositeController{
		ObjectMeta: metav1.ObjectMeta{Name: name},
		Spec: v1alpha1.CompositeControllerSpec{
			ParentResource: v1alpha1.ParentResource{
				ResourceRule:    v1alpha1.ResourceRule{APIVersion: resource.GroupVersion().String(), Resource: resource.Resource},
				RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: paths},
			},
			ChildResources: []v1alpha1.ChildResource{{
				ResourceRule:   v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"},
				UpdateStrategy: &v1alpha1.ChildUpdateStrategy{Method: v1alpha1.ChildUpdateRollingRecreate},
			}},
		},
	}
}

func catSets() *v1alpha1.CompositeController {
	return controllerOf("catset", pets.WithResource("catsets"), "spec.template")
}

// taken returns the revision that a controller makes of parent.
func taken(
	t *testing.T, cc *v1alpha1.CompositeController, parent *unstructured.Unstructured, number int64, pods ...string,
) *v1alpha1.ControllerRevision {
	t.Helper()
	f, err := record.NewFormat(&cc.Spec)
	if err != nil {
		t.Fatal(err)
	}
	s, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	out, err := f.New(parent, s, number, 0)
	if err != nil {
		t.Fatal(err)
	}
	out.UID = types.UID("uid-of-" + out.Name)
	out.Annotations = nil // a stamp says that it was taken from the parent as it is
	if len(pods) > 0 {
		out.Children = []v1alpha1.ControllerRevisionChildren{{Kind: "Pod", Names: pods}}
	}
	return out
}

// TestWhoseParentIsIt: whether an object is a parent is found out when somebody asks, and what is in the way is said.
func TestWhoseParentIsIt(t *testing.T) {
	nap := catSet("2")
	west := catSet("2")
	west.SetKind("Zoo")
	west.SetNamespace("")
	zoos := controllerOf("zoo", pets.WithResource("zoos"), "spec.template")
	refused := apierrors.NewForbidden(schema.GroupResource{Group: "metacontroller.k8s.io", Resource: "compositecontrollers"}, "", nil)
	broken := catSets()
	broken.Spec.ParentResource.RevisionHistory.FieldPaths = []string{"status"}
	nonsense := controllerOf("nonsense", pets.WithResource("catsets"))
	nonsense.Spec.ParentResource.APIVersion = "a/b/c"
	for name, c := range map[string]struct {
		of      client.Object
		listing error
		more    []client.Object
		want    string
	}{
		"a parent":                 {of: nap, more: []client.Object{catSets(), nonsense}},
		"nobody's":                 {of: nap, more: []client.Object{zoos}, want: "catset.pets.example.com keeps no history that cairn reads yet; cairn reads: daemonset.apps, statefulset.apps, zoos.pets.example.com"},
		"no such controllers":      {of: nap, listing: &meta.NoKindMatchError{}, want: "cairn reads: daemonset.apps, statefulset.apps"},
		"forbidden":                {of: nap, listing: refused, want: "find the CompositeController of catset.pets.example.com: compositecontrollers.metacontroller.k8s.io is forbidden"},
		"a controller that cannot": {of: nap, more: []client.Object{broken}, want: "CompositeController catset: spec.parentResource.revisionHistory.fieldPaths: status"},
		"no namespace":             {of: west, more: []client.Object{zoos}, want: "find the revisions of zoo.pets.example.com/nap: the parent is in no namespace"},
		"a DaemonSet":              {of: web("web:1"), listing: refused},
	} {
		t.Run(name, func(t *testing.T) {
			i := New(petServer(t, refusing(c.listing), append(c.more, c.of)...))
			_, err := i.History(t.Context(), c.of)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v", err)
			}
		})
	}
}

// refusing answers whoever lists CompositeControllers with an error, unless that is nil.
func refusing(err error) interceptor.Funcs {
	return interceptor.Funcs{List: func(ctx context.Context, c client.WithWatch, list client.ObjectList, opts ...client.ListOption) error {
		if _, ok := list.(*v1alpha1.CompositeControllerList); ok && err != nil {
			return err
		}
		return c.List(ctx, list, opts...)
	}}
}

// TestBuiltinParents: a kind that has a log by itself is read as a composite parent only where that log is empty, and a
// parent may have a Go type.
func TestBuiltinParents(t *testing.T) {
	cc := controllerOf("webs", appsv1.SchemeGroupVersion.WithResource("daemonsets"), "spec.template")
	ds := web("web:2")
	raw, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ds)
	if err != nil {
		t.Fatal(err)
	}
	parent := &unstructured.Unstructured{Object: raw}
	parent.SetGroupVersionKind(appsv1.SchemeGroupVersion.WithKind("DaemonSet"))
	composite := taken(t, cc, parent, 7)
	own := stored(t, ds, 1, "aaa")
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
			h, err := New(petServer(t, interceptor.Funcs{}, append(c.objects, ds.DeepCopy(), cc.DeepCopy())...)).History(t.Context(), ds)
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
	old := schema.GroupVersion{Group: pets.Group, Version: "v1alpha1"}
	cc := catSets()
	var asked []string
	funcs := interceptor.Funcs{Get: func(ctx context.Context, c client.WithWatch, key client.ObjectKey, o client.Object, opts ...client.GetOption) error {
		asked = append(asked, o.GetObjectKind().GroupVersionKind().String())
		return c.Get(ctx, key, o, opts...)
	}}
	nap := catSet("2")
	i := New(petServer(t, funcs, nap, cc, taken(t, cc, nap, 1)))
	who, err := i.Get(t.Context(), pets.WithKind("CatSet").GroupKind(), "shop", "nap")
	if err != nil || who.GetUID() != nap.GetUID() {
		t.Fatalf("%v, %v", who, err)
	}
	former := catSet("2")
	former.SetGroupVersionKind(old.WithKind("CatSet"))
	h, err := i.History(t.Context(), former)
	if err != nil || h.Parent.Version != pets.Version || !h.Entries[0].Current {
		t.Errorf("%+v, %v", h, err)
	}
	want := []string{pets.WithKind("CatSet").String(), pets.WithKind("CatSet").String()}
	if d := cmp.Diff(want, asked); d != "" {
		t.Error(d)
	}
}

// TestStampFromTheFuture: a revision that says it was taken from a later parent makes us read again, and blocks nobody if
// that is a lie.
func TestStampFromTheFuture(t *testing.T) {
	cc, nap := catSets(), catSet("2")
	stamped := taken(t, cc, nap, 2)
	stamped.Annotations = map[string]string{history.ParentUIDAnnotation: "nap-uid", history.ParentGenerationAnnotation: "4"}
	later := catSet("3")
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
			h, err := New(petServer(t, interceptor.Funcs{}, c.now, cc.DeepCopy(), stamped.DeepCopy())).History(t.Context(), nap)
			if err != nil || h.Entries[0].Current != c.current {
				t.Errorf("%+v, %v", h, err)
			}
		})
	}
}

// TestUndoRace: an undo of a composite parent is refused if its spec changed meanwhile, and made again if its status did.
// Objects without a generation do not say which it was.
func TestUndoRace(t *testing.T) {
	for name, c := range map[string]struct {
		generation int64
		meanwhile  []string
		refused    bool
	}{
		"status":        {generation: 3, meanwhile: []string{"status", "ready"}},
		"spec":          {generation: 4, meanwhile: []string{"spec", "text"}, refused: true},
		"no generation": {generation: 0, meanwhile: []string{"status", "ready"}, refused: true},
	} {
		t.Run(name, func(t *testing.T) {
			cc, nap := catSets(), catSet("2")
			nap.SetGeneration(min(c.generation, 3))
			server := petServer(t, interceptor.Funcs{}, nap, cc, taken(t, cc, catSet("1"), 1), taken(t, cc, nap, 2))
			i := New(server)
			u, err := i.PlanUndo(t.Context(), nap, 0)
			if err != nil {
				t.Fatal(err)
			}
			live := catSet("")
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), live); err != nil {
				t.Fatal(err)
			}
			live.SetGeneration(c.generation)
			if err := unstructured.SetNestedField(live.Object, "later", c.meanwhile...); err != nil {
				t.Fatal(err)
			}
			if err := server.Update(t.Context(), live); err != nil {
				t.Fatal(err)
			}
			_, err = i.Apply(t.Context(), u, false)
			var changed *ChangedError
			if errors.As(err, &changed) != c.refused || !c.refused && err != nil {
				t.Errorf("got %v", err)
			}
			if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), live); err != nil {
				t.Fatal(err)
			}
			text, _, _ := unstructured.NestedString(live.Object, "spec", "template", "text")
			if (text == "1") == c.refused {
				t.Errorf("the text is %q", text)
			}
			if later, _, _ := unstructured.NestedString(live.Object, c.meanwhile...); later != "later" {
				t.Error("what was written meanwhile is gone")
			}
		})
	}
}

// TestAPlanIsOfWhatWasRead: a caller who goes on with the object does not change what a plan was made for.
func TestAPlanIsOfWhatWasRead(t *testing.T) {
	cc, nap := catSets(), catSet("2")
	server := petServer(t, interceptor.Funcs{}, nap, cc, taken(t, cc, catSet("1"), 1), taken(t, cc, nap, 2))
	mine := catSet("")
	if err := server.Get(t.Context(), client.ObjectKeyFromObject(nap), mine); err != nil {
		t.Fatal(err)
	}
	i := New(server)
	u, err := i.PlanUndo(t.Context(), mine, 0)
	if err != nil {
		t.Fatal(err)
	}
	mine.SetGeneration(4)
	if err := unstructured.SetNestedField(mine.Object, "3", "spec", "template", "text"); err != nil {
		t.Fatal(err)
	}
	if err := server.Update(t.Context(), mine); err != nil {
		t.Fatal(err)
	}
	var changed *ChangedError
	if _, err := i.Apply(t.Context(), u, false); !errors.As(err, &changed) {
		t.Errorf("got %v", err)
	}
}

// TestClaims: a child in two revisions belongs to the newer, and to that of the spec where there are no numbers.
func TestClaims(t *testing.T) {
	cc, nap := catSets(), catSet("2")
	for name, numbers := range map[string][3]int64{"numbered": {1, 2, 3}, "of Metacontroller": {0, 0, 0}, "gone back": {4, 2, 3}} {
		t.Run(name, func(t *testing.T) {
			log := []client.Object{
				taken(t, cc, catSet("1"), numbers[0], "a", "b", "c"),
				taken(t, cc, nap, numbers[2], "a"),
			}
			if numbers[1] > 0 {
				log = append(log, taken(t, cc, catSet("3"), numbers[1], "b", "a"))
			}
			h, err := New(petServer(t, interceptor.Funcs{}, append(log, nap, cc)...)).History(t.Context(), nap)
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
