package statefulset

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file builds pods. It is pure.

// podFor builds the pod with an ordinal from one revision of the template.
func podFor(set *appsv1.StatefulSet, from source, ordinal int64) *corev1.Pod {
	pod := pass.PodFrom(from.template, set, kind)
	pod.Name = podName(set, ordinal)
	maps.Copy(pod.Labels, identityLabels(set, ordinal))
	pod.Labels[appsv1.StatefulSetRevisionLabel] = from.name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	pod.Spec.Volumes = volumes(set, pod.Spec.Volumes, ordinal)
	return pod
}

// volumes are the claims of an ordinal, and those volumes of the template that none of them replaces.
func volumes(set *appsv1.StatefulSet, template []corev1.Volume, ordinal int64) []corev1.Volume {
	var out []corev1.Volume
	replaced := map[string]bool{}
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &set.Spec.VolumeClaimTemplates[i]
		replaced[claim.Name] = true
		out = append(out, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, claim, ordinal)},
		}})
	}
	for _, v := range template {
		if !replaced[v.Name] {
			out = append(out, v)
		}
	}
	return out
}
