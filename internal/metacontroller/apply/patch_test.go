package apply_test

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

func TestPatchAndDifferences(t *testing.T) {
	for _, c := range []struct {
		name        string
		change      func(observed, desired map[string]any)
		patch       string // without the annotation
		differences []string
	}{
		{name: "nothing", change: func(_, _ map[string]any) {}, patch: `{"metadata":{"resourceVersion":"7","uid":"u-1"}}`},
		{
			name: "an image",
			change: func(o, _ map[string]any) {
				o["spec"].(map[string]any)["containers"].([]any)[0].(map[string]any)["image"] = "x"
			},
			patch:       `{"metadata":{"resourceVersion":"7","uid":"u-1"},"spec":{"containers":[{"args":["a \u0026\u0026 b"],"image":"nginx:1","name":"main"}]}}`,
			differences: []string{"spec.containers[0].image"},
		},
		{
			name: "a label more, a label less, a container more",
			change: func(o, d map[string]any) {
				drop(o, "metadata", "labels")
				set(o, []any{}, "spec", "containers")
				set(d, int64(1), "spec", "new")
			},
			patch:       `{"metadata":{"annotations":{},"labels":{"app":"x"},"resourceVersion":"7","uid":"u-1"},"spec":{"containers":[{"args":["a \u0026\u0026 b"],"image":"nginx:1","name":"main"}],"new":1}}`,
			differences: []string{"metadata.labels", "spec.containers", "spec.new"},
		},
		{
			name:        "without annotations",
			change:      func(o, _ map[string]any) { drop(o, "metadata", "annotations") },
			patch:       `{"metadata":{"annotations":{},"resourceVersion":"7","uid":"u-1"}}`,
			differences: nil,
		},
	} {
		t.Run(c.name, func(t *testing.T) {
			observed, desired := stored(t, desiredPod), parse(t, desiredPod)
			c.change(observed, desired)
			r, err := apply.Child(observed, desired, nil)
			if err != nil {
				t.Fatal(err)
			}
			b, err := r.Patch(observed)
			if err != nil {
				t.Fatal(err)
			}
			patch := parse(t, string(b))
			drop(patch, "metadata", "annotations", apply.LastApplied)
			if diff := cmp.Diff(c.patch, text(t, patch)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if diff := cmp.Diff(c.differences, r.Differences(observed, 10)); diff != "" {
				t.Errorf("-want +got\n%s", diff)
			}
			if most := r.Differences(observed, 1); len(most) > 1 {
				t.Errorf("asked for one: %s", most)
			}
		})
	}
}

func TestPatchMakesWhatWasAskedFor(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		observed, desired := tree(3).Draw(t, "observed"), tree(3).Draw(t, "desired")
		before := runtime.DeepCopyJSON(observed)
		r, err := apply.Child(observed, desired, nil)
		if err != nil {
			t.Fatal(err)
		}
		b, err := r.Patch(observed)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(r.Object, patched(observed, parseBytes(t, b))); diff != "" {
			t.Fatalf("-want +got\n%s", diff)
		}
		if paths := r.Differences(observed, 1000); (len(paths) > 0) != r.Content || !slices.IsSorted(paths) {
			t.Fatalf("content is %t, and %q", r.Content, paths)
		}
		if diff := cmp.Diff(before, observed); diff != "" {
			t.Fatalf("an argument was written to:\n%s", diff)
		}
	})
}

func parseBytes(t *rapid.T, b []byte) (v map[string]any) {
	if err := utiljson.Unmarshal(b, &v); err != nil {
		t.Fatal(err)
	}
	return v
}

// patched is RFC 7386, section 2, to the letter.
func patched(target any, patch map[string]any) any {
	out := map[string]any{}
	if o, ok := target.(map[string]any); ok {
		out = runtime.DeepCopyJSON(o)
	}
	for key, value := range patch {
		switch v := value.(type) {
		case nil:
			delete(out, key)
		case map[string]any:
			out[key] = patched(out[key], v)
		default:
			out[key] = v
		}
	}
	return out
}
