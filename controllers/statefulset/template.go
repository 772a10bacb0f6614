package statefulset

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// This file builds pods. It is pure.

// podFor builds the pod with an ordinal from one revision of the template.
func podFor(set *appsv1.StatefulSet, from source, ordinal int64) *corev1.Pod {
	template := from.template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            podName(set, ordinal),
			Namespace:       set.Namespace,
			Labels:          map[string]string{},
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	maps.Copy(pod.Labels, identityLabels(set, ordinal))
	pod.Labels[appsv1.StatefulSetRevisionLabel] = from.name
	pod.Spec.Hostname, pod.Spec.Subdomain = pod.Name, set.Spec.ServiceName
	pod.Spec.Volumes = volumes(set, template, ordinal)
	return pod
}

// volumes are the claims of an ordinal, and those volumes of the template that none of them replaces.
func volumes(set *appsv1.StatefulSet, template *corev1.PodTemplateSpec, ordinal int64) []corev1.Volume {
	var out []corev1.Volume
	replaced := map[string]bool{}
	for i := range set.Spec.VolumeClaimTemplates {
		claim := &set.Spec.VolumeClaimTemplates[i]
		replaced[claim.Name] = true
		out = append(out, corev1.Volume{Name: claim.Name, VolumeSource: corev1.VolumeSource{
			PersistentVolumeClaim: &corev1.PersistentVolumeClaimVolumeSource{ClaimName: claimName(set, claim, ordinal)},
		}})
	}
	for _, v := range template.Spec.Volumes {
		if !replaced[v.Name] {
			out = append(out, v)
		}
	}
	return out
}
