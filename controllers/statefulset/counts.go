package statefulset

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// This file counts. Every counter is recomputed from the existing pods: counters that were incremented and decremented
// went below zero (kubernetes#121397) and stood still after errors (kubernetes#108837). It is pure.

// counts are the counters of apps/v1 StatefulSetStatus.
type counts struct {
	replicas, ready, available, current, updated int32
}

// countsOf counts pods as kubectl users know the counters: terminating pods still count as replicas, but no longer
// belong to a revision.
func countsOf(set *appsv1.StatefulSet, pods []*corev1.Pod, current, update string, now time.Time) counts {
	var c counts
	for _, pod := range pods {
		if _, ok := ordinalOf(set, pod.Name); !ok || pod.Status.Phase == "" {
			continue
		}
		c.replicas++
		if isReady(pod) {
			c.ready++
		}
		if available, _ := availability(pod, minReady(set), now); available {
			c.available++
		}
		if name := revisionOf(pod); !going(pod) && name != "" {
			if name == current {
				c.current++
			}
			if name == update {
				c.updated++
			}
		}
	}
	return c
}

// store writes the counters into a status.
func (c counts) store(status *appsv1.StatefulSetStatus) {
	status.Replicas, status.ReadyReplicas, status.AvailableReplicas = c.replicas, c.ready, c.available
	status.CurrentReplicas, status.UpdatedReplicas = c.current, c.updated
}
