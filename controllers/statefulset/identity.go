package statefulset

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

// This file says which pod is which: names, ordinals, and the labels that repeat them. It is pure.

// podName is the name of the pod with an ordinal.
func podName(set *appsv1.StatefulSet, ordinal int64) string {
	return set.Name + "-" + decimal(ordinal)
}

func decimal(ordinal int64) string { return strconv.FormatInt(ordinal, 10) }

// ordinalOf reads the ordinal from the name of a pod of set. ok is false for every name that [podName] never gives,
// like one with a leading zero. Ordinals have 64 bits everywhere: the first one may be the largest number that the API
// allows, and the others follow it. A set has no more than 32 bits of them: a pod with a larger number is a user's, and
// no surplus one.
func ordinalOf(set *appsv1.StatefulSet, name string) (ordinal int64, ok bool) {
	digits, ours := strings.CutPrefix(name, set.Name+"-")
	n, err := strconv.ParseInt(digits, 10, 64)
	start, _ := ordinals(set)
	if !ours || err != nil || n < 0 || decimal(n) != digits || n > start+math.MaxInt32 {
		return 0, false
	}
	return n, true
}

// ordinals returns the first ordinal that set asks for, and how many it asks for.
func ordinals(set *appsv1.StatefulSet) (start, count int64) {
	count = 1 // the default of apps/v1; the API server fills it in
	if set.Spec.Replicas != nil {
		count = max(0, int64(*set.Spec.Replicas))
	}
	if set.Spec.Ordinals != nil {
		start = int64(set.Spec.Ordinals.Start)
	}
	return start, count
}

// inRange reports whether set asks for a pod with that ordinal.
func inRange(set *appsv1.StatefulSet, ordinal int64) bool {
	start, count := ordinals(set)
	return ordinal >= start && ordinal < start+count
}

// identityLabels are the labels by which a pod says who it is.
func identityLabels(set *appsv1.StatefulSet, ordinal int64) map[string]string {
	return map[string]string{
		appsv1.StatefulSetPodNameLabel: podName(set, ordinal),
		appsv1.PodIndexLabel:           decimal(ordinal),
	}
}

// carriesIdentity reports whether the pod of a slot has them, as nearly all pods do in nearly all passes.
func carriesIdentity(s *slot) bool {
	return s.pod.Labels[appsv1.StatefulSetPodNameLabel] == s.name && s.pod.Labels[appsv1.PodIndexLabel] == decimal(s.ordinal)
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

func mounts(pod *corev1.Pod, claim string) bool {
	return slices.ContainsFunc(pod.Spec.Volumes, func(v corev1.Volume) bool {
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim
	})
}

// storageDiffers says in what the volumes of a pod differ from the claims of its ordinal, in one clause; an empty
// string means that it mounts them all.
func storageDiffers(set *appsv1.StatefulSet, ordinal int64, pod *corev1.Pod) string {
	for i := range set.Spec.VolumeClaimTemplates {
		template := &set.Spec.VolumeClaimTemplates[i]
		want, mounts := claimName(set, template, ordinal), ""
		for _, v := range pod.Spec.Volumes {
			if v.Name == template.Name && v.PersistentVolumeClaim != nil {
				mounts = v.PersistentVolumeClaim.ClaimName
			}
		}
		switch mounts {
		case want:
		case "":
			return fmt.Sprintf("it does not mount claim %s", want)
		default:
			return fmt.Sprintf("it mounts claim %s, not %s", mounts, want)
		}
	}
	return ""
}
