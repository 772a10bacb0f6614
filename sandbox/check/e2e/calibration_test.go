package e2e

import (
	"context"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// This file points the checker at the upstream controller, which is known to break a promise. A checker that does not
// find that proves nothing.

// TestUpstreamRelabelsPodsOfOtherRevisions is kubernetes#111280: going back to a revision that exists twice, the upstream
// controller merges the two and gives its label to all pods, whatever they run, and calls the rollout complete.
func TestUpstreamRelabelsPodsOfOtherRevisions(t *testing.T) {
	l := newLab(t)
	stop, err := sandboxtest.Get(t).RunUpstream(context.WithoutCancel(t.Context()), sandbox.DaemonSet)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(stop)
	l.create("web", "app:1")
	l.rolledOut("web")
	first := l.revision(1)
	l.image("web", "app:2")

	twin := first.DeepCopy()
	twin.ObjectMeta = metav1.ObjectMeta{
		Name: "web-twin", Labels: map[string]string{"app": "web", appsv1.DefaultDaemonSetUniqueLabelKey: "twin"}, OwnerReferences: first.OwnerReferences,
	}
	twin.Revision = 3
	if _, err := l.user.AppsV1().ControllerRevisions(l.namespace).Create(t.Context(), twin, metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	l.image("web", "app:1")
	at := l.sync()

	h, err := l.recorder.History()
	if err != nil {
		t.Fatal(err)
	}
	found := check.Check(h, check.DaemonSet())
	for _, v := range found {
		t.Log(v)
	}
	if got := invariants(found); got != "P4 R4" {
		t.Errorf("found %q, want P4 and R4", got)
	}
	if got := invariants(check.Rest(h, at, check.DaemonSet())); !strings.Contains(got, "R4") {
		t.Errorf("at rest, found %q, want R4 among them", got)
	}
}

// revision returns the revision with that number.
func (l *lab) revision(number int64) *appsv1.ControllerRevision {
	l.Helper()
	list, err := l.user.AppsV1().ControllerRevisions(l.namespace).List(l.Context(), metav1.ListOptions{})
	if err != nil {
		l.Fatal(err)
	}
	for i := range list.Items {
		if list.Items[i].Revision == number {
			return &list.Items[i]
		}
	}
	l.Fatalf("there is no revision %d", number)
	return nil
}
