package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/pass"
)

// This file builds pods. It is pure.

// podFor builds a pod.
func podFor(set *appsv1.ReplicaSet, kind schema.GroupVersionKind, name string) *corev1.Pod {
	pod := pass.PodFrom(&set.Spec.Template, set, kind)
	pod.Name = name
	return pod
}
