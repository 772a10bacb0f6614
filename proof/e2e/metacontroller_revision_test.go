package e2e

import (
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/revision"
)

// This file asks the real API server what may be done to a revision of a composite parent, and what it keeps of one.
// The decision behind it is in docs/design/log/2026-11-21-composite-revisions.md.

// TestParentPatchCannotBeEdited: whoever may write revisions, such as every editor of a namespace under
// Metacontroller's roles, still cannot turn one into another.
func TestParentPatchCannotBeEdited(t *testing.T) {
	e := knowingMetacontroller(newLonelyEnv(t)) // it sets a variable of the environment
	const why, whyNumber = "children are made from it again when they are lost: it cannot be changed", "so it can only rise"
	o, err := e.make("ControllerRevision", `
parentPatch: {spec: {template: {image: "app:1", weight: 1, share: 0.5, list: [1, "two", null], empty: {}}}}
fieldPaths: [spec.template]
revision: 2
children: [{apiGroup: "", kind: Pod, names: [cat-0]}]
`)
	if err != nil {
		t.Fatal(err)
	}
	resource := "controllerrevisions.metacontroller.k8s.io/" + o.GetName()
	for name, c := range map[string]struct{ patch, refused string }{
		"another image":   {`{"parentPatch":{"spec":{"template":{"image":"evil:1"}}}}`, why},
		"a field more":    {`{"parentPatch":{"spec":{"template":{"hostPID":true}}}}`, why},
		"a field less":    {`{"parentPatch":{"spec":{"template":{"image":null}}}}`, why},
		"an empty field":  {`{"parentPatch":{"spec":{"template":{"empty":null}}}}`, why},
		"another order":   {`{"parentPatch":{"spec":{"template":{"list":["two",1,null]}}}}`, why},
		"another type":    {`{"parentPatch":{"spec":{"template":{"weight":"1"}}}}`, why},
		"a field outside": {`{"parentPatch":{"metadata":{"labels":{"a":"b"}}}}`, why},
		"other paths":     {`{"fieldPaths":["spec"]}`, "they cannot be changed"},
		"a lower number":  {`{"revision":1}`, whyNumber},
		"the same":        {`{"parentPatch":{"spec":{"template":{"image":"app:1"}}}}`, ""},
		"other children":  {`{"children":[{"apiGroup":"","kind":"Pod","names":["cat-0","cat-1"]}]}`, ""},
		"another label":   {`{"metadata":{"labels":{"a":"b"}}}`, ""},
		"the same number": {`{"revision":2}`, ""},
	} {
		t.Run(name, func(t *testing.T) {
			out, ok := e.kubectl("patch", resource, "--type=merge", "--patch="+c.patch)
			if ok != (c.refused == "") || !strings.Contains(out, c.refused) {
				t.Errorf("kubectl succeeded: %t, and said: %s", ok, out)
			}
		})
	}
	if out, ok := e.kubectl("patch", resource, "--type=merge", `--patch={"revision":3}`); !ok {
		t.Errorf("a higher number is refused: %s", out)
	}
	// Metacontroller writes whole objects without the fields that it does not know.
	if out, ok := e.kubectl("patch", resource, "--type=merge", `--patch={"fieldPaths":null,"revision":null}`); !ok {
		t.Errorf("Metacontroller could not write the revision: %s", out)
	}
	if out, ok := e.kubectl("patch", resource, "--type=merge", `--patch={"fieldPaths":["spec"]}`); ok || !strings.Contains(out, "cannot be added afterwards") {
		t.Errorf("fieldPaths of another time: kubectl succeeded: %t, and said: %s", ok, out)
	}

	// The same with an editor. kubectl shows the answer in what was edited, and keeps that.
	t.Setenv("KUBE_EDITOR", "sed -i s/app:1/evil:1/")
	out, ok := e.kubectl("edit", resource)
	kept := regexp.MustCompile(`stored to "(.+)"`).FindStringSubmatch(out)
	if ok || kept == nil {
		t.Fatalf("kubectl edit succeeded: %t, and said: %s", ok, out)
	}
	edited, err := os.ReadFile(kept[1])
	if err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(kept[1]); err != nil {
		t.Error(err)
	}
	if !strings.Contains(string(edited), why) {
		t.Errorf("kubectl edit does not say why:\n%s", edited)
	}
	if out, _ := e.kubectl("get", resource, "-o", "yaml"); !strings.Contains(out, "image: app:1") || strings.Contains(out, "evil") {
		t.Errorf("the revision is now:\n%s", out)
	}
}

// TestRevisionsAreListed: plain kubectl shows whose revision it is and which.
func TestRevisionsAreListed(t *testing.T) {
	e := metacontrollerEnv(t)
	parent := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "v1", "kind": "ConfigMap"}}
	parent.SetNamespace(e.namespace)
	parent.SetName("nineteen-cats")
	e.create(parent)
	e.create(&v1alpha1.ControllerRevision{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: e.namespace, Name: "configmaps.core-1",
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, parent.GroupVersionKind())},
		},
		ParentPatch: runtime.RawExtension{Raw: []byte(`{}`)},
		Revision:    19,
	})
	out, ok := e.kubectl("get", "controllerrevisions.metacontroller.k8s.io")
	lines := strings.Split(out, "\n")
	if !ok || len(lines) < 2 {
		t.Fatal(out)
	}
	if diff := cmp.Diff([]string{"NAME", "PARENT", "KIND", "REVISION", "AGE"}, strings.Fields(lines[0])); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff([]string{"configmaps.core-1", "nineteen-cats", "ConfigMap", "19"}, strings.Fields(lines[1])[:4]); diff != "" {
		t.Error(diff)
	}
}

// TestARevisionComesBackAsItWas: what the API server stores has the name and the content of what was taken, so that no
// pass takes it for another revision.
func TestARevisionComesBackAsItWas(t *testing.T) {
	e := metacontrollerEnv(t)
	parent := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "ctl.enisoc.com/v1", "kind": "CatSet",
		"spec": map[string]any{
			"replicas": int64(3),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "nap"}},
			"template": map[string]any{
				"text": "<cats> & \u2028", "whole": 1.0, "half": 0.5, "large": int64(9007199254740993), "tiny": 1e-7, "huge": 1e21,
				"null": nil, "none": []any{}, "empty": map[string]any{}, "list": []any{int64(1), nil, "two"}, "creationTimestamp": nil,
			},
		},
	}}
	parent.SetNamespace(e.namespace)
	parent.SetName("nap")
	parent.SetUID("3f0e8d1c-9a2b-4c5d-8e6f-0a1b2c3d4e5f")
	f, err := metacontroller.NewFormat(&v1alpha1.CompositeControllerSpec{ParentResource: v1alpha1.ParentResource{
		ResourceRule:    v1alpha1.ResourceRule{APIVersion: "ctl.enisoc.com/v1", Resource: "catsets"},
		RevisionHistory: &v1alpha1.RevisionHistory{FieldPaths: []string{"spec.template"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	taken, err := f.Snapshot(parent)
	if err != nil {
		t.Fatal(err)
	}
	made, err := f.Object(parent, taken, nil, 1, revision.Stamp{})
	if err != nil {
		t.Fatal(err)
	}
	made.SetOwnerReferences(nil) // the parent does not exist, and the garbage collector would see that
	e.create(made)
	stored := &v1alpha1.ControllerRevision{}
	must(t, e.Get(t.Context(), client.ObjectKey{Namespace: e.namespace, Name: f.Name(parent, taken, nil)}, stored))
	read := f.Read(stored)
	if read.Err != nil {
		t.Fatal(read.Err)
	}
	if rule := revision.Compare(taken, read.Snapshot); rule != revision.RuleBytes {
		t.Errorf("it is another one (rule %q):\ntaken  %s\nstored %s", rule, taken.Data(), read.Snapshot.Data())
	}
	again, err := metacontroller.Restore(parent, read.Snapshot)
	if err != nil {
		t.Fatal(err)
	}
	restored, err := f.Snapshot(again)
	if err != nil {
		t.Fatal(err)
	}
	if was, is := f.Name(parent, taken, nil), f.Name(parent, restored, nil); was != is {
		t.Errorf("the restored parent is recorded as %s, and was as %s:\n%s", is, was, restored.Data())
	}
}
