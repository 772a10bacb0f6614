package replicaset

import (
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file builds pods. It is pure.

// podFor builds a pod. It sets generateName, as if the API server had generated the name: tools recognise the pods of a
// parent by that.
func podFor(set *appsv1.ReplicaSet, kind schema.GroupVersionKind, name string) *corev1.Pod {
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{
			Name:            name,
			GenerateName:    set.Name + "-",
			Namespace:       set.Namespace,
			Labels:          map[string]string{},
			Annotations:     template.Annotations,
			Finalizers:      template.Finalizers,
			OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)},
		},
		Spec: template.Spec,
	}
	maps.Copy(pod.Labels, template.Labels)
	return pod
}
