package apply_test

import (
	"maps"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// Golden text: what Metacontroller would have written for this child, to the byte.
const (
	desiredPod = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"x"},"name":"x-0","namespace":"ns"},` +
		`"spec":{"containers":[{"args":["a && b"],"image":"nginx:1","name":"main"}]}}`
	goldenAnnotation = `{"apiVersion":"v1","kind":"Pod","metadata":{"labels":{"app":"x"},"name":"x-0","namespace":"ns"},` +
		`"spec":{"containers":[{"args":["a \u0026\u0026 b"],"image":"nginx:1","name":"main"}]}}`
)

// stored returns what the API server made of a child that was created as it is desired.
func stored(t *testing.T, desired string) map[string]any {
	t.Helper()
	created, err := apply.New(parse(t, desired))
	if err != nil {
		t.Fatal(err)
	}
	observed := parse(t, text(t, created))
	metadata := observed["metadata"].(map[string]any)
	maps.Copy(metadata, map[string]any{
		"uid": "u-1", "resourceVersion": "7", "generation": int64(1), "creationTimestamp": "2026-11-21T00:00:00Z",
		"managedFields": []any{map[string]any{"manager": "cairn"}},
		"ownerReferences": []any{map[string]any{
			"apiVersion": "ctl.example/v1", "kind": "CatSet", "name": "x", "uid": "p-1", "controller": true,
		}},
	})
	observed["status"] = map[string]any{"phase": "Running"}
	return observed
}

func TestNewWritesWhatMetacontrollerWrites(t *testing.T) {
	desired := parse(t, desiredPod)
	created, err := apply.New(desired)
	if err != nil {
		t.Fatal(err)
	}
	if got := annotationOf(created); got != goldenAnnotation {
		t.Errorf("got  %s\nwant %s", got, goldenAnnotation)
	}
	if text(t, desired) != text(t, parse(t, desiredPod)) {
		t.Error("the answer was written to")
	}
}

// TestAHookMaySendBackWhatItWasTold: what is remembered of it is what it decides.
func TestAHookMaySendBackWhatItWasTold(t *testing.T) {
	desired := parse(t, desiredPod)
	for _, field := range []string{"uid", "resourceVersion", "creationTimestamp"} {
		set(desired, "1", "metadata", field)
	}
	told := text(t, desired)
	created, err := apply.New(desired)
	if err != nil {
		t.Fatal(err)
	}
	if got := annotationOf(created); got != goldenAnnotation {
		t.Errorf("got  %s\nwant %s", got, goldenAnnotation)
	}
	if text(t, desired) != told {
		t.Error("the answer was written to")
	}
}

// TestANullOfAGoProgramIsRemembered: Metacontroller's annotation has it, and that is a contract.
func TestANullOfAGoProgramIsRemembered(t *testing.T) {
	desired := parse(t, desiredPod)
	set(desired, nil, "metadata", "creationTimestamp")
	created, err := apply.New(desired)
	if err != nil {
		t.Fatal(err)
	}
	if got := annotationOf(created); !strings.Contains(got, `"creationTimestamp":null`) {
		t.Errorf("got %s", got)
	}
}

func TestChild(t *testing.T) {
	for _, c := range []struct {
		name            string
		change          func(observed, desired map[string]any)
		changed, inside bool
		reapplied       bool
		want            func(want map[string]any) // what is to be in the result, from observed
	}{
		{name: "nothing to do", reapplied: true},
		{
			name: "what the API server and others wrote stays",
			change: func(o, _ map[string]any) {
				set(o, "node-1", "spec", "nodeName")
				set(o, "sidecar", "metadata", "labels", "mesh")
			},
			reapplied: true,
		},
		{
			name: "system fields and status of the answer are ignored",
			change: func(_, d map[string]any) {
				for _, f := range []string{
					"selfLink", "uid", "resourceVersion", "generation", "creationTimestamp", "deletionTimestamp",
					"deletionGracePeriodSeconds", "managedFields",
				} {
					set(d, "forged", "metadata", f)
				}
				set(d, "Forged", "status", "phase")
			},
			changed: true, // they are in the annotation
		},
		{
			name: "a changed image",
			change: func(_, d map[string]any) {
				set(d, []any{map[string]any{"name": "main", "image": "nginx:2"}}, "spec", "containers")
			},
			changed: true, inside: true,
		},
		{
			name:    "drift",
			change:  func(o, _ map[string]any) { set(o, "other", "metadata", "labels", "app") },
			changed: true, inside: true, reapplied: true,
			want: func(w map[string]any) { set(w, "x", "metadata", "labels", "app") },
		},
		{
			name:    "the annotation is gone",
			change:  func(o, _ map[string]any) { drop(o, "metadata", "annotations") },
			changed: true,
		},
		{
			name:    "the annotation is no JSON",
			change:  func(o, _ map[string]any) { set(o, "{", "metadata", "annotations", apply.LastApplied) },
			changed: true,
		},
		{
			name: "the annotation is written in another way",
			change: func(o, _ map[string]any) {
				set(o, strings.ReplaceAll(goldenAnnotation, `":`, `": `), "metadata", "annotations", apply.LastApplied)
			},
			reapplied: true,
		},
		{
			name:      "the answer is what the hook was given",
			change:    func(o, d map[string]any) { set(d, annotationOf(o), "metadata", "annotations", apply.LastApplied) },
			reapplied: true,
		},
		{
			name: "the last annotation is gone from the answer",
			change: func(o, _ map[string]any) {
				set(o, "1", "metadata", "annotations", "mine")
				set(o, strings.Replace(goldenAnnotation, `"metadata":{`, `"metadata":{"annotations":{"mine":"1"},`, 1), "metadata", "annotations", apply.LastApplied)
			},
			changed: true, inside: true,
			want: func(w map[string]any) { drop(w, "metadata", "annotations", "mine") },
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			observed, desired := stored(t, desiredPod), parse(t, desiredPod)
			if c.change != nil {
				c.change(observed, desired)
			}
			before, asked := text(t, observed), text(t, desired)
			r, err := apply.Child(observed, desired, nil)
			if err != nil {
				t.Fatal(err)
			}
			if r.Changed != c.changed || r.Content != c.inside || r.Reapplied != c.reapplied {
				t.Errorf("changed %t, content %t, reapplied %t; want %t, %t, %t", r.Changed, r.Content, r.Reapplied, c.changed, c.inside, c.reapplied)
			}
			if !c.changed && text(t, r.Object) != before {
				t.Errorf("unchanged, but %s", cmp.Diff(observed, r.Object))
			}
			for _, f := range []string{"uid", "resourceVersion", "creationTimestamp", "ownerReferences", "managedFields"} {
				if diff := cmp.Diff(observed["metadata"].(map[string]any)[f], r.Object["metadata"].(map[string]any)[f]); diff != "" {
					t.Errorf("%s changed: %s", f, diff)
				}
			}
			if diff := cmp.Diff(observed["status"], r.Object["status"]); diff != "" {
				t.Errorf("the status changed: %s", diff)
			}
			if c.want != nil {
				want := parse(t, before)
				c.want(want)
				set(want, annotationOf(r.Object), "metadata", "annotations", apply.LastApplied)
				if diff := cmp.Diff(want, r.Object); diff != "" {
					t.Errorf("-want +got\n%s", diff)
				}
			}
			if text(t, observed) != before || text(t, desired) != asked {
				t.Error("an argument was written to")
			}
			atRest(t, r.Object, desired, nil)
		})
	}
}

// atRest checks that a child that was written as it should be needs nothing more.
func atRest(t *testing.T, written, desired map[string]any, served apply.Served) {
	t.Helper()
	again, err := apply.Child(written, desired, served)
	if err != nil {
		t.Fatal(err)
	}
	if again.Changed || !again.Reapplied {
		t.Errorf("applied twice is not applied once: %s", cmp.Diff(written, again.Object))
	}
}

func TestMemoRemembersUntilSomethingChanges(t *testing.T) {
	memo := apply.NewMemo(apply.MemoBytes)
	observed := &unstructured.Unstructured{Object: stored(t, desiredPod)}
	desired := &unstructured.Unstructured{Object: parse(t, desiredPod)}
	ask := func(variant string, served apply.Served) apply.Result {
		t.Helper()
		r, err := memo.Child(variant, observed, desired, served)
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	first := ask("", nil)
	if first.Changed {
		t.Fatal("nothing changed")
	}
	desired = desired.DeepCopy() // another answer that says the same
	if again := ask("", nil); !sameMap(first.Object, again.Object) {
		t.Error("it was worked out again")
	}
	ask("other", nil)
	if again := ask("", nil); !sameMap(first.Object, again.Object) {
		t.Error("another variant pushed it out")
	}
	set(observed.Object, "other", "metadata", "labels", "app")
	if ask("", nil).Changed {
		t.Error("what did not change its resourceVersion did not change: is anything remembered?")
	}
	if !ask("old", nil).Changed || !ask("", apply.Served(desired.Object)).Changed {
		t.Error("another question got the first one's answer")
	}
	observed.SetResourceVersion("8")
	if !ask("", nil).Content {
		t.Error("a new resourceVersion, and the old answer")
	}
	observed = &unstructured.Unstructured{Object: stored(t, desiredPod)}
	if ask("", nil).Content {
		t.Error("an old resourceVersion, and the new answer")
	}
	desired = desired.DeepCopy()
	set(desired.Object, "y", "metadata", "labels", "app")
	if !ask("", nil).Content {
		t.Error("another answer of the hook, and the old result")
	}
	set(observed.Object, "y", "metadata", "labels", "app") // and its resourceVersion stays
	memo.Forget(observed.GetUID())
	if ask("", nil).Content {
		t.Error("what was forgotten is remembered")
	}
}

func sameMap(a, b map[string]any) bool {
	a["probe"] = true
	defer delete(a, "probe")
	_, shared := b["probe"]
	return shared
}

func annotationOf(child map[string]any) string {
	s, _, _ := unstructured.NestedString(child, "metadata", "annotations", apply.LastApplied)
	return s
}

func set(o map[string]any, value any, path ...string) {
	if err := unstructured.SetNestedField(o, value, path...); err != nil {
		panic(err)
	}
}

func drop(o map[string]any, path ...string) { unstructured.RemoveNestedField(o, path...) }
