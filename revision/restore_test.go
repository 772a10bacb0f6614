package revision_test

// The way back: restoring a snapshot replaces what it covers as a whole, leaves everything else alone, and gives the
// same snapshot again (kubernetes#78853; metacontroller's applyPatch keeps fields that were added since).

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

// coveredPaths are those of plainTarget; the tests look at them without the package's own code.
var coveredPaths = [][2]string{{"spec", "template"}, {"spec", "settings"}}

// parents generates objects with covered and other fields, each of which may be missing.
func parents() *rapid.Generator[map[string]any] {
	return rapid.Custom(func(t *rapid.T) map[string]any {
		parent := map[string]any{}
		if rapid.IntRange(0, 4).Draw(t, "spec") > 0 {
			spec := map[string]any{}
			for _, field := range []string{"template", "settings", "replicas"} {
				if rapid.Bool().Draw(t, field) {
					spec[field] = values(3).Draw(t, field)
				}
			}
			parent["spec"] = spec
		}
		if rapid.Bool().Draw(t, "metadata") {
			parent["metadata"] = values(2).Draw(t, "metadata")
		}
		return parent
	})
}

func TestRestoreGivesTheSnapshotAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := plainTarget(t)
		then, now := parents().Draw(t, "then"), parents().Draw(t, "now")
		s := snapshot(t, target, then)
		if rapid.Bool().Draw(t, "stored") {
			s = decode(t, target, string(s.Data()))
		}
		data, before := bytes.Clone(s.Data()), encode(t, now)
		restored, err := s.Restore(now)
		if err != nil {
			t.Fatalf("%v", err)
		}
		again := snapshot(t, target, restored)
		if revision.Compare(s, again) == revision.RuleNone {
			t.Fatalf("another snapshot:\n%s\n%s", s.Data(), again.Data())
		}
		if got, want := string(encode(t, uncovered(restored))), string(encode(t, uncovered(parse(t, before)))); got != want {
			t.Fatalf("siblings changed from\n%s to\n%s", want, got)
		}
		if !bytes.Equal(before, encode(t, now)) || !bytes.Equal(data, s.Data()) {
			t.Fatalf("the restore wrote to what it was given")
		}
	})
}

// uncovered removes the covered fields, and an empty spec, which comes and goes with them.
func uncovered(object map[string]any) map[string]any {
	for _, path := range coveredPaths {
		if spec, ok := object[path[0]].(map[string]any); ok {
			delete(spec, path[1])
			if len(spec) == 0 {
				delete(object, path[0])
			}
		}
	}
	return object
}

func TestRestoreOfATemplateGivesTheSnapshotAgain(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		then, now := templates().Draw(t, "then"), templates().Draw(t, "now")
		s := snapshot(t, typedTarget(), withTemplate(respelled(t, &then)))
		parent := withTemplate(&now)
		parent.Spec.MinReadySeconds = 5
		untouched := parent.DeepCopy()
		restored, err := s.Restore(parent)
		if err != nil {
			t.Fatalf("%v", err)
		}
		if diff := cmp.Diff(untouched, parent); diff != "" {
			t.Fatalf("the parent changed:\n%s", diff)
		}
		if got := string(snapshot(t, typedTarget(), restored).Data()); got != string(s.Data()) {
			t.Fatalf("other data:\n%s\n%s", got, s.Data())
		}
		want := parse(t, encode(t, untouched))
		delete(want["spec"].(map[string]any), "template")
		delete(restored["spec"].(map[string]any), "template")
		if diff := cmp.Diff(string(encode(t, want)), string(encode(t, restored))); diff != "" {
			t.Fatalf("siblings changed:\n%s", diff)
		}
	})
}

func TestRestore(t *testing.T) {
	for _, c := range []struct{ name, snapshot, parent, want string }{
		{
			"fields added since are gone", `{"spec":{"template":{"a":1}}}`,
			`{"spec":{"template":{"a":2,"b":{"c":1}}}}`, `{"spec":{"template":{"a":1}}}`,
		},
		{
			"a covered subtree added since is gone", `{"spec":{"template":{}}}`,
			`{"spec":{"template":{},"settings":{"x":1}}}`, `{"spec":{"template":{}}}`,
		},
		{"fields removed since are back", `{"spec":{"template":{"a":1},"settings":[1]}}`, `{"spec":{}}`, `{"spec":{"settings":[1],"template":{"a":1}}}`},
		{"null is a value", `{"spec":{"template":null}}`, `{"spec":{"template":{"a":1}}}`, `{"spec":{"template":null}}`},
		{"siblings stay", `{"spec":{"template":1}}`, `{"spec":{"replicas":3},"status":{"x":9007199254740993}}`, `{"spec":{"replicas":3,"template":1},"status":{"x":9007199254740993}}`},
		{
			"a planted revision changes nothing else", `{"metadata":{"labels":{"a":"b"}},"spec":{"template":1,"replicas":0},"status":{"x":1}}`,
			`{"metadata":{"name":"web"},"spec":{"replicas":3}}`, `{"metadata":{"name":"web"},"spec":{"replicas":3,"template":1}}`,
		},
		{"objects above are made", `{"spec":{"template":1}}`, `{}`, `{"spec":{"template":1}}`},
		{"nothing to remove", `{}`, `{"metadata":{}}`, `{"metadata":{}}`},
		{"nothing to remove below text", `{}`, `{"spec":"x"}`, `{"spec":"x"}`},
	} {
		t.Run(c.name, func(t *testing.T) {
			restored, err := decode(t, plainTarget(t), c.snapshot).Restore(parse(t, []byte(c.parent)))
			if err != nil {
				t.Fatal(err)
			}
			if got := string(encode(t, restored)); got != c.want {
				t.Errorf("got %s, want %s", got, c.want)
			}
		})
	}
}

func TestRestoreRefuses(t *testing.T) {
	s := decode(t, plainTarget(t), `{"spec":{"template":1}}`)
	for _, c := range []struct {
		parent any
		want   string
	}{
		{map[string]any{"spec": nil}, "restore spec.template: field spec of path spec.template is null, not an object"},
		{map[string]any{"spec": []any{}}, "restore spec.template: field spec of path spec.template is a list, not an object"},
		{make(chan int), "read the parent as JSON: json: unsupported type: chan int"},
	} {
		if restored, err := s.Restore(c.parent); err == nil || err.Error() != c.want || restored != nil {
			t.Errorf("got %v, want the error %q", err, c.want)
		}
	}
}

// A typed controller builds its children from what Into gives it.
func TestInto(t *testing.T) {
	ds := logAgent(t)
	for _, s := range []*revision.Snapshot{
		snapshot(t, typedTarget(), ds),
		decode(t, typedTarget(), string(testdata(t, "corpus", "1.33-creation-timestamp.json"))),
		decode(t, typedTarget(), string(testdata(t, "corpus", "whole-floats.json"))),
		decode(t, typedTarget(), string(testdata(t, "corpus", "no-directive.json"))),
	} {
		var got appsv1.DaemonSet
		if err := s.Into(&got); err != nil {
			t.Fatal(err)
		}
		want := appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: ds.Spec.Template}}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("(-want +got):\n%s", diff)
		}
	}
}

func TestIntoRefuses(t *testing.T) {
	s := snapshot(t, typedTarget(), logAgent(t))
	var none *appsv1.DaemonSet
	populated := &appsv1.DaemonSet{Spec: appsv1.DaemonSetSpec{Template: corev1.PodTemplateSpec{Spec: corev1.PodSpec{HostNetwork: true}}}}
	for _, c := range []struct {
		into any
		want string
	}{
		{nil, "need a pointer"},
		{appsv1.DaemonSet{}, "need a pointer"},
		{none, "need a pointer"},
		{populated, "not zero: fields removed since would survive"},
		{new(int), "cannot unmarshal object into Go value of type int"},
	} {
		if err := s.Into(c.into); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%T: got %v, want an error with %q", c.into, err, c.want)
		}
	}
	if len(populated.Spec.Template.Spec.Containers) > 0 {
		t.Error("wrote to what it refused")
	}
}
