package sim

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to StatefulSets.

// StatefulSet is apps/v1 StatefulSets.
func StatefulSet() Kind {
	return Kind{
		Check:     parents.StatefulSet(),
		Scheduled: true,
		New:       newStatefulSet,
		Edits: []Edit{
			editImage(10), editVariable(2), editScale(6, 5),
			{"the strategy", 5, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.UpdateStrategy = anyStatefulSetStrategy(chance)
			})},
			editLimit(2),
			{"the first ordinal", 1, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(chance.IntN(3))}
			})},
			{"what becomes of claims", 2, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.PersistentVolumeClaimRetentionPolicy = anyRetention(chance)
			})},
			editMinReady(1), editAnnotation(1),
		},
		Restore: restoreTemplate,
		Child:   plantedMember,
	}
}

func editStatefulSet(do func(*rand.Rand, *appsv1.StatefulSet)) func(*rand.Rand, client.Object) {
	return func(chance *rand.Rand, parent client.Object) {
		do(chance, parent.(*appsv1.StatefulSet)) //nolint:forcetypeassert // an edit of StatefulSets
	}
}

func anyStatefulSetStrategy(chance *rand.Rand) appsv1.StatefulSetUpdateStrategy {
	if chance.IntN(5) == 0 {
		return appsv1.StatefulSetUpdateStrategy{Type: appsv1.OnDeleteStatefulSetStrategyType}
	}
	return appsv1.StatefulSetUpdateStrategy{
		Type: appsv1.RollingUpdateStatefulSetStrategyType,
		RollingUpdate: &appsv1.RollingUpdateStatefulSetStrategy{
			Partition: new(int32(max(0, chance.IntN(5)-1))), // none more often than any
		},
	}
}

func anyRetention(chance *rand.Rand) *appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy {
	policies := []appsv1.PersistentVolumeClaimRetentionPolicyType{
		appsv1.RetainPersistentVolumeClaimRetentionPolicyType, appsv1.DeletePersistentVolumeClaimRetentionPolicyType,
	}
	return &appsv1.StatefulSetPersistentVolumeClaimRetentionPolicy{
		WhenDeleted: policies[chance.IntN(2)], WhenScaled: policies[chance.IntN(2)],
	}
}

func newStatefulSet(chance *rand.Rand, namespace, name string) client.Object {
	set := &appsv1.StatefulSet{}
	begin(set, namespace, name, name+"-set", anyImage(chance))
	set.Spec.Replicas = new(int32(chance.IntN(4)))
	set.Spec.UpdateStrategy = anyStatefulSetStrategy(chance)
	if chance.IntN(2) == 0 {
		set.Spec.PodManagementPolicy = appsv1.ParallelPodManagement
	}
	if chance.IntN(2) == 0 {
		set.Spec.RevisionHistoryLimit = new(int32(chance.IntN(3)))
	}
	if chance.IntN(2) == 0 {
		set.Spec.PersistentVolumeClaimRetentionPolicy = anyRetention(chance)
		set.Spec.VolumeClaimTemplates = []corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}}
	}
	return set
}

// plantedMember is mostly under a name that one of the set's pods could have.
func plantedMember(chance *rand.Rand, parent client.Object, _ []string) client.Object {
	name := fmt.Sprintf("%s-%d", parent.GetName(), chance.IntN(5))
	if chance.IntN(4) == 0 {
		name = parent.GetName() + "-planted"
	}
	return planted(chance, parent, name)
}
