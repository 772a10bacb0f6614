package history_test

import (
	"context"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/history"
)

// A revision notes, in the request that records it, of which ones the status said until then that their rollout was
// complete, and the number that it had.
func TestNoted(t *testing.T) {
	s := newServer(t, agent("agent:1"))
	l := history.New(history.DaemonSet(), history.Options{Client: s, Indexed: true})
	reports := func(updated corev1.ConditionStatus, available int32, seen int64) {
		ds := s.parent()
		ds.Status = appsv1.DaemonSetStatus{
			ObservedGeneration: seen, NumberAvailable: available,
			Conditions: []appsv1.DaemonSetCondition{{Type: "Updated", Status: updated}},
		}
		if err := s.Raw.Status().Update(context.Background(), ds); err != nil {
			t.Fatal(err)
		}
	}
	of := func(name string) (completed, was string) {
		a := s.stored()[name].Annotations
		return a[history.CompletedRevisionsAnnotation], a[history.WasRevisionAnnotation]
	}
	_, first := mustPass(t, l, s.parent())
	a := first.Update.Name
	reports(corev1.ConditionTrue, 3, s.parent().Generation)
	_, second := mustPass(t, l, s.image("agent:2"))
	b := second.Update.Name
	if completed, was := of(b); completed != a || was != "" {
		t.Errorf("the second notes %q, %q", completed, was)
	}
	for name, c := range map[string]struct {
		updated   corev1.ConditionStatus
		available int32
		behind    int64
	}{
		"in progress":          {corev1.ConditionFalse, 3, 0},
		"nothing available":    {corev1.ConditionTrue, 0, 0},
		"about the one before": {corev1.ConditionTrue, 3, 1},
	} {
		reports(c.updated, c.available, s.parent().Generation-c.behind)
		_, next := mustPass(t, l, s.image("agent:"+name))
		if completed, _ := of(next.Update.Name); completed != "" {
			t.Errorf("%s: notes %q", name, completed)
		}
	}
	reports(corev1.ConditionTrue, 3, s.parent().Generation)
	mustPass(t, l, s.image("agent:2"))
	if completed, was := of(b); len(completed) <= len(a+",") || completed[:len(a)] != a || was != "2" {
		t.Errorf("after going back it notes %q, %q", completed, was)
	}
	before := len(s.Writes())
	mustPass(t, l, s.parent())
	if len(s.Writes()) != before {
		t.Errorf("a pass without news wrote")
	}
}
