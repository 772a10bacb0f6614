package readiness_test

import (
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

func TestAvailable(t *testing.T) {
	now := time.Date(2026, time.March, 4, 5, 6, 7, 0, time.UTC)
	with := func(status corev1.ConditionStatus, since time.Duration) *corev1.Pod {
		return &corev1.Pod{Status: corev1.PodStatus{Conditions: []corev1.PodCondition{
			{Type: corev1.PodScheduled, Status: corev1.ConditionTrue},
			{Type: corev1.PodReady, Status: status, LastTransitionTime: metav1.NewTime(now.Add(-since))},
		}}}
	}
	for name, c := range map[string]struct {
		pod              *corev1.Pod
		ready, available bool
		left             time.Duration
	}{
		"long ago":         {with(corev1.ConditionTrue, time.Hour), true, true, 0},
		"just now":         {with(corev1.ConditionTrue, 0), true, false, 10 * time.Second},
		"a while ago":      {with(corev1.ConditionTrue, 4*time.Second), true, false, 6 * time.Second},
		"exactly":          {with(corev1.ConditionTrue, 10*time.Second), true, true, 0},
		"in the future":    {with(corev1.ConditionTrue, -time.Hour), true, false, 10 * time.Second},
		"not ready":        {with(corev1.ConditionFalse, time.Hour), false, false, 0},
		"unknown":          {with(corev1.ConditionUnknown, time.Hour), false, false, 0},
		"nothing is known": {&corev1.Pod{}, false, false, 0},
	} {
		t.Run(name, func(t *testing.T) {
			available, left := readiness.Available(c.pod, 10*time.Second, now)
			if available != c.available || left != c.left || readiness.Ready(c.pod) != c.ready {
				t.Errorf("ready %v, available %v, %s left", readiness.Ready(c.pod), available, left)
			}
			if available, _ := readiness.Available(c.pod, 0, now); available != c.ready {
				t.Error("ready is enough without minReadySeconds")
			}
		})
	}
}
