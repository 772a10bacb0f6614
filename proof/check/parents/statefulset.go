package parents

import (
	"cmp"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/kubernetes/pkg/controller/history"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/kinds"
)

// This file tells the rules what a StatefulSet is. Its pods have ordinals; below the partition only the current
// revision may be.

// StatefulSet describes apps/v1 StatefulSets.
func StatefulSet() check.Kind {
	k := check.Kind{
		Kind: kinds.StatefulSet,
		Names: func(child, revision client.Object) bool {
			return child.GetLabels()[appsv1.StatefulSetRevisionLabel] == revision.GetName()
		},
		Labelled: func(child client.Object) bool { return child.GetLabels()[appsv1.StatefulSetRevisionLabel] != "" },
		Strays: func(child, revision client.Object) string {
			template, err := TemplateIn(as[appsv1.ControllerRevision](revision))
			if err != nil {
				return "" // nobody knows what it asks for
			}
			return memberStrays(as[corev1.Pod](child), template)
		},
		StraysNow: func(child, parent client.Object) string {
			return memberStrays(as[corev1.Pod](child), as[appsv1.StatefulSet](parent).Spec.Template)
		},
		Number: numberOf, Snapshot: snapshotOf, Named: statefulRevisionName,
		Target: func(parent client.Object) string { return defaulted(as[appsv1.StatefulSet](parent).Spec.Template) },
		Units:  statefulUnits,
		Ended:  podEnded,
		Available: func(child, parent client.Object, at time.Time) bool {
			return podServes(child, as[appsv1.StatefulSet](parent).Spec.MinReadySeconds, at)
		},
		Budget: statefulBudget,
		Limit: func(parent client.Object) int {
			return limitOr10(as[appsv1.StatefulSet](parent).Spec.RevisionHistoryLimit)
		},
		Most: func(parent client.Object) int { return int(replicasOr1(as[appsv1.StatefulSet](parent).Spec.Replicas)) },
		Ordered: func(parent client.Object) bool {
			return as[appsv1.StatefulSet](parent).Spec.PodManagementPolicy != appsv1.ParallelPodManagement
		},
		Alone:    func(parent client.Object) bool { return recreates(as[appsv1.StatefulSet](parent)) },
		Starting: podStarts,
		Holds:    func(parent client.Object) bool { return partitionOf(as[appsv1.StatefulSet](parent)) > 0 },
		Claimed:  claimed, Outlives: outlives,
	}
	return withStatefulStatus(k)
}

// podStarts reports whether a pod was never ready, by the time of its condition, and nothing says that it never will
// be. The annotation may say that such a pod is replaced all the same.
func podStarts(child, parent client.Object) bool {
	pod := as[corev1.Pod](child)
	if value := parent.GetAnnotations()["cairn.dev/replace-never-ready"]; value == "true" || value == "always" {
		return false
	}
	for _, c := range pod.Status.Conditions {
		switch {
		case c.Type == corev1.PodScheduled && c.Reason == corev1.PodReasonUnschedulable:
			return false
		case c.Type != corev1.PodReady:
		case c.Status == corev1.ConditionTrue, pod.Status.StartTime == nil, !c.LastTransitionTime.Equal(pod.Status.StartTime):
			return false // it is ready, or was, as far as one can tell
		}
	}
	containers := slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses)
	return !slices.ContainsFunc(containers, func(c corev1.ContainerStatus) bool {
		waits := c.State.Waiting
		return c.State.Terminated != nil || waits != nil && waits.Reason != "ContainerCreating" && waits.Reason != "PodInitializing"
	})
}

// ordinalOf returns the ordinal in the name of what a StatefulSet makes, "NAME-7".
func ordinalOf(set *appsv1.StatefulSet, name string) (int, bool) {
	text, ok := strings.CutPrefix(name, set.Name+"-")
	n, err := strconv.Atoi(text)
	return n, ok && err == nil && n >= 0
}

// ordinals are the first ordinal that a StatefulSet asks for, and the one after the last.
func ordinals(set *appsv1.StatefulSet) (from, to int) {
	if set.Spec.Ordinals != nil {
		from = int(set.Spec.Ordinals.Start)
	}
	return from, from + int(replicasOr1(set.Spec.Replicas))
}

func statefulRevisionName(parent, revision client.Object, collisionCount *int32) string {
	if collisionCount == nil {
		collisionCount = new(int32)
	}
	return history.ControllerRevisionName(parent.GetName(),
		history.HashControllerRevision(as[appsv1.ControllerRevision](revision), collisionCount))
}

// statefulUnits are the ordinals that are asked for and those that have a pod, in their order.
func statefulUnits(s *check.State, parent client.Object) []check.Unit {
	set := as[appsv1.StatefulSet](parent)
	from, to := ordinals(set)
	there := map[int][]client.Object{}
	for n := from; n < to; n++ {
		there[n] = nil
	}
	for _, o := range s.Owned(kinds.Pod.GVR, set.UID) {
		if n, ok := ordinalOf(set, o.GetName()); ok {
			there[n] = append(there[n], o)
		}
	}
	guard := from + partitionOf(set)
	lost := currentIsLost(s, set)
	var out []check.Unit
	for _, n := range slices.Sorted(maps.Keys(there)) {
		wanted := n >= from && n < to
		u := check.Unit{
			Name: set.Name + "-" + strconv.Itoa(n), Wanted: wanted, MayStay: wanted, Guarded: wanted && n < guard, Children: there[n],
		}
		empty := wanted && len(u.Children) == 0
		u.Vacant = empty && u.Guarded && lost
		u.Taken = empty && !u.Vacant && strange(s, set, u.Name)
		out = append(out, u)
	}
	return out
}

// strange reports whether a pod that the set does not own, and may not adopt, has the name.
func strange(s *check.State, set *appsv1.StatefulSet, name string) bool {
	pod := s.Get(check.Key{Resource: kinds.Pod.GVR, Namespace: set.Namespace, Name: name})
	if pod == nil {
		return false
	}
	selector, err := metav1.LabelSelectorAsSelector(set.Spec.Selector)
	return metav1.GetControllerOfNoCopy(pod) != nil || err != nil || !selector.Matches(labels.Set(pod.GetLabels()))
}

// currentIsLost reports whether the pods that are not updated yet come from a revision that the set does not have any
// more, or that nobody can read. What is to be made from it cannot be made: nothing else may take its place.
func currentIsLost(s *check.State, set *appsv1.StatefulSet) bool {
	name := set.Status.CurrentRevision
	readable := func(r client.Object) bool {
		_, err := snapshotOf(r)
		return r.GetName() == name && err == nil
	}
	return name != "" && name != set.Status.UpdateRevision && !slices.ContainsFunc(s.Owned(kinds.Revision.GVR, set.UID), readable)
}

// recreates reports whether all pods are deleted before one of the update revision is created.
func recreates(set *appsv1.StatefulSet) bool {
	return set.Spec.UpdateStrategy.Type == appsv1.RecreateStatefulSetStrategyType
}

// partitionOf is how many pods, from the first ordinal on, stay at the current revision.
func partitionOf(set *appsv1.StatefulSet) int {
	u := set.Spec.UpdateStrategy
	if u.Type == appsv1.OnDeleteStatefulSetStrategyType || u.RollingUpdate == nil || u.RollingUpdate.Partition == nil {
		return 0
	}
	return int(*u.RollingUpdate.Partition)
}

// statefulBudget is one pod at a time, unless the spec says more. A percentage is rounded down, but not to none.
func statefulBudget(parent client.Object, wanted int) check.Budget {
	u := as[appsv1.StatefulSet](parent).Spec.UpdateStrategy
	switch {
	case u.Type == appsv1.OnDeleteStatefulSetStrategyType:
		return check.Budget{}
	case u.Type == appsv1.RecreateStatefulSetStrategyType:
		return check.Budget{MaxUnavailable: wanted}
	case u.RollingUpdate == nil || u.RollingUpdate.MaxUnavailable == nil:
		return check.Budget{MaxUnavailable: 1}
	}
	n, err := intstr.GetScaledValueFromIntOrPercent(u.RollingUpdate.MaxUnavailable, wanted, false)
	if err != nil {
		return check.Budget{MaxUnavailable: 1}
	}
	return check.Budget{MaxUnavailable: max(1, n)}
}

// memberStrays compares a pod of a StatefulSet with a template. The controller gives it its name as host name, and puts
// its claims in the place of volumes of the same name.
func memberStrays(pod *corev1.Pod, template corev1.PodTemplateSpec) string {
	template.Spec.Hostname, template.Spec.Subdomain = "", ""
	own := map[string]bool{}
	for _, v := range pod.Spec.Volumes {
		own[v.Name] = v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == v.Name+"-"+pod.Name
	}
	template.Spec.Volumes = slices.DeleteFunc(slices.Clone(template.Spec.Volumes), func(v corev1.Volume) bool { return own[v.Name] })
	return strays(pod, content.Tree(template.DeepCopy()))
}

// replicasOr1 is a number of replicas, with the default of the API.
func replicasOr1(replicas *int32) int32 { return *cmp.Or(replicas, new(int32(1))) }
