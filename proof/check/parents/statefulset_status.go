package parents

import (
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file holds what a StatefulSet's status can say, and what it should.

func withStatefulStatus(k check.Kind) check.Kind {
	status := func(o client.Object) appsv1.StatefulSetStatus { return as[appsv1.StatefulSet](o).Status }
	k.ObservedGeneration = func(o client.Object) int64 { return status(o).ObservedGeneration }
	k.Current = func(o client.Object) string { return status(o).CurrentRevision }
	k.Update = func(o client.Object) string { return status(o).UpdateRevision }
	k.StatusRevisions = func(o client.Object) []string {
		names := []string{k.Current(o), k.Update(o)}
		return slices.DeleteFunc(names, func(name string) bool { return name == "" })
	}
	k.Complete = func(o client.Object) bool {
		s, replicas := status(o), replicasOr1(as[appsv1.StatefulSet](o).Spec.Replicas)
		return s.ObservedGeneration == o.GetGeneration() && s.CurrentRevision == s.UpdateRevision && s.CurrentRevision != "" &&
			s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas &&
			s.Replicas == replicas // pods that are not asked for are among those that are updated
	}
	k.Implausible, k.Miscounted, k.Served = statefulImplausible, statefulMiscounted, statefulServed
	return k
}

// statefulImplausible finds counters that contradict each other.
func statefulImplausible(parent client.Object) []string {
	s := as[appsv1.StatefulSet](parent).Status
	var c counters
	c.negative("replicas", s.Replicas)
	c.negative("readyReplicas", s.ReadyReplicas)
	c.negative("availableReplicas", s.AvailableReplicas)
	c.negative("currentReplicas", s.CurrentReplicas)
	c.negative("updatedReplicas", s.UpdatedReplicas)
	c.atMost("readyReplicas", s.ReadyReplicas, "replicas", s.Replicas)
	c.atMost("availableReplicas", s.AvailableReplicas, "readyReplicas", s.ReadyReplicas)
	if s.CurrentRevision == s.UpdateRevision {
		c.same("currentReplicas", s.CurrentReplicas, "updatedReplicas", s.UpdatedReplicas, "one revision is both")
		c.atMost("updatedReplicas", s.UpdatedReplicas, "replicas", s.Replicas)
	} else {
		c.atMost("currentReplicas and updatedReplicas together", s.CurrentReplicas+s.UpdatedReplicas, "replicas", s.Replicas)
	}
	c.generation(parent, s.ObservedGeneration)
	return c.found
}

// statefulMiscounted counts again. A pod that is going may have been counted or not, so while there is one nothing is
// compared; nor is what depends on the time.
func statefulMiscounted(state *check.State, parent client.Object) []string {
	set := as[appsv1.StatefulSet](parent)
	s := set.Status
	var all, ready, current, updated int32
	for _, o := range state.Owned(kinds.Pod.GVR, set.UID) {
		pod := as[corev1.Pod](o)
		if pod.DeletionTimestamp != nil {
			return nil
		}
		all++
		if pod.Status.Phase == corev1.PodRunning && podutil.IsPodReady(pod) {
			ready++
		}
		if name := pod.Labels[appsv1.StatefulSetRevisionLabel]; name != "" {
			if name == s.CurrentRevision {
				current++
			}
			if name == s.UpdateRevision {
				updated++
			}
		}
	}
	var c counters
	c.is("replicas", s.Replicas, all)
	c.is("readyReplicas", s.ReadyReplicas, ready)
	c.is("currentReplicas", s.CurrentReplicas, current)
	c.is("updatedReplicas", s.UpdatedReplicas, updated)
	if set.Spec.MinReadySeconds == 0 {
		c.is("availableReplicas", s.AvailableReplicas, ready)
	}
	return c.found
}

// statefulServed counts the pods that are ready, unless one is terminating.
func statefulServed(state *check.State, parent client.Object) (said, counted int32, ok bool) {
	set := as[appsv1.StatefulSet](parent)
	for _, o := range state.Owned(kinds.Pod.GVR, set.UID) {
		pod := as[corev1.Pod](o)
		if pod.DeletionTimestamp != nil {
			return 0, 0, false
		}
		if pod.Status.Phase == corev1.PodRunning && podutil.IsPodReady(pod) {
			counted++
		}
	}
	return set.Status.AvailableReplicas, counted, true
}
