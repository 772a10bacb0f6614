package history_test

import (
	"context"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// A revision notes, in the request that records it, which ones the status names as good, and the
// number that it had.
func TestNoted(t *testing.T) {
	s := newServer(t, agent("agent:1"))
	l := history.New(history.DaemonSet(), history.Options{Client: s, Indexed: true})
	reports := func(good ...revision.Revision) {
		var g rollback.Good
		for _, r := range good {
			g = g.Observed(rollback.Revision{Name: r.Name, UID: r.UID}, true, 3, 3, time.Time{})
		}
		ds := s.parent()
		ds.Status = appsv1.DaemonSetStatus{}
		if c := g.Condition(metav1.Time{}); c != nil {
			ds.Status.Conditions = []appsv1.DaemonSetCondition{{
				Type: appsv1.DaemonSetConditionType(c.Type), Status: corev1.ConditionTrue, Reason: c.Reason, Message: c.Message,
			}}
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
	reports(first.Update)
	_, second := mustPass(t, l, s.image("agent:2"))
	b := second.Update.Name
	if completed, was := of(b); completed != a || was != "" {
		t.Errorf("the second notes %q, %q", completed, was)
	}
	reports()
	_, third := mustPass(t, l, s.image("agent:3"))
	if completed, _ := of(third.Update.Name); completed != "" {
		t.Errorf("the third notes %q", completed)
	}
	reports(first.Update, second.Update)
	mustPass(t, l, s.image("agent:2"))
	if completed, was := of(b); len(strings.Split(completed, ",")) != 2 || !strings.Contains(completed, a) || was != "2" {
		t.Errorf("after going back it notes %q, %q", completed, was)
	}
	before := len(s.Writes())
	mustPass(t, l, s.parent())
	if len(s.Writes()) != before {
		t.Errorf("a pass without news wrote")
	}
}
