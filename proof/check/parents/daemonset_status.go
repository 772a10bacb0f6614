package parents

import (
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	podutil "k8s.io/kubernetes/pkg/api/v1/pod"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file holds what a DaemonSet's status can say, and what it should.

// daemonImplausible finds counters that contradict each other.
func daemonImplausible(parent client.Object) []string {
	ds := as[appsv1.DaemonSet](parent)
	s := ds.Status
	var out []string
	for _, c := range []struct {
		name  string
		value int32
	}{
		{"currentNumberScheduled", s.CurrentNumberScheduled},
		{"desiredNumberScheduled", s.DesiredNumberScheduled},
		{"numberAvailable", s.NumberAvailable},
		{"numberMisscheduled", s.NumberMisscheduled},
		{"numberReady", s.NumberReady},
		{"numberUnavailable", s.NumberUnavailable},
		{"updatedNumberScheduled", s.UpdatedNumberScheduled},
	} {
		if c.value < 0 {
			out = append(out, fmt.Sprintf("%s is %d", c.name, c.value))
		}
	}
	atMost := func(lower string, a int32, upper string, b int32) {
		if a > b {
			out = append(out, fmt.Sprintf("%s is %d, and %s only %d", lower, a, upper, b))
		}
	}
	atMost("currentNumberScheduled", s.CurrentNumberScheduled, "desiredNumberScheduled", s.DesiredNumberScheduled)
	atMost("numberReady", s.NumberReady, "currentNumberScheduled", s.CurrentNumberScheduled)
	atMost("numberAvailable", s.NumberAvailable, "numberReady", s.NumberReady)
	atMost("updatedNumberScheduled", s.UpdatedNumberScheduled, "currentNumberScheduled", s.CurrentNumberScheduled)
	if s.NumberUnavailable != s.DesiredNumberScheduled-s.NumberAvailable {
		out = append(out, fmt.Sprintf("numberUnavailable is %d, with %d of %d available",
			s.NumberUnavailable, s.NumberAvailable, s.DesiredNumberScheduled))
	}
	if s.ObservedGeneration > ds.Generation {
		out = append(out, fmt.Sprintf("generation %d is observed, and there are only %d", s.ObservedGeneration, ds.Generation))
	}
	return out
}

// daemonMiscounted counts again. Of several pods on a node the status may have meant any; such nodes are left out of
// the counts of what their pods are like.
func daemonMiscounted(state *check.State, parent client.Object) []string {
	ds := as[appsv1.DaemonSet](parent)
	var desired, current, misscheduled, ready, updated, byContent int32
	crowded := false
	for _, u := range daemonUnits(state, parent) {
		switch {
		case u.Wanted:
			desired++
		case len(u.Children) > 0:
			misscheduled++
			continue
		}
		if len(u.Children) == 0 {
			continue
		}
		current++
		crowded = crowded || len(u.Children) > 1
		pod := as[corev1.Pod](u.Children[0])
		if podutil.IsPodReady(pod) {
			ready++
		}
		if podStrays(pod, ds.Spec.Template) == "" {
			updated++
			// It may count or not: nothing but its content says that it is up to date. Somebody else made it, or it has
			// all that is asked for and more: a toleration, say.
			if !daemonConforms(state, ds, pod) {
				byContent++
			}
		}
	}
	var out []string
	compare := func(name string, said, is int32) {
		if said != is {
			out = append(out, fmt.Sprintf("%s is %d and should be %d", name, said, is))
		}
	}
	s := ds.Status
	compare("desiredNumberScheduled", s.DesiredNumberScheduled, desired)
	compare("currentNumberScheduled", s.CurrentNumberScheduled, current)
	compare("numberMisscheduled", s.NumberMisscheduled, misscheduled)
	if !crowded {
		compare("numberReady", s.NumberReady, ready)
		compare("updatedNumberScheduled", s.UpdatedNumberScheduled, max(updated-byContent, min(s.UpdatedNumberScheduled, updated)))
	}
	return out
}

// daemonServed counts the nodes that want a pod and have one that is ready. Of several pods on a node the status may
// have meant any.
func daemonServed(state *check.State, parent client.Object) (said, counted int32, ok bool) {
	ds := as[appsv1.DaemonSet](parent)
	for _, u := range daemonUnits(state, parent) {
		if len(u.Children) > 1 {
			return 0, 0, false
		}
		if u.Wanted && len(u.Children) == 1 && podutil.IsPodReady(as[corev1.Pod](u.Children[0])) {
			counted++
		}
	}
	return ds.Status.NumberAvailable, counted, true
}

// daemonConforms reports whether a pod says that it comes from a revision that holds what the DaemonSet asks for.
func daemonConforms(state *check.State, ds *appsv1.DaemonSet, pod *corev1.Pod) bool {
	hash := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
	return hash != "" && slices.ContainsFunc(state.Owned(kinds.Revision.GVR, ds.UID), func(r client.Object) bool {
		snapshot, err := snapshotOf(r)
		return err == nil && snapshot == defaulted(ds.Spec.Template) && r.GetLabels()[appsv1.DefaultDaemonSetUniqueLabelKey] == hash
	})
}
