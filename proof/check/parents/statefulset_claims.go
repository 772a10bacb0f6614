package parents

import (
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file tells the rules which claims are a StatefulSet's, and what becomes of them.

// claimed reports whether a claim is called TEMPLATE-SET-ORDINAL.
func claimed(parent, claim client.Object) bool {
	set := as[appsv1.StatefulSet](parent)
	return slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		name, ok := strings.CutPrefix(claim.GetName(), template.Name+"-")
		_, numbered := ordinalOf(set, name)
		return ok && numbered
	})
}

// outlives reports whether a claim of a pod's ordinal is not owned by that pod, although the policy is to delete it on
// a scale down. One that another controller has is left to that, and one that refers to a set or a pod of another UID
// belonged to a predecessor.
func outlives(claim, child, parent client.Object) bool {
	set, remove := as[appsv1.StatefulSet](parent), appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	policy := set.Spec.PersistentVolumeClaimRetentionPolicy
	if policy == nil || policy.WhenScaled != remove || claim.GetDeletionTimestamp() != nil {
		return false
	}
	if !slices.ContainsFunc(set.Spec.VolumeClaimTemplates, func(template corev1.PersistentVolumeClaim) bool {
		return claim.GetName() == template.Name+"-"+child.GetName()
	}) || !slices.ContainsFunc(as[corev1.Pod](child).Spec.Volumes, func(v corev1.Volume) bool { // it may be a user's
		return v.PersistentVolumeClaim != nil && v.PersistentVolumeClaim.ClaimName == claim.GetName()
	}) {
		return false
	}
	return !slices.ContainsFunc(claim.GetOwnerReferences(), func(ref metav1.OwnerReference) bool {
		family := ref.Kind == "StatefulSet" && ref.Name == set.Name || ref.Kind == "Pod" && ref.Name == child.GetName()
		return family && ref.UID != set.UID || !family && ref.Controller != nil && *ref.Controller
	})
}
