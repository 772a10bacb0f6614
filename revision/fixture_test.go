package revision_test

// What the tests of this package share: targets, a DaemonSet as an API server shows it, and short ways to get
// snapshots.

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/revision"
)

// tb is what *testing.T, *testing.F and *rapid.T have in common.
type tb interface {
	Helper()
	Fatalf(format string, args ...any)
}

var templatePath = revision.Path{"spec", "template"}

// typedTarget covers what a DaemonSet's revisions cover.
func typedTarget() *revision.Target {
	return revision.StrategicMerge(revision.Typed[appsv1.DaemonSet](), templatePath)
}

// plainTarget covers two subtrees and compares them as plain JSON, as for a custom resource without a schema.
func plainTarget(t tb) *revision.Target {
	t.Helper()
	target, err := revision.FieldPaths(nil, revision.Path{"spec", "template"}, revision.Path{"spec", "settings"})
	if err != nil {
		t.Fatalf("make the target: %v", err)
	}
	return target
}

func snapshot(t tb, target *revision.Target, parent any) *revision.Snapshot {
	t.Helper()
	s, err := target.Snapshot(parent)
	if err != nil {
		t.Fatalf("snapshot: %v", err)
	}
	return s
}

func decode(t tb, target *revision.Target, data string) *revision.Snapshot {
	t.Helper()
	s, err := target.Decode([]byte(data))
	if err != nil {
		t.Fatalf("decode %s: %v", data, err)
	}
	return s
}

// parse reads JSON with all digits kept, and writes the same value in one form. The tests use it instead of the
// package's own code to look at JSON.
func parse(t tb, data []byte) map[string]any {
	t.Helper()
	dec := json.NewDecoder(bytes.NewReader(data))
	dec.UseNumber()
	var tree map[string]any
	if err := dec.Decode(&tree); err != nil {
		t.Fatalf("parse %s: %v", data, err)
	}
	return tree
}

func encode(t tb, v any) []byte {
	t.Helper()
	b, err := json.Marshal(v)
	if err != nil {
		t.Fatalf("encode: %v", err)
	}
	return b
}

func testdata(t tb, name ...string) []byte {
	t.Helper()
	b, err := os.ReadFile(filepath.Join(append([]string{"testdata"}, name...)...))
	if err != nil {
		t.Fatalf("%v", err)
	}
	return b
}

// logAgent is the DaemonSet of testdata/daemonset.json: all defaults filled in, as a 1.36 API server returns it.
func logAgent(t tb) *appsv1.DaemonSet {
	t.Helper()
	ds := &appsv1.DaemonSet{}
	if err := json.Unmarshal(testdata(t, "daemonset.json"), ds); err != nil {
		t.Fatalf("read the DaemonSet: %v", err)
	}
	return ds
}

// withTemplate puts a template into an otherwise complete DaemonSet.
func withTemplate(template *corev1.PodTemplateSpec) *appsv1.DaemonSet {
	return &appsv1.DaemonSet{
		ObjectMeta: metav1.ObjectMeta{Name: "agent", Namespace: "default", Generation: 7},
		Spec: appsv1.DaemonSetSpec{
			Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"app": "agent"}},
			Template: *template,
		},
		Status: appsv1.DaemonSetStatus{ObservedGeneration: 7},
	}
}

// wantSame and wantDifferent fail unless Compare says so, whichever way round it is asked.
func wantSame(t *testing.T, a, b *revision.Snapshot) {
	t.Helper()
	if ab, ba := revision.Compare(a, b), revision.Compare(b, a); ab == revision.RuleNone || ab != ba {
		t.Errorf("want them equal, got %q and %q:\n%s\n%s", ab, ba, a.Data(), b.Data())
	}
}

func wantDifferent(t *testing.T, a, b *revision.Snapshot) {
	t.Helper()
	if ab, ba := revision.Compare(a, b), revision.Compare(b, a); ab != revision.RuleNone || ba != revision.RuleNone {
		t.Errorf("want them different, got %q and %q:\n%s\n%s", ab, ba, a.Data(), b.Data())
	}
}
