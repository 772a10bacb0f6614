package scenario

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file compares a history with the sections of a file. How histories are rendered is compared by the scenarios of
// testdata, byte for byte: in the simulation (proof/sim) in the form Linear, on the real API server (scenario/cluster)
// in PerObject.

// aHistory is a user who creates a DaemonSet, and a manager that creates its first revision.
func aHistory() *check.History {
	ds := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{Name: "web", UID: "web"}}
	ds.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: "app:1"}}
	h := &check.History{Audited: true}
	for i, o := range []client.Object{ds, revision(1, "app:1")} {
		k, _ := kindNamed([]string{"daemonset", "revision"}[i])
		h.Events = append(h.Events, check.Event{
			RV: uint64(i + 1), Type: check.Added, New: o, By: &check.Entry{User: []string{UserName, "manager"}[i]},
			Key: check.Key{Resource: k.group().WithVersion("v1"), Namespace: "ns", Name: o.GetName()},
		})
	}
	return h
}

func TestGoldenHistories(t *testing.T) {
	name := filepath.Join(t.TempDir(), "bug.txt")
	const text = "# Why.\n\ncontrollers daemonset\n\nsettle # as it was\n\n-- web.yaml --\nkind: Pod\n-- here.history --\nold\n"
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	read := func() *Script {
		t.Helper()
		f, err := os.Open(name)
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = f.Close() }()
		s, err := Parse(name, f)
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	h := aHistory()
	err := read().CompareGolden("here", h, Linear)
	if err == nil || !strings.Contains(err.Error(), "section here.history, line 1: it says\n\told\nand this time it was\n\tuser creates daemonset web: app:1\n") {
		t.Errorf("a history that differs: %v", err)
	}
	if err := read().CompareGolden("there", h, Linear); err != nil {
		t.Errorf("nothing is remembered for there: %v", err)
	}
	for _, stage := range []string{"here", "there"} {
		if err := UpdateGolden(name, stage, h, Linear); err != nil {
			t.Fatal(err)
		}
		if err := read().CompareGolden(stage, h, Linear); err != nil {
			t.Error(err)
		}
	}
	after, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	want := strings.Replace(text, "old\n", Render(h, Linear), 1) + "-- there.history --\n" + Render(h, Linear)
	if string(after) != want {
		t.Errorf("the file is\n%s\nwant\n%s", after, want)
	}
}
