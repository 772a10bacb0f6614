package metacontroller

import (
	"strings"
	"testing"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/revision"
)

// This file checks the format against Metacontroller's, byte by byte. The sums were computed by another program.

const spotted = `
metadata: {labels: {team: a}}
spec:
  replicas: 3
  template: {zero: 0, weight: 1.5, metadata: {labels: {app: "<cats> & dogs"}}}
status: {replicas: 3}
`

// SHA-1 of the parent's UID and {"spec":{"template":…}}, of the UID and {}, and of the first with a count.
const (
	sumTemplate = "906c881411df3889a67b4d1eaabb2edbb305e795"
	sumNothing  = "49e8800754ea9fe77d80fff60b6457ac24add072"
	sumNext     = "4a5eb225026f62b18c2364ab8d81c719c705b915"
)

func TestParentPatch(t *testing.T) {
	for name, c := range map[string]struct {
		paths []string
		want  string
	}{
		"the template":        {[]string{"spec.template.metadata"}, `{"spec":{"template":{"metadata":{"labels":{"app":"\u003ccats\u003e \u0026 dogs"}}}}}`},
		"two fields":          {[]string{"spec.template.weight", "spec.replicas"}, `{"spec":{"replicas":3,"template":{"weight":1.5}}}`},
		"one inside another":  {[]string{"spec.template.weight", "spec.template", "spec.template"}, `{"spec":{"template":{"metadata":{"labels":{"app":"\u003ccats\u003e \u0026 dogs"}},"weight":1.5,"zero":0}}}`},
		"names alike":         {[]string{"spec.temp", "spec.replicas"}, `{"spec":{"replicas":3}}`},
		"the default":         {nil, `{"spec":{"replicas":3,"template":{"metadata":{"labels":{"app":"\u003ccats\u003e \u0026 dogs"}},"weight":1.5,"zero":0}}}`},
		"what is not there":   {[]string{"spec.volumes", "data"}, `{}`},
		"below what is none":  {[]string{"spec.replicas.max"}, `{}`},
		"a label of its own":  {[]string{"metadata.labels"}, `{"metadata":{"labels":{"team":"a"}}}`},
		"a label by its name": {[]string{"metadata.labels.team"}, `{"metadata":{"labels":{"team":"a"}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			if got := string(snapshot(t, format(t, c.paths...), cat(t, spotted)).Data()); got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
		})
	}
}

func TestFieldPathsThatCannotBeVersioned(t *testing.T) {
	for path, want := range map[string]string{
		"":                  "at least one field",
		"spec..template":    "empty field name",
		"metadata":          "list labels or annotations",
		"metadata.uid":      "list labels or annotations",
		"status":            "each pass would make a revision",
		"status.conditions": "each pass would make a revision",
		"kind":              "what kind of object",
	} {
		spec := v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
			ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "pods"}, RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: []string{"spec", path}},
		}}
		if _, err := NewFormat(&spec); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "fieldPaths") {
			t.Errorf("%q: %v, want %q", path, err, want)
		}
	}
	spec := v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{ResourceRule: v1alpha1.ResourceRule{APIVersion: "a/b/c", Resource: "d"}}}
	if _, err := NewFormat(&spec); err == nil || !strings.Contains(err.Error(), "apiVersion") {
		t.Errorf("an apiVersion that is none: %v", err)
	}
}

func TestGenerational(t *testing.T) {
	if !format(t, "spec", "data").Generational() {
		t.Error("spec and data: every change raises the generation")
	}
	if format(t, "spec", "metadata.labels").Generational() {
		t.Error("labels: a change does not raise the generation")
	}
}

func TestName(t *testing.T) {
	long := strings.Repeat("a", 60) + "." + strings.Repeat("b", 60) + "." + strings.Repeat("c", 60)
	for name, c := range map[string]struct {
		version, resource string
		paths             []string
		collisions        int32
		want              string
	}{
		"of a group":        {"ctl.enisoc.com/v1", "catsets", []string{"spec.template"}, 0, "catsets.ctl.enisoc.com-" + sumTemplate},
		"of the core group": {"v1", "pods", []string{"spec.template"}, 0, "pods.core-" + sumTemplate},
		"of nothing":        {"v1", "pods", []string{"data"}, 0, "pods.core-" + sumNothing},
		"the next":          {"v1", "pods", []string{"spec.template"}, 1, "pods.core-" + sumNext},
		"cut":               {long + "." + strings.Repeat("d", 60) + "/v1", "cats", []string{"data"}, 0, "cats." + long + "." + strings.Repeat("d", 24) + "-" + sumNothing},
		"cut behind a dot":  {long + "." + strings.Repeat("d", 23) + ".ee/v1", "cats", []string{"data"}, 0, "cats." + long + "." + strings.Repeat("d", 23) + "-" + sumNothing},
		"cut behind a hyphen": {
			long + "." + strings.Repeat("d", 22) + "--ee/v1", "cats", []string{"data"}, 0, "cats." + long + "." + strings.Repeat("d", 22) + "-" + sumNothing,
		},
	} {
		t.Run(name, func(t *testing.T) {
			f := formatOf(t, v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
				ResourceRule: v1alpha1.ResourceRule{APIVersion: c.version, Resource: c.resource}, RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: c.paths},
			}})
			got := f.Name(cat(t, spotted), snapshot(t, f, cat(t, spotted)), &c.collisions)
			if got != c.want {
				t.Errorf("got  %s\nwant %s", got, c.want)
			}
			if len(got) > 253 {
				t.Errorf("%d bytes", len(got))
			}
		})
	}
}

// TestFreeName: a name that is taken blocks nobody, and two parents never share one.
func TestFreeName(t *testing.T) {
	f := format(t, "spec")
	parent := cat(t, spotted)
	s := snapshot(t, f, parent)
	taken := map[string]bool{}
	for want := range int32(3) {
		asked := 0
		name, collisions := f.FreeName(parent, s, func(name string) bool {
			if asked++; asked > 10 {
				t.Fatalf("asked %d times, now for %s", asked, name)
			}
			return taken[name]
		})
		if taken[name] || want > 0 && *collisions != want || want == 0 && collisions != nil || name != f.Name(parent, s, collisions) {
			t.Errorf("%d names are taken: got %s with %v", want, name, collisions)
		}
		taken[name] = true
	}
	another := cat(t, spotted)
	another.SetUID("another")
	if other := f.Name(another, s, nil); taken[other] {
		t.Errorf("two parents have %s", other)
	}
}

func TestAdoptable(t *testing.T) {
	f := format(t, "spec.image")
	parent := cat(t, `{spec: {image: a, selector: {matchLabels: {app: nap}}}}`)
	s, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	orphan := func(collisions *int32, change func(*v1alpha1.ControllerRevision)) *v1alpha1.ControllerRevision {
		o, err := f.Object(parent, s, collisions, 3, revision.Stamp{ParentUID: parentUID})
		if err != nil {
			t.Fatal(err)
		}
		r, ok := o.(*v1alpha1.ControllerRevision)
		if !ok {
			t.Fatalf("%T", o)
		}
		change(r)
		return r
	}
	as := func(*v1alpha1.ControllerRevision) {}
	again := parent.DeepCopy()
	again.SetUID("again")
	numbered := func(n int64) []client.Object { return []client.Object{&v1alpha1.ControllerRevision{Revision: n}} }
	for name, c := range map[string]struct {
		parent client.Object
		orphan client.Object
		owned  []client.Object
		says   string
	}{
		"as it was made":           {parent, orphan(nil, as), nil, ""},
		"its name was taken":       {parent, orphan(new(int32(2)), as), nil, ""},
		"of the parent before":     {again, orphan(nil, as), nil, ""},
		"Metacontroller's":         {parent, orphan(nil, func(r *v1alpha1.ControllerRevision) { r.Annotations, r.FieldPaths = nil, nil }), nil, ""},
		"beside newer ones":        {parent, orphan(nil, as), numbered(4), ""},
		"another content":          {parent, orphan(nil, func(r *v1alpha1.ControllerRevision) { r.ParentPatch.Raw = []byte(`{"spec":{"image":"b"}}`) }), nil, "does not follow"},
		"another name":             {parent, orphan(nil, func(r *v1alpha1.ControllerRevision) { r.Name = "planted" }), nil, "does not follow"},
		"of another parent":        {again, orphan(nil, func(r *v1alpha1.ControllerRevision) { r.Annotations = nil }), nil, "does not follow"},
		"unreadable":               {parent, orphan(nil, func(r *v1alpha1.ControllerRevision) { r.ParentPatch.Raw = []byte(`[]`) }), nil, "cannot be read"},
		"newer than what it joins": {parent, orphan(nil, as), numbered(2), "its number is higher"},
	} {
		err := f.Adoptable(c.parent, c.orphan, c.owned)
		if (err == nil) != (c.says == "") || err != nil && !strings.Contains(err.Error(), c.says) {
			t.Errorf("%s: %v, want %q", name, err, c.says)
		}
	}
}
