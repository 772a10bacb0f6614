package parents

import (
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/kinds"
)

// This file tells the rules what a parent is whose controller somebody made with package builder: a StatefulSet, for its type is
// at hand, of which that controller reads the template, the number of replicas and the limits. Its pods are rolled from the
// highest ordinal down.

// Authored describes such parents.
func Authored() check.Kind {
	set := func(o client.Object) *appsv1.StatefulSet { return as[appsv1.StatefulSet](o) }
	k := StatefulSet()
	k.Controller, k.Claims = "", check.Kind{}.Claims
	k.Names = func(child, revision client.Object) bool {
		hash := child.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
		return hash != "" && hash == revision.GetLabels()[appsv1.ControllerRevisionHashLabelKey]
	}
	k.Named, k.Ordered, k.Starting, k.Lacks, k.Holds, k.Claimed, k.Outlives = nil, nil, nil, nil, nil, nil, nil
	k.Current, k.Update = nil, nil
	k.Units = authoredUnits
	k.Ended = func(child client.Object) bool { return as[corev1.Pod](child).Status.Phase == corev1.PodFailed }
	k.StatusRevisions = func(client.Object) []string { return nil } // what a status names is its author's to say
	k.Complete = func(o client.Object) bool {
		s, replicas := set(o).Status, replicasOr1(set(o).Spec.Replicas)
		return s.ObservedGeneration == o.GetGeneration() &&
			s.UpdatedReplicas == replicas && s.AvailableReplicas == replicas && s.Replicas == replicas
	}
	k.Implausible = func(o client.Object) []string {
		s := set(o).Status
		var c counters
		c.atMost("readyReplicas", s.ReadyReplicas, "replicas", s.Replicas)
		c.atMost("availableReplicas", s.AvailableReplicas, "readyReplicas", s.ReadyReplicas)
		c.atMost("updatedReplicas", s.UpdatedReplicas, "replicas", s.Replicas)
		c.generation(o, s.ObservedGeneration)
		return c.found
	}
	k.Miscounted = func(s *check.State, o client.Object) []string {
		status, c := set(o).Status, counters{}
		if all, ready, ok := authoredCounts(s, o); ok {
			c.is("replicas", status.Replicas, all)
			c.is("readyReplicas", status.ReadyReplicas, ready)
		}
		return c.found
	}
	k.Served = func(s *check.State, o client.Object) (said, counted int32, ok bool) {
		_, ready, ok := authoredCounts(s, o)
		return set(o).Status.AvailableReplicas, ready, ok
	}
	return k
}

// authoredUnits are the pods that are asked for and those that are there, in the order of the rollout.
func authoredUnits(s *check.State, parent client.Object) []check.Unit {
	set := as[appsv1.StatefulSet](parent)
	there := map[string][]client.Object{}
	for _, o := range s.Owned(kinds.Pod.GVR, set.UID) {
		there[o.GetName()] = append(there[o.GetName()], o)
	}
	var out []check.Unit
	for n := int(replicasOr1(set.Spec.Replicas)) - 1; n >= 0; n-- {
		name := set.Name + "-" + strconv.Itoa(n)
		out = append(out, check.Unit{
			Name: name, Wanted: true, MayStay: true, Children: there[name], Taken: len(there[name]) == 0 && strange(s, set, name),
		})
		delete(there, name)
	}
	for _, o := range s.Owned(kinds.Pod.GVR, set.UID) {
		if children, ok := there[o.GetName()]; ok {
			out = append(out, check.Unit{Name: o.GetName(), Children: children})
		}
	}
	return out
}

// authoredCounts counts the pods that are asked for. While one is terminating nothing can be said.
func authoredCounts(s *check.State, parent client.Object) (all, ready int32, ok bool) {
	for _, u := range authoredUnits(s, parent) {
		for _, o := range u.Children {
			pod := as[corev1.Pod](o)
			if pod.DeletionTimestamp != nil {
				return 0, 0, false
			}
			if u.Wanted {
				all++
			}
			if u.Wanted && podutil.IsPodReady(pod) {
				ready++
			}
		}
	}
	return all, ready, true
}
