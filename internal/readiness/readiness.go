// Package readiness reads whether a pod is ready. It is pure.
//
// What may not come in: which pods count, which differs from kind to kind.
package readiness

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// Condition returns the condition Ready of a pod, nil if it has none.
func Condition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}

// Ready reports whether a pod is ready.
func Ready(pod *corev1.Pod) bool {
	c := Condition(pod)
	return c != nil && c.Status == corev1.ConditionTrue
}

// Available reports whether a pod has been ready for long enough at a given time and, if it is ready but has not, how
// long that takes: no event marks that moment. If a kubelet's clock is ahead, the wait is still no longer than the
// whole period (kubernetes#77203).
func Available(pod *corev1.Pod, minReady time.Duration, now time.Time) (available bool, left time.Duration) {
	if !Ready(pod) {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	left = Condition(pod).LastTransitionTime.Add(minReady).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, min(left, minReady)
}

// slip is how much two times may differ that a kubelet records in one update.
const slip = time.Second

// NeverReady reports whether it is certain that a pod was never ready.
//
// The Ready condition keeps the time of its last change. Kubelets write it, as False, in the same update as the time at
// which they accepted the pod. A False of that very time never changed. A pod without the condition was not seen by a
// kubelet. At any other time the pod was ready once, or another component wrote the condition by its own clock. Such a
// pod is not known to be one that was never ready.
func NeverReady(pod *corev1.Pod) bool {
	c := Condition(pod)
	switch {
	case c == nil:
		return true
	case c.Status == corev1.ConditionTrue, pod.Status.StartTime == nil:
		return false
	}
	apart := c.LastTransitionTime.Sub(pod.Status.StartTime.Time)
	return apart >= -slip && apart <= slip
}
