package revision_test

// Taking snapshots and reading stored ones: what is covered, what is refused and how that is said, and that a snapshot
// stays what it was.

import (
	"encoding/json"
	"errors"
	"math"
	"strings"
	"sync"
	"testing"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/revision"
)

func TestSnapshotHoldsTheCoveredSubtreesOnly(t *testing.T) {
	parent := map[string]any{
		"metadata": map[string]any{"name": "x"},
		"spec":     map[string]any{"template": map[string]any{"b": int64(1), "a": "<>"}, "settings": nil, "replicas": int64(3)},
	}
	got := string(snapshot(t, plainTarget(t), parent).Data())
	if want := `{"spec":{"settings":null,"template":{"a":"\u003c\u003e","b":1}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	delete(parent["spec"].(map[string]any), "settings")
	got = string(snapshot(t, plainTarget(t), parent).Data())
	if want := `{"spec":{"template":{"a":"\u003c\u003e","b":1}}}`; got != want {
		t.Errorf("without settings: got %s, want %s", got, want)
	}
	got = string(snapshot(t, plainTarget(t), map[string]any(nil)).Data())
	if want := `{}`; got != want {
		t.Errorf("of nothing: got %s, want %s", got, want)
	}
}

// Scaling, a new strategy, a label on the parent: no revision.
func TestWhatIsNotCoveredMakesNoRevision(t *testing.T) {
	ds := logAgent(t)
	before := snapshot(t, typedTarget(), ds)
	limit := int32(3)
	ds.Generation, ds.ResourceVersion = 6, "17000"
	ds.Labels["extra"] = "label"
	ds.Spec.RevisionHistoryLimit, ds.Spec.MinReadySeconds = &limit, 5
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	ds.Status.NumberReady = 2
	if diff := cmp.Diff(string(before.Data()), string(snapshot(t, typedTarget(), ds).Data())); diff != "" {
		t.Errorf("another snapshot:\n%s", diff)
	}
}

// However a parent is held in memory, its snapshot is the same.
func TestSnapshotOfEveryRepresentation(t *testing.T) {
	ds := logAgent(t)
	want := string(snapshot(t, typedTarget(), ds).Data())
	tree := parse(t, testdata(t, "daemonset.json"))
	var floats map[string]any
	if err := json.Unmarshal(testdata(t, "daemonset.json"), &floats); err != nil {
		t.Fatal(err)
	}
	object := &unstructured.Unstructured{}
	if err := object.UnmarshalJSON(testdata(t, "daemonset.json")); err != nil {
		t.Fatal(err)
	}
	for name, parent := range map[string]any{
		"value": *ds, "numbers kept": tree, "numbers as floats": floats, "unstructured": object,
		"unstructured content": object.Object, "raw": json.RawMessage(testdata(t, "daemonset.json")),
	} {
		if diff := cmp.Diff(want, string(snapshot(t, typedTarget(), parent).Data())); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// Maps written by hand hold what decoded JSON never holds.
func TestSnapshotOfMapsWithGoTypes(t *testing.T) {
	wrap := func(v any) map[string]any { return map[string]any{"spec": map[string]any{"template": v}} }
	s := snapshot(t, plainTarget(t), wrap(map[string]any{
		"labels": map[string]string{"app": "x"}, "args": []string{"a"}, "port": int32(80), "since": metav1.Time{},
	}))
	wantSame(t, s, decode(t, plainTarget(t), ` {"spec":{"template":{"port":80.0,"since":null,"labels":{"app":"x"},"args":["a"]}}}`))
}

func TestSnapshotRefuses(t *testing.T) {
	for name, c := range map[string]struct {
		target *revision.Target
		parent any
		want   string
	}{
		"no template":     {typedTarget(), map[string]any{"spec": map[string]any{}}, "the parent has no spec.template"},
		"no spec":         {typedTarget(), map[string]any{}, "the parent has no spec.template"},
		"a spec of text":  {typedTarget(), map[string]any{"spec": "x"}, "the parent has no spec.template"},
		"a null template": {typedTarget(), map[string]any{"spec": map[string]any{"template": nil}}, "spec.template of the parent is null, not an object"},
		"a list":          {typedTarget(), map[string]any{"spec": map[string]any{"template": []any{}}}, "spec.template of the parent is a list, not an object"},
		"text":            {typedTarget(), map[string]any{"spec": map[string]any{"template": ""}}, "spec.template of the parent is a string, not an object"},
		"a boolean":       {typedTarget(), map[string]any{"spec": map[string]any{"template": true}}, "spec.template of the parent is a boolean, not an object"},
		"a number":        {typedTarget(), map[string]any{"spec": map[string]any{"template": 1.5}}, "spec.template of the parent is a number, not an object"},
		"no JSON":         {plainTarget(t), make(chan int), "read the parent as JSON: json: unsupported type: chan int"},
		"no object":       {plainTarget(t), "text", "read the parent as JSON: json: cannot unmarshal string into Go value of type map[string]interface {}"},
		"nil":             {plainTarget(t), nil, "read the parent as JSON: it is null, not an object"},
		"no number": {
			plainTarget(t),
			map[string]any{"spec": map[string]any{"template": math.NaN()}},
			"json: unsupported value: NaN",
		},
	} {
		s, err := c.target.Snapshot(c.parent)
		if err == nil || err.Error() != c.want || s != nil {
			t.Errorf("%s: got %v, want the error %q", name, err, c.want)
		}
	}
}

func TestDecodeRefuses(t *testing.T) {
	for name, c := range map[string]struct{ data, want string }{
		"nothing":         {``, "EOF"},
		"half":            {`{"spec":`, "unexpected EOF"},
		"null":            {`null`, "it is null, not an object"},
		"a list":          {`[]`, "json: cannot unmarshal array into Go value of type map[string]interface {}"},
		"two objects":     {`{"spec":{"template":{}}} {}`, "there is more after the object"},
		"no template":     {`{"spec":{}}`, "it has no spec.template"},
		"a null template": {`{"spec":{"template":null}}`, "its spec.template is null, not an object"},
		"another type": {
			`{"spec":{"template":{"spec":{"containers":{}}}}}`,
			"json: cannot unmarshal object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
		},
		"a quantity that fills all memory": {
			`{"spec":{"template":{"spec":{"overhead":{"cpu":" 12345678901234567890e100000"}}}}}`,
			"after taking out what could be a quantity with a huge exponent: " +
				"quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
		},
		"a number that is none": {
			`{"spec":{"template":{"spec":{"priority":1e999}}}}`,
			`number 1e999: strconv.ParseFloat: parsing "1e999": value out of range`,
		},
	} {
		s, err := typedTarget().Decode([]byte(c.data))
		var undecodable *revision.UndecodableError
		if s != nil || !errors.As(err, &undecodable) {
			t.Errorf("%s: got %v, want an UndecodableError", name, err)
			continue
		}
		if want := "the revision's data cannot be read: " + c.want; err.Error() != want {
			t.Errorf("%s: got %q, want %q", name, err, want)
		}
		if cause := errors.Unwrap(err); cause == nil || cause.Error() != c.want || !errors.Is(err, undecodable.Err) {
			t.Errorf("%s: the cause got lost in %v", name, err)
		}
		undecodable.Revision = "agent-abc"
		if want := "the data of revision agent-abc cannot be read: " + c.want; err.Error() != want {
			t.Errorf("%s: got %q, want %q", name, err, want)
		}
	}
}

// Text that looks like such a quantity is no quantity: short commit hashes do.
func TestDecodeLeavesTextAlone(t *testing.T) {
	const data = `{"spec":{"template":{"metadata":{"labels":{"commit":"1e99999999"}},"spec":{"containers":[{"args":["1E+12345"]}]}}}}`
	var ds appsv1.DaemonSet
	if err := decode(t, typedTarget(), data).Into(&ds); err != nil {
		t.Fatal(err)
	}
	template := ds.Spec.Template
	if template.Labels["commit"] != "1e99999999" || template.Spec.Containers[0].Args[0] != "1E+12345" {
		t.Errorf("got %v", template)
	}
	wantDifferent(t, decode(t, typedTarget(), data), decode(t, typedTarget(), strings.Replace(data, "1e99999999", "1e99999998", 1)))
	wantDifferent(t, decode(t, typedTarget(), data), decode(t, typedTarget(), strings.Replace(data, "12345", "12346", 1)))
}

// What lies outside the covered paths of stored data is no part of the history.
func TestDecodeIgnoresWhatIsNotCovered(t *testing.T) {
	a := decode(t, plainTarget(t), `{"spec":{"template":{"x":1},"replicas":3},"metadata":{"name":"y"}}`)
	b := decode(t, plainTarget(t), `{"spec":{"template":{"x":1}}}`)
	wantSame(t, a, b)
	restored, err := a.Restore(map[string]any{"spec": map[string]any{"replicas": int64(5)}})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(encode(t, restored)), `{"spec":{"replicas":5,"template":{"x":1}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// The directive is the format's, whatever the parent says; deeper down a field of that name is content.
func TestDirectiveIsNoContent(t *testing.T) {
	target := revision.StrategicMerge(nil, templatePath)
	parent := func(template map[string]any) map[string]any {
		return map[string]any{"spec": map[string]any{"template": template}}
	}
	s := snapshot(t, target, parent(map[string]any{"$patch": "delete", "x": int64(1)}))
	if got, want := string(s.Data()), `{"spec":{"template":{"$patch":"replace","x":1}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	wantSame(t, s, snapshot(t, target, parent(map[string]any{"x": int64(1)})))
	deeper := parent(map[string]any{"x": map[string]any{"$patch": "delete"}})
	wantSame(t, snapshot(t, target, deeper), decode(t, target, string(snapshot(t, target, deeper).Data())))
	wantDifferent(t, snapshot(t, target, deeper), snapshot(t, target, parent(map[string]any{"x": map[string]any{}})))
}

// A controller goes on working with its parent, and reuses buffers; the snapshot must not notice.
func TestSnapshotStaysWhatItWas(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		target := plainTarget(t)
		template := map[string]any{"image": "a", "more": values(2).Draw(t, "more"), "list": []any{map[string]any{"x": "y"}}}
		parent := map[string]any{"spec": map[string]any{"template": template}}
		s := snapshot(t, target, parent)
		data := append([]byte(" "), s.Data()...)
		stored := decode(t, target, string(data))
		template["image"] = "b"
		template["list"].([]any)[0].(map[string]any)["x"] = "z"
		restored, err := s.Restore(parent)
		if err != nil {
			t.Fatalf("%v", err)
		}
		image := restored["spec"].(map[string]any)["template"].(map[string]any)
		if image["image"] != "a" {
			t.Fatalf("restored the parent's later image: %v", image)
		}
		image["image"] = "c"
		if revision.Compare(s, stored) != revision.RuleBytes || revision.Compare(s, decode(t, target, string(data))) != revision.RuleBytes {
			t.Fatalf("the snapshot changed with the parent, or with what was restored from it")
		}
	})
}

// The buffer of stored data belongs to the caller.
func TestDecodeCopiesItsInput(t *testing.T) {
	data := []byte(`{"spec":{"template":{"x":"a"}}}`)
	s, err := plainTarget(t).Decode(data)
	if err != nil {
		t.Fatal(err)
	}
	data[24] = 'b'
	if got, want := string(s.Data()), `{"spec":{"template":{"x":"a"}}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// One snapshot serves many workers at a time; run with -race.
func TestSnapshotIsSafeForConcurrentUse(t *testing.T) {
	a, b := snapshot(t, typedTarget(), logAgent(t)), decode(t, typedTarget(), string(testdata(t, "corpus", "empty-lists.json")))
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			if revision.Compare(a, b) != revision.RuleNormal || !revision.Askable(b, a) {
				t.Error("another answer")
			}
			if _, err := a.Restore(map[string]any{}); err != nil {
				t.Error(err)
			}
			if err := b.Into(&appsv1.DaemonSet{}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
}
