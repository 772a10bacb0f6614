package sim

import (
	"fmt"
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/scenario"
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
			edit("the strategy", 5, func(chance *rand.Rand) fields {
				return fields{"spec.updateStrategy": value(anyStatefulSetStrategy(chance))}
			}),
			editLimit(2),
			edit("the first ordinal", 1, func(chance *rand.Rand) fields {
				return fields{"spec.ordinals.start": anyNumber(chance, 3)}
			}),
			edit("what becomes of claims", 2, func(chance *rand.Rand) fields {
				return fields{claimRetention: value(anyRetention(chance))}
			}),
			editMinReady(1), editAnnotation(),
		},
		Undo:  undone,
		Child: plantedMember,
		Copy:  copied,
	}
}

const claimRetention = "spec.persistentVolumeClaimRetentionPolicy"

func anyStatefulSetStrategy(chance *rand.Rand) appsv1.StatefulSetUpdateStrategy {
	if chance.IntN(5) == 0 {
		if chance.IntN(2) == 0 {
			return appsv1.StatefulSetUpdateStrategy{Type: appsv1.RecreateStatefulSetStrategyType}
		}
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

func newStatefulSet(chance *rand.Rand, k Kind, name string) scenario.Step {
	set := fields{"image": anyImage(chance)}
	set["replicas"] = anyNumber(chance, 4)
	set["spec.updateStrategy"] = value(anyStatefulSetStrategy(chance))
	if chance.IntN(2) == 0 {
		set["podManagement"] = string(appsv1.ParallelPodManagement)
	}
	if chance.IntN(2) == 0 {
		set["historyLimit"] = anyNumber(chance, 3)
	}
	if chance.IntN(2) == 0 {
		set[claimRetention] = value(anyRetention(chance))
		set["spec.volumeClaimTemplates"] = value([]corev1.PersistentVolumeClaim{{
			ObjectMeta: metav1.ObjectMeta{Name: "data"},
			Spec: corev1.PersistentVolumeClaimSpec{
				AccessModes: []corev1.PersistentVolumeAccessMode{corev1.ReadWriteOnce},
				Resources:   corev1.VolumeResourceRequirements{Requests: corev1.ResourceList{corev1.ResourceStorage: resource.MustParse("1Gi")}},
			},
		}})
	}
	return created(k, name, name+"-set", set)
}

// plantedMember is mostly under a name that one of the set's pods could have.
func plantedMember(chance *rand.Rand, k Kind, parent client.Object, _ []string) scenario.Step {
	name := fmt.Sprintf("%s-%d", parent.GetName(), chance.IntN(5))
	if chance.IntN(4) == 0 {
		name = parent.GetName() + "-planted"
	}
	return planted(chance, k, parent, name)
}
