package replicaset

import (
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file reads the state of one pod. It is pure.

// active reports whether a pod counts: it has not ended and is not terminating.
func active(pod *corev1.Pod) bool { return pod.DeletionTimestamp == nil && !ended(pod) }

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
}

// readySince returns when a pod became ready, and whether it is.
func readySince(pod *corev1.Pod) (time.Time, bool) {
	c := readiness.Condition(pod)
	if c == nil {
		return time.Time{}, false
	}
	return c.LastTransitionTime.Time, c.Status == corev1.ConditionTrue
}
