package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"
)

// This file reads the state of one pod. It is pure.

// active reports whether a pod counts: it has not ended and is not going.
func active(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !ended(pod) }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// readySince returns when a pod became ready, and whether it is.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	for i := range pod.Status.Conditions {
		if c := &pod.Status.Conditions[i]; c.Type == corev1.PodReady {
			return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
		}
	}
	return time.Time{}, false
}

func isReady(pod *corev1.Pod) bool {
	_, ready := readySince(pod)
	return ready
}

// availability reports whether a pod has been ready for long enough at a given time and, if it is ready but has not, how
// long that takes. A kubelet whose clock is ahead makes it no longer than the whole period (kubernetes#77203).
func availability(pod *corev1.Pod, minReady time.Duration, now time.Time) (available bool, left time.Duration) {
	since, ready := readySince(pod)
	if !ready {
		return false, 0
	}
	if minReady == 0 {
		return true, 0
	}
	left = since.Add(minReady).Sub(now)
	if left <= 0 {
		return true, 0
	}
	return false, min(left, minReady)
}
