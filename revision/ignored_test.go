package revision_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/cairn-dev/cairn/revision"
)

func scaled(t *testing.T) *revision.Target {
	t.Helper()
	all, err := revision.FieldPaths(nil, revision.Path{"spec"}, revision.Path{"data"})
	if err != nil {
		t.Fatal(err)
	}
	target, err := all.Without(revision.Path{"spec", "replicas"}, revision.Path{"spec", "a", "b"})
	if err != nil {
		t.Fatal(err)
	}
	return target
}

func tree(t *testing.T, text string) map[string]any {
	t.Helper()
	var out map[string]any
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// What is ignored is in no snapshot, makes no difference, and is not touched by a restore, whatever is around it.
func TestIgnoredPaths(t *testing.T) {
	target := scaled(t)
	if got := target.Ignored(); len(got) != 2 || got[0].String() != "spec.replicas" {
		t.Errorf("ignored: %v", got)
	}
	old, err := target.Snapshot(tree(t, `{"spec":{"image":"a","replicas":3,"a":{"b":1,"c":2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(old.Data()), `{"spec":{"a":{"c":2},"image":"a"}}`; got != want {
		t.Errorf("stored %s, want %s", got, want)
	}
	same, err := target.Snapshot(tree(t, `{"spec":{"image":"a","replicas":7,"a":{"c":2}}}`))
	if err != nil {
		t.Fatal(err)
	}
	if revision.Compare(old, same) == revision.RuleNone {
		t.Error("the scale makes a difference")
	}
	stored, err := target.Decode([]byte(`{"spec":{"a":{"c":2},"image":"a","replicas":1}}`)) // recorded before it was ignored
	if err != nil || revision.Compare(old, stored) == revision.RuleNone {
		t.Errorf("an old scale makes a difference, %v", err)
	}
	for name, tc := range map[string]struct{ live, want string }{
		"kept":           {`{"spec":{"image":"b","replicas":7,"a":{"b":8,"d":9}}}`, `{"spec":{"image":"a","replicas":7,"a":{"b":8,"c":2}}}`},
		"absent":         {`{"spec":{"image":"b"},"data":{"x":"y"}}`, `{"spec":{"image":"a","a":{"c":2}}}`},
		"nothing there":  {`{"kind":"X"}`, `{"kind":"X","spec":{"image":"a","a":{"c":2}}}`},
		"another type":   {`{"spec":{"a":7}}`, `{"spec":{"image":"a","a":{"c":2}}}`},
		"beside it, too": {`{"spec":{"replicas":1},"status":{"replicas":1}}`, `{"spec":{"image":"a","replicas":1,"a":{"c":2}},"status":{"replicas":1}}`},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := old.Restore(tree(t, tc.live))
			if err != nil {
				t.Fatal(err)
			}
			raw, err := json.Marshal(got)
			if err != nil {
				t.Fatal(err)
			}
			if again := tree(t, string(raw)); !reflect.DeepEqual(again, tree(t, tc.want)) {
				t.Errorf("restored %s, want %s", raw, tc.want)
			}
		})
	}
	patch, err := old.RestorePatch(tree(t, `{"metadata":{"uid":"u","resourceVersion":"1"},"spec":{"replicas":7}}`))
	if err != nil {
		t.Fatal(err)
	}
	var ops []struct {
		Path, Op string
		Value    any
	}
	if err := json.Unmarshal(patch, &ops); err != nil || len(ops) != 3 || ops[2].Path != "/spec" {
		t.Fatalf("%s, %v", patch, err)
	}
	if value := ops[2].Value.(map[string]any); value["replicas"] != float64(7) {
		t.Errorf("the patch changes the scale: %s", patch)
	}
	// A snapshot without the subtree removes it, but for what is ignored.
	empty, err := target.Snapshot(tree(t, `{"data":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	got, err := empty.Restore(tree(t, `{"spec":{"replicas":7,"image":"b"}}`))
	raw, errJSON := json.Marshal(got)
	if err != nil || errJSON != nil || string(raw) != `{"data":{},"spec":{"replicas":7}}` {
		t.Errorf("%s, %v, %v", raw, err, errJSON)
	}
}

func TestIgnoredPathsAreInside(t *testing.T) {
	target := scaled(t)
	for _, path := range []revision.Path{{"spec"}, {"status", "x"}, {"metadata"}} {
		if _, err := target.Without(path); err == nil {
			t.Errorf("%s is ignored, and lies in nothing that is recorded", path)
		}
	}
}
