package pass_test

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// TestConditionsThereAndBack: a kind's own conditions lose nothing, and the list that is worked on is a copy.
func TestConditionsThereAndBack(t *testing.T) {
	fields := func(c *appsv1.DaemonSetCondition) pass.ConditionFields[appsv1.DaemonSetConditionType] {
		return pass.ConditionFields[appsv1.DaemonSetConditionType]{
			Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
		}
	}
	stored := []appsv1.DaemonSetCondition{
		{Type: "Theirs", Status: "Unknown", LastTransitionTime: metav1.NewTime(start), Reason: "Why", Message: "so"},
		{Type: pass.Updated, Status: "False", LastTransitionTime: metav1.NewTime(start), Reason: "Old", Message: "old"},
	}
	conditions := pass.ConditionsOf(stored, fields)
	if diff := cmp.Diff(stored, pass.StoredConditions(conditions, fields)); diff != "" {
		t.Errorf("there and back:\n%s", diff)
	}
	later := metav1.NewTime(start.Add(time.Hour))
	pass.SetCondition(&conditions, metav1.Condition{
		Type: pass.Updated, Status: metav1.ConditionTrue, LastTransitionTime: later, Reason: "New", Message: "new",
	})
	want := []appsv1.DaemonSetCondition{
		stored[0], {Type: pass.Updated, Status: "True", LastTransitionTime: later, Reason: "New", Message: "new"},
	}
	if diff := cmp.Diff(want, pass.StoredConditions(conditions, fields)); diff != "" {
		t.Errorf("one that is set:\n%s", diff)
	}
	if stored[1].Reason != "Old" {
		t.Error("what was read was written to")
	}
}
