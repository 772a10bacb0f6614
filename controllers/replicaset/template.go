package replicaset

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/pass"
)

// This file builds pods. It is pure.

// podFor builds a pod. It sets generateName, as if the API server had generated the name: tools recognise the pods of a
// parent by that.
func podFor(set *appsv1.ReplicaSet, kind schema.GroupVersionKind, name string) *corev1.Pod {
	pod := pass.PodFrom(&set.Spec.Template, set, kind)
	pod.Name, pod.GenerateName = name, set.Name+"-"
	return pod
}
