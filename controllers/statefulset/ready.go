package statefulset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// This file reads the state of one pod. It is pure.

// alive reports whether a pod holds its place: it has not ended and is not going.
func alive(pod *corev1.Pod) bool { return pod != nil && !going(pod) && !ended(pod) }

func going(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// isReady reports whether a pod runs and is ready, as kubectl users know it.
func isReady(pod *corev1.Pod) bool {
	c := readyCondition(pod)
	return pod.Status.Phase == corev1.PodRunning && c != nil && c.Status == corev1.ConditionTrue
}

// availability reports whether a pod has been ready for long enough at a given time and, if it is ready but has not,
// how long that takes. A kubelet whose clock is ahead makes it no longer than the whole period (kubernetes#77203).
func availability(pod *corev1.Pod, minReady time.Duration, now time.Time) (available bool, left time.Duration) {
	if !isReady(pod) {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	left = readyCondition(pod).LastTransitionTime.Add(minReady).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, min(left, minReady)
}

// slip is how far apart a kubelet may stamp two times that it takes at once.
const slip = time.Second

// neverReady reports whether it is certain that a pod was never ready.
//
// The Ready condition keeps the time of its last change. Kubelets write it, as False, in the same update that says when
// they took the pod on, so a False of that very time never changed. A pod without the condition has met no kubelet. Any
// other time means that it was ready once, or that somebody else wrote it (a node controller with a clock of its own):
// then the pod counts as one that was ready.
func neverReady(pod *corev1.Pod) bool {
	c := readyCondition(pod)
	switch {
	case c == nil:
		return true
	case c.Status == corev1.ConditionTrue, pod.Status.StartTime == nil:
		return false
	}
	apart := c.LastTransitionTime.Sub(pod.Status.StartTime.Time)
	return apart >= -slip && apart <= slip
}

func readyCondition(pod *corev1.Pod) *corev1.PodCondition {
	for i := range pod.Status.Conditions {
		if pod.Status.Conditions[i].Type == corev1.PodReady {
			return &pod.Status.Conditions[i]
		}
	}
	return nil
}
