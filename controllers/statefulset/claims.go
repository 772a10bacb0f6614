package statefulset

import (
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file says which claims belong to a pod, and who owns them under the retention policies. It is pure.
//
// A claim is owned so that the garbage collector deletes it at the right moment: by the StatefulSet if it is deleted
// with the set, by the condemned pod if it is deleted on scale down, by neither if it stays.

// claimName is the name of the claim of one ordinal. Schedulers and tools know the pattern.
func claimName(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int64) string {
	return fmt.Sprintf("%s-%s-%d", template.Name, set.Name, ordinal)
}

// claimNames are the names of all claims of one ordinal.
func claimNames(set *appsv1.StatefulSet, ordinal int64) []string {
	var out []string
	for i := range set.Spec.VolumeClaimTemplates {
		out = append(out, claimName(set, &set.Spec.VolumeClaimTemplates[i], ordinal))
	}
	return out
}

// claimFor builds the claim of one ordinal from one of the set's templates.
func claimFor(set *appsv1.StatefulSet, template *corev1.PersistentVolumeClaim, ordinal int64) *corev1.PersistentVolumeClaim {
	claim := template.DeepCopy()
	claim.Name, claim.Namespace = claimName(set, template, ordinal), set.Namespace
	if claim.Labels == nil {
		claim.Labels = map[string]string{}
	}
	maps.Copy(claim.Labels, set.Spec.Selector.MatchLabels)
	if retention(set).WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		claim.OwnerReferences = append(claim.OwnerReferences, *metav1.NewControllerRef(set, kind))
	}
	return claim
}

// retention returns the policies of set; one that is not set is Retain.
func retention(set *appsv1.StatefulSet) appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	const retain = appsv1.RetainPersistentVolumeClaimRetentionPolicyType
	out := appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{WhenDeleted: retain, WhenScaled: retain}
	if p := set.Spec.PersistentVolumeClaimRetentionPolicy; p != nil {
		if p.WhenDeleted == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			out.WhenDeleted = p.WhenDeleted
		}
		if p.WhenScaled == appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
			out.WhenScaled = p.WhenScaled
		}
	}
	return out
}

// staleFor says why a claim must not be used by a new pod, in one clause; an empty string means that it may be used.
func staleFor(set *appsv1.StatefulSet, pod string, claim *corev1.PersistentVolumeClaim) string {
	if claim.DeletionTimestamp != nil {
		return fmt.Sprintf("claim %s is being deleted", claim.Name)
	}
	if retention(set).WhenScaled != appsv1.DeletePersistentVolumeClaimRetentionPolicyType {
		return ""
	}
	for _, ref := range claim.OwnerReferences {
		if refersTo(ref, podKind, pod) {
			return fmt.Sprintf("claim %s goes with an earlier pod %s", claim.Name, pod)
		}
	}
	return ""
}

// ownersOf returns the owner references that a claim of pod is to have, and whether those that it has differ. foreign
// is true if another controller owns the claim although a policy asks for it: our references are dropped then, and a
// user has to decide.
//
// A claim that a surplus pod could have but does not mount may be a user's, and gets no owner.
//
// References to a set or a pod of the same name but another UID are left alone like all others: the claim belongs to a
// predecessor, and the garbage collector may be about to delete it.
func ownersOf(
	set *appsv1.StatefulSet, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim,
) (want []metav1.OwnerReference, differ, foreign bool) {
	others, ours, stale := sortOwners(set, pod, claim)
	if stale {
		return nil, false, false
	}
	policy := retention(set)
	const remove = appsv1.DeletePersistentVolumeClaimRetentionPolicyType
	foreign = (policy.WhenDeleted == remove || policy.WhenScaled == remove) && slices.ContainsFunc(others, controls)
	ordinal, _ := ordinalOf(set, pod.Name)
	surplus := !inRange(set, ordinal)
	var wanted []metav1.OwnerReference
	switch {
	case foreign, surplus && !mounts(pod, claim.Name):
	case policy.WhenScaled == remove && surplus:
		wanted = []metav1.OwnerReference{*metav1.NewControllerRef(pod, podKind)}
	case policy.WhenDeleted == remove:
		wanted = []metav1.OwnerReference{*metav1.NewControllerRef(set, kind)}
	}
	differ = !slices.EqualFunc(ours, wanted, func(a, b metav1.OwnerReference) bool { return a.UID == b.UID && controls(a) })
	return append(others, wanted...), differ, foreign
}

// sortOwners separates the references of a claim to set and pod from those to others. stale is true if one of them is
// to an earlier set or pod of the same name.
func sortOwners(
	set *appsv1.StatefulSet, pod *corev1.Pod, claim *corev1.PersistentVolumeClaim,
) (others, ours []metav1.OwnerReference, stale bool) {
	for _, ref := range claim.OwnerReferences {
		switch {
		case refersTo(ref, kind, set.Name):
			ours, stale = append(ours, ref), stale || ref.UID != set.UID
		case refersTo(ref, podKind, pod.Name):
			ours, stale = append(ours, ref), stale || ref.UID != pod.UID
		default:
			others = append(others, ref)
		}
	}
	return others, ours, stale
}

func controls(ref metav1.OwnerReference) bool { return ref.Controller != nil && *ref.Controller }

// refersTo reports whether a reference names an object, whatever its UID is.
func refersTo(ref metav1.OwnerReference, kind schema.GroupVersionKind, name string) bool {
	return ref.APIVersion == kind.GroupVersion().String() && ref.Kind == kind.Kind && ref.Name == name
}
