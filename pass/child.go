package pass

import (
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds what all kinds do alike with single objects. It is pure.

// PodFrom returns a pod without a name that parent controls, from a template. kind is the kind of parent. The pod
// shares nothing with the template, and its labels are not nil. Its generateName is the name of the parent and a
// hyphen. Istio and Cilium recognize the workload of a pod by it, even if the pod has a name of its own.
func PodFrom(template *corev1.PodTemplateSpec, parent client.Object, kind schema.GroupVersionKind) *corev1.Pod {
	from := template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: metav1.ObjectMeta{
		GenerateName: parent.GetName() + "-", Namespace: parent.GetNamespace(),
		Labels: from.Labels, Annotations: from.Annotations, Finalizers: from.Finalizers,
		OwnerReferences: []metav1.OwnerReference{*metav1.NewControllerRef(parent, kind)},
	}, Spec: from.Spec}
	if pod.Labels == nil {
		pod.Labels = map[string]string{}
	}
	return pod
}

// Identity returns the metadata by which [Pass.WriteStatus] identifies an object and its version.
func Identity(o metav1.Object) metav1.ObjectMeta {
	return metav1.ObjectMeta{Namespace: o.GetNamespace(), Name: o.GetName(), UID: o.GetUID(), ResourceVersion: o.GetResourceVersion()}
}

// TrueFirst compares two booleans for sorting: true comes before false.
func TrueFirst(a, b bool) int {
	switch {
	case a == b:
		return 0
	case a:
		return -1
	default:
		return 1
	}
}

// ByRevision divides the children of one place into current children, from the update revision, and old children. None
// of them is terminating. altered is the function that [Row.Plan] gets. An altered child beside an old child is its
// replacement, and current, although its labels do not show it. An altered child that is alone is old, and held.
func ByRevision[C any](children []C, updated, altered func(C) bool) (old, current []C) {
	var strange []C
	for _, child := range children {
		switch {
		case updated(child):
			current = append(current, child)
		case altered(child):
			strange = append(strange, child)
		default:
			old = append(old, child)
		}
	}
	if len(current) == 0 && len(old) > 0 {
		return old, strange
	}
	return append(old, strange...), current
}
