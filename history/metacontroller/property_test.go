package metacontroller

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file checks what holds for any parent, any field paths and any past.

// tree makes decoded JSON, as an API client has it.
func tree(depth int) *rapid.Generator[any] {
	leaf := rapid.OneOf(
		rapid.Just(any(nil)), rapid.Map(rapid.Bool(), toAny), rapid.Map(rapid.Int64(), toAny),
		rapid.Map(rapid.SampledFrom([]string{"", "a", "<&>", "\u2028"}), toAny), rapid.Just(any(0.5)),
	)
	if depth == 0 {
		return leaf
	}
	below := tree(depth - 1)
	return rapid.OneOf(
		leaf,
		rapid.Map(rapid.SliceOfN(below, 0, 3), func(v []any) any { return v }),
		rapid.Map(rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), below, 0, 3), func(v map[string]any) any { return v }),
	)
}

func toAny[T any](v T) any { return v }

func drawParent(t *rapid.T, label string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"metadata": map[string]any{"uid": parentUID, "name": "nap"}}}
	for _, field := range []string{"spec", "data"} {
		if v := rapid.MapOfN(rapid.SampledFrom([]string{"a", "b", "c"}), tree(2), 0, 3).Draw(t, label+" "+field); len(v) > 0 {
			o.Object[field] = v
		}
	}
	return o
}

// TestThereAndBack: a parent that is restored is as it was then in what is versioned, and as it is now in all else.
func TestThereAndBack(t *testing.T) {
	paths := rapid.SliceOfN(rapid.SampledFrom([]string{"spec", "spec.a", "spec.a.b", "spec.b", "data", "data.c", "other"}), 0, 4)
	rapid.Check(t, func(rt *rapid.T) {
		f := format(t, paths.Draw(rt, "paths")...)
		then, now := drawParent(rt, "then"), drawParent(rt, "now")
		thenBefore, nowBefore := then.DeepCopy(), now.DeepCopy()
		taken := snapshot(t, f, then)
		read := f.Read(&v1alpha1.ControllerRevision{ParentPatch: runtime.RawExtension{Raw: taken.Data()}, FieldPaths: f.paths})
		if read.Err != nil {
			rt.Fatal(read.Err)
		}
		if f.Name(then, read.Snapshot, nil) != f.Name(then, taken, nil) {
			rt.Fatalf("%s has another name after it was stored", taken.Data())
		}

		restored, err := Restore(now, read.Snapshot)
		if diff := cmp.Diff(thenBefore.Object, then.Object) + cmp.Diff(nowBefore.Object, now.Object); diff != "" {
			rt.Fatalf("a parent was changed: %s", diff)
		}
		if err != nil {
			return // a field is where an object was, see TestRestoreOverWhatIsNoObject
		}
		if again := snapshot(t, f, restored); !bytes.Equal(again.Data(), taken.Data()) {
			rt.Fatalf("restored %s, want %s", again.Data(), taken.Data())
		}
		if diff := cmp.Diff(rest(now, f), rest(restored, f)); diff != "" {
			rt.Fatalf("what is not versioned: %s", diff)
		}
		for _, path := range f.target.Paths() { // the types too: a client takes int64 and float64, and nothing else
			was, _, _ := unstructured.NestedFieldNoCopy(then.Object, path...)
			is, _, _ := unstructured.NestedFieldNoCopy(restored.Object, path...)
			if diff := cmp.Diff(was, is); diff != "" {
				rt.Fatalf("%s: %s", path, diff)
			}
		}
	})
}

// rest returns what is not versioned. An object that is empty without what is, does not count: a restore makes it.
func rest(o *unstructured.Unstructured, f *Format) map[string]any {
	out := o.DeepCopy().Object
	for _, path := range f.target.Paths() {
		unstructured.RemoveNestedField(out, path...)
		for above := path[:len(path)-1]; len(above) > 0; above = above[:len(above)-1] {
			if m, ok, err := unstructured.NestedMap(out, above...); err == nil && ok && len(m) == 0 {
				unstructured.RemoveNestedField(out, above...)
			}
		}
	}
	return out
}
