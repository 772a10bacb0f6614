package statefulset

import (
	"fmt"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// This file says which pod is which: names, ordinals, and the labels that repeat them. It is pure.

// podName is the name of the pod with an ordinal.
func podName(set *appsv1.StatefulSet, ordinal int) string {
	return set.Name + "-" + strconv.Itoa(ordinal)
}

// ordinalOf reads the ordinal from the name of a pod of set. ok is false for every name that [podName] never gives, like
// one with a leading zero.
func ordinalOf(set *appsv1.StatefulSet, name string) (ordinal int, ok bool) {
	digits, ours := strings.CutPrefix(name, set.Name+"-")
	n, err := strconv.ParseInt(digits, 10, 32)
	if !ours || err != nil || n < 0 || podName(set, int(n)) != name {
		return 0, false
	}
	return int(n), true
}

// ordinals returns the first ordinal that set asks for, and how many it asks for.
func ordinals(set *appsv1.StatefulSet) (start, count int) {
	count = 1 // the default of apps/v1; the API server fills it in
	if set.Spec.Replicas != nil {
		count = max(0, int(*set.Spec.Replicas))
	}
	if set.Spec.Ordinals != nil {
		start = int(set.Spec.Ordinals.Start)
	}
	return start, count
}

// inRange reports whether set asks for a pod with that ordinal.
func inRange(set *appsv1.StatefulSet, ordinal int) bool {
	start, count := ordinals(set)
	return ordinal >= start && ordinal < start+count
}

// identityLabels are the labels by which a pod says who it is.
func identityLabels(set *appsv1.StatefulSet, ordinal int) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: podName(set, ordinal),
		appsv1.PodIndexLabel:           strconv.Itoa(ordinal),
	}
}

// misses returns those of want that pod does not carry, nil if it carries all.
func misses(pod *corev1.Pod, want map[string]string) map[string]string {
	var out map[string]string
	for k, v := range want {
		if pod.Labels[k] != v {
			if out == nil {
				out = map[string]string{}
			}
			out[k] = v
		}
	}
	return out
}

// hasStorage reports whether a pod mounts the claims of its ordinal. One that was adopted may not; volumes cannot change.
func hasStorage(set *appsv1.StatefulSet, ordinal int, pod *corev1.Pod) bool {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		found := false
		for _, v := range pod.Spec.Volumes {
			found = found || v.Name == template.Name && v.PersistentVolumeClaim != nil &&
				v.PersistentVolumeClaim.ClaimName == claimName(set, template, ordinal)
		}
		if !found {
			return false
		}
	}
	return true
}

// adoptable refuses orphans that cannot be pods of set by their name, whatever their labels are.
func adoptable(set *appsv1.StatefulSet, name string) error {
	if _, ok := ordinalOf(set, name); !ok {
		return fmt.Errorf("%s is no name of a pod of StatefulSet %s", name, set.Name)
	}
	return nil
}
