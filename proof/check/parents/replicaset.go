package parents

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a ReplicaSet is, and what a ReplicationController is: the same with other types. Their
// pods have no places, only a number, and they keep no history.

// ReplicaSet describes apps/v1 ReplicaSets.
func ReplicaSet() check.Kind { return replicated(kinds.ReplicaSet) }

// ReplicationController describes v1 ReplicationControllers.
func ReplicationController() check.Kind { return replicated(kinds.ReplicationController) }

func replicated(k kinds.Kind) check.Kind {
	return check.Kind{
		Kind:     k,
		Labelled: func(client.Object) bool { return false },
		StraysNow: func(child, parent client.Object) string {
			template := asReplicaSet(parent).Spec.Template
			return strays(as[corev1.Pod](child), content.Tree(template.DeepCopy()))
		},
		Units: func(*check.State, client.Object) []check.Unit { return nil },
		Ended: podEnded,
		Available: func(child, parent client.Object, at time.Time) bool {
			return podServes(child, asReplicaSet(parent).Spec.MinReadySeconds, at)
		},
		Budget:             func(client.Object, int) check.Budget { return check.Budget{} },
		ObservedGeneration: func(o client.Object) int64 { return asReplicaSet(o).Status.ObservedGeneration },
		Complete:           func(client.Object) bool { return false }, // there are no rollouts
		Implausible:        replicatedImplausible,
		Miscounted:         replicatedMiscounted,
		Served:             replicatedServed,
		StatusRevisions:    func(client.Object) []string { return nil },
		Limit:              func(client.Object) int { return 0 },
		Most:               func(parent client.Object) int { return int(replicasOr1(asReplicaSet(parent).Spec.Replicas)) },
	}
}

// asReplicaSet returns a parent of either kind as a ReplicaSet. It shares the parent's content.
func asReplicaSet(o client.Object) *appsv1.ReplicaSet {
	rc, ok := o.(*corev1.ReplicationController)
	if !ok {
		return as[appsv1.ReplicaSet](o)
	}
	rs := &appsv1.ReplicaSet{
		ObjectMeta: rc.ObjectMeta,
		Spec: appsv1.ReplicaSetSpec{
			Replicas: rc.Spec.Replicas, MinReadySeconds: rc.Spec.MinReadySeconds, Selector: &metav1.LabelSelector{MatchLabels: rc.Spec.Selector},
		},
		Status: appsv1.ReplicaSetStatus{
			Replicas: rc.Status.Replicas, FullyLabeledReplicas: rc.Status.FullyLabeledReplicas, ReadyReplicas: rc.Status.ReadyReplicas,
			AvailableReplicas: rc.Status.AvailableReplicas, ObservedGeneration: rc.Status.ObservedGeneration,
		},
	}
	if rc.Spec.Template != nil {
		rs.Spec.Template = *rc.Spec.Template
	}
	return rs
}

// replicatedImplausible finds counters that contradict each other.
func replicatedImplausible(parent client.Object) []string {
	s := asReplicaSet(parent).Status
	var c counters
	c.negative("replicas", s.Replicas)
	c.negative("fullyLabeledReplicas", s.FullyLabeledReplicas)
	c.negative("readyReplicas", s.ReadyReplicas)
	c.negative("availableReplicas", s.AvailableReplicas)
	if s.TerminatingReplicas != nil {
		c.negative("terminatingReplicas", *s.TerminatingReplicas)
	}
	c.atMost("fullyLabeledReplicas", s.FullyLabeledReplicas, "replicas", s.Replicas)
	c.atMost("readyReplicas", s.ReadyReplicas, "replicas", s.Replicas)
	c.atMost("availableReplicas", s.AvailableReplicas, "readyReplicas", s.ReadyReplicas)
	c.generation(parent, s.ObservedGeneration)
	return c.found
}

// replicatedMiscounted counts again, all but what depends on the time.
func replicatedMiscounted(state *check.State, parent client.Object) []string {
	rs := asReplicaSet(parent)
	s := rs.Status
	template := labels.SelectorFromSet(rs.Spec.Template.Labels)
	var all, labelled, ready, terminating int32
	for _, o := range state.Owned(kinds.Pod.GVR, rs.UID) {
		pod := as[corev1.Pod](o)
		if podEnded(pod) {
			continue
		}
		if pod.DeletionTimestamp != nil {
			terminating++
			continue
		}
		all++
		if template.Matches(labels.Set(pod.Labels)) {
			labelled++
		}
		if podutil.IsPodReady(pod) {
			ready++
		}
	}
	var c counters
	c.is("replicas", s.Replicas, all)
	c.is("fullyLabeledReplicas", s.FullyLabeledReplicas, labelled)
	c.is("readyReplicas", s.ReadyReplicas, ready)
	if s.TerminatingReplicas != nil {
		c.is("terminatingReplicas", *s.TerminatingReplicas, terminating)
	}
	if rs.Spec.MinReadySeconds == 0 {
		c.is("availableReplicas", s.AvailableReplicas, ready)
	}
	return c.found
}

// replicatedServed counts the pods that are ready.
func replicatedServed(state *check.State, parent client.Object) (said, counted int32, ok bool) {
	for _, o := range state.Owned(kinds.Pod.GVR, parent.GetUID()) {
		if pod := as[corev1.Pod](o); pod.DeletionTimestamp == nil && !podEnded(pod) && podutil.IsPodReady(pod) {
			counted++
		}
	}
	return asReplicaSet(parent).Status.AvailableReplicas, counted, true
}
