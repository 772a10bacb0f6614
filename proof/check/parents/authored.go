package parents

import (
	"cmp"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a parent is whose controller somebody made with package builder: a StatefulSet, for
// its type is at hand, of which that controller reads the template, the number of replicas and the limits. Its pods are
// rolled from the highest ordinal down.

// Authored describes such parents.
func Authored() check.Kind {
	set := func(o client.Object) *appsv1.StatefulSet { return as[appsv1.StatefulSet](o) }
	k := StatefulSet()
	k.Controller, k.Claims = "", check.Kind{}.Claims
	k.Names = namesByHash
	k.Named, k.Ordered, k.Alone, k.Starting, k.Holds, k.Claimed, k.Outlives = nil, nil, nil, nil, nil, nil, nil
	k.Current, k.Update = nil, nil
	k.Units, k.Returns = authoredUnits, true
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
	return counted(k)
}

// Surging describes such parents whose pods are named by revision, and have a surge.
func Surging() check.Kind {
	k := Authored()
	k.Units, k.Most = surgingUnits, nil // there may be more of them, for a while
	k.Budget = func(parent client.Object, _ int) check.Budget {
		spec, b := as[appsv1.StatefulSet](parent).Spec, check.Budget{}
		if spec.Ordinals != nil {
			b.MaxSurge = int(spec.Ordinals.Start)
		}
		if u := spec.UpdateStrategy.RollingUpdate; u != nil && u.MaxUnavailable != nil && u.MaxUnavailable.IntValue() != 1 {
			b.MaxUnavailable = u.MaxUnavailable.IntValue()
		}
		if b == (check.Budget{}) {
			b.MaxUnavailable = 1
		}
		return b
	}
	return counted(k)
}

// counted compares the counters of the status with the places of a kind.
func counted(k check.Kind) check.Kind {
	units := k.Units
	k.Miscounted = func(s *check.State, o client.Object) []string {
		status, c := as[appsv1.StatefulSet](o).Status, counters{}
		if all, ready, ok := authoredCounts(units(s, o)); ok {
			c.is("replicas", status.Replicas, all)
			c.is("readyReplicas", status.ReadyReplicas, ready)
		}
		return c.found
	}
	k.Served = func(s *check.State, o client.Object) (said, counted int32, ok bool) {
		_, ready, ok := authoredCounts(units(s, o))
		return as[appsv1.StatefulSet](o).Status.AvailableReplicas, ready, ok
	}
	return k
}

// authoredUnits are the pods that are asked for and those that are there, in the order of the rollout.
func authoredUnits(s *check.State, parent client.Object) []check.Unit {
	return unitsAt(s, as[appsv1.StatefulSet](parent), 0, client.Object.GetName)
}

// surgingUnits are the same with the places that pods say they are at: one without that is at the place of its name.
func surgingUnits(s *check.State, parent client.Object) []check.Unit {
	set := as[appsv1.StatefulSet](parent)
	return unitsAt(s, set, partitionOf(set), func(pod client.Object) string {
		return cmp.Or(pod.GetAnnotations()["cairn.dev/place"], pod.GetName())
	})
}

func unitsAt(s *check.State, set *appsv1.StatefulSet, partition int, place func(pod client.Object) string) []check.Unit {
	there := map[string][]client.Object{}
	taken := map[string]bool{}
	for _, o := range s.List(kinds.Pod.GVR, set.Namespace) {
		if ref := metav1.GetControllerOfNoCopy(o); ref == nil || ref.UID != set.UID {
			taken[place(o)] = taken[place(o)] || strange(s, set, o.GetName())
		}
	}
	owned := s.Owned(kinds.Pod.GVR, set.UID)
	for _, o := range owned {
		there[place(o)] = append(there[place(o)], o)
	}
	var out []check.Unit
	for n := int(replicasOr1(set.Spec.Replicas)) - 1; n >= 0; n-- {
		name := set.Name + "-" + strconv.Itoa(n)
		out = append(out, check.Unit{
			Name: name, Wanted: true, MayStay: true, Guarded: n < partition, Children: there[name], Taken: taken[name],
		})
		delete(there, name)
	}
	for _, o := range owned {
		if children, ok := there[place(o)]; ok {
			out = append(out, check.Unit{Name: place(o), Children: children})
			delete(there, place(o))
		}
	}
	return out
}

// authoredCounts counts the places that are asked for, and those where one serves. While a pod is terminating nothing
// can be said.
func authoredCounts(units []check.Unit) (all, ready int32, ok bool) {
	for _, u := range units {
		some, serves := false, false
		for _, o := range u.Children {
			pod := as[corev1.Pod](o)
			if pod.DeletionTimestamp != nil {
				return 0, 0, false
			}
			some, serves = u.Wanted, serves || u.Wanted && podutil.IsPodReady(pod)
		}
		if some {
			all++
		}
		if serves {
			ready++
		}
	}
	return all, ready, true
}
