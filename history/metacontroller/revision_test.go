package metacontroller

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/revision"
)

// This file stores parents and makes them again.

const asleep = `
spec:
  replicas: 3
  selector: {matchLabels: {app: nap}}
  template: {metadata: {labels: {app: nap, tier: gold}}, image: "cat:1", list: [1, {a: b}]}
`

func TestObject(t *testing.T) {
	parent := cat(t, asleep)
	f := format(t, "spec.template")
	got := stored(t, f, parent, 7)
	yes := true
	want := &v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: "cats",
			Name:      f.Name(parent, snapshot(t, f, parent), nil),
			Labels: map[string]string{
				"app": "nap", "tier": "gold", "metacontroller.k8s.io/apiGroup": "ctl.enisoc.com", "metacontroller.k8s.io/resource": "catsets",
			},
			Annotations: map[string]string{"cairn.dev/parent-uid": parentUID, "cairn.dev/parent-generation": "4"},
			OwnerReferences: []metav1.OwnerReference{{
				APIVersion: "ctl.enisoc.com/v1", Kind: "CatSet", Name: "nap", UID: parentUID, Controller: &yes, BlockOwnerDeletion: &yes,
			}},
		},
		ParentPatch: runtime.RawExtension{Raw: []byte(
			`{"spec":{"template":{"image":"cat:1","list":[1,{"a":"b"}],"metadata":{"labels":{"app":"nap","tier":"gold"}}}}}`,
		)},
		FieldPaths: []string{"spec.template"},
		Revision:   7,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}

	r := f.Read(got)
	if r.Err != nil || r.Number != 7 || r.Name != got.Name || r.Stamp != (revision.Stamp{ParentUID: parentUID, Generation: 4}) {
		t.Errorf("read back as %+v", r)
	}
	if revision.Compare(r.Snapshot, snapshot(t, f, parent)) != revision.RuleBytes {
		t.Errorf("the content is another one: %s", r.Snapshot.Data())
	}
}

func TestNamespaceOfRevisions(t *testing.T) {
	parent := cat(t, asleep)
	parent.SetNamespace("")
	f := format(t, "spec")
	if _, err := f.Object(parent, snapshot(t, f, parent), nil, 1, revision.Stamp{}); err == nil || !strings.Contains(err.Error(), "revisionHistory.namespace") {
		t.Errorf("a parent in no namespace: %v", err)
	}
	f = formatOf(t, v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
		ResourceRule: v1alpha1.ResourceRule{APIVersion: "v1", Resource: "namespaces"}, RevisionHistory: &v1alpha1.RevisionHistory{Namespace: "revisions"},
	}})
	if got, err := f.Namespace(parent); err != nil || got != "revisions" {
		t.Errorf("got %q, %v", got, err)
	}
	if got, err := f.Namespace(cat(t, asleep)); err != nil || got != "cats" {
		t.Errorf("a parent that is in a namespace: got %q, %v", got, err)
	}
}

func TestRestore(t *testing.T) {
	const now = "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: {image: cat:2, added: 1}, other: 2}\nstatus: {replicas: 5}"
	for name, c := range map[string]struct{ paths, patch, now, want string }{
		"a field":                       {"spec.template", "{spec: {template: {image: cat:1}}}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: {image: cat:1}, other: 2}\nstatus: {replicas: 5}"},
		"a field that was not there":    {"spec.template", "{}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, other: 2}\nstatus: {replicas: 5}"},
		"a field that is gone":          {"spec.gone.deep", "{spec: {gone: {deep: 1}}}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: {image: cat:2, added: 1}, other: 2, gone: {deep: 1}}\nstatus: {replicas: 5}"},
		"a field that is null":          {"spec.template", "{spec: {template: null}}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: null, other: 2}\nstatus: {replicas: 5}"},
		"all of spec":                   {"spec", "{spec: {replicas: 1}}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 1}\nstatus: {replicas: 5}"},
		"what the paths do not cover":   {"spec.template", "{spec: {template: {image: cat:1}, replicas: 9}, status: {replicas: 9}, kind: Dog}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: {image: cat:1}, other: 2}\nstatus: {replicas: 5}"},
		"numbers":                       {"spec.template", "{spec: {template: {whole: 1, half: 0.5, big: 9007199254740993, list: [2]}}}", now, "metadata: {labels: {team: b}}\nspec: {replicas: 5, template: {whole: 1, half: 0.5, big: 9007199254740993, list: [2]}, other: 2}\nstatus: {replicas: 5}"},
		"a label":                       {"metadata.labels.team", "{metadata: {labels: {team: a}}}", now, "metadata: {labels: {team: a}}\nspec: {replicas: 5, template: {image: cat:2, added: 1}, other: 2}\nstatus: {replicas: 5}"},
		"a label where there are none":  {"metadata.labels.team", "{metadata: {labels: {team: a}}}", "spec: {}", "metadata: {labels: {team: a}}\nspec: {}"},
		"no label where there are none": {"metadata.labels.team", "{}", "spec: {}", "spec: {}"},
	} {
		t.Run(name, func(t *testing.T) {
			raw, err := yaml.YAMLToJSON([]byte(c.patch))
			if err != nil {
				t.Fatal(err)
			}
			f := format(t, c.paths)
			stored := f.Read(&v1alpha1.ControllerRevision{ParentPatch: runtime.RawExtension{Raw: raw}})
			if stored.Err != nil {
				t.Fatal(stored.Err)
			}
			parent := cat(t, c.now)
			before := parent.DeepCopy()
			got, err := Restore(parent, stored.Snapshot)
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(cat(t, c.want).Object, got.Object); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(before.Object, parent.Object); diff != "" {
				t.Errorf("the parent was changed: %s", diff)
			}
		})
	}
}

// TestRestoreWithThePathsOfThen: a revision knows which fields it holds, whatever the controller has been told since.
func TestRestoreWithThePathsOfThen(t *testing.T) {
	then := cat(t, asleep)
	narrow, wide := format(t, "spec.template"), format(t, "spec")
	stored := stored(t, narrow, then, 1)
	got, err := Restore(cat(t, "spec: {replicas: 9, template: {image: cat:2}}"), wide.Read(stored).Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	want := cat(t, `spec: {replicas: 9, template: {metadata: {labels: {app: nap, tier: gold}}, image: "cat:1", list: [1, {a: b}]}}`)
	if diff := cmp.Diff(want.Object, got.Object); diff != "" {
		t.Error(diff)
	}
}

func TestRestoreOverWhatIsNoObject(t *testing.T) {
	f := format(t, "spec.template.image")
	s := snapshot(t, f, cat(t, "spec: {template: {image: cat:1}}"))
	if _, err := Restore(cat(t, "spec: {template: text}"), s); err == nil || !strings.Contains(err.Error(), "spec.template.image") {
		t.Errorf("got %v, want the path", err)
	}
}

func TestReadWhatCannotBeRead(t *testing.T) {
	f := format(t, "spec")
	for name, o := range map[string]*v1alpha1.ControllerRevision{
		"text":              {ParentPatch: runtime.RawExtension{Raw: []byte(`"oops"`)}},
		"null":              {ParentPatch: runtime.RawExtension{Raw: []byte(`null`)}},
		"nothing":           {},
		"paths of no kind":  {ParentPatch: runtime.RawExtension{Raw: []byte(`{}`)}, FieldPaths: []string{"metadata"}},
		"text on the way":   {ParentPatch: runtime.RawExtension{Raw: []byte(`{"spec":"oops"}`)}, FieldPaths: []string{"spec.template"}},
		"a list on the way": {ParentPatch: runtime.RawExtension{Raw: []byte(`{"spec":[]}`)}, FieldPaths: []string{"spec.template"}},
		"a number too many": {ParentPatch: runtime.RawExtension{Raw: []byte(`{"spec":1e999}`)}},
	} {
		o.Name = "catsets.ctl.enisoc.com-0"
		if r := f.Read(o); r.Snapshot != nil || r.Err == nil || !strings.Contains(r.Err.Error(), o.Name) {
			t.Errorf("%s: got %v and %v", name, r.Snapshot, r.Err)
		}
	}
}

// TestChangeCause: why a person changed the parent goes into the revision, as in the built-in kinds.
func TestChangeCause(t *testing.T) {
	parent := cat(t, asleep)
	parent.SetAnnotations(map[string]string{"kubernetes.io/change-cause": "a longer nap", "other": "stays where it is"})
	f := format(t, "spec.template")
	got := stored(t, f, parent, 1)
	if a := got.Annotations; a["kubernetes.io/change-cause"] != "a longer nap" || a["other"] != "" {
		t.Errorf("%v", a)
	}
}
