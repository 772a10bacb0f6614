package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"

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
		Select: func(parent client.Object, app string) {
			selectFromStatefulSet(parent.(*appsv1.StatefulSet), app) //nolint:forcetypeassert // the kind's own
		},
		Edits: []Edit{
			{"the image", 10, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.Template.Spec.Containers[0].Image = anyImage(chance)
			})},
			{"a variable", 2, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.Template.Spec.Containers[0].Env = []corev1.EnvVar{{Name: "MODE", Value: strconv.Itoa(chance.IntN(3))}}
			})},
			{scaleEdit, 6, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.Replicas = new(int32(chance.IntN(5)))
			})},
			{"the strategy", 5, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.UpdateStrategy = anyStatefulSetStrategy(chance)
			})},
			{"the history limit", 2, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.RevisionHistoryLimit = new(int32(chance.IntN(4)))
			})},
			{"the first ordinal", 1, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.Ordinals = &appsv1.StatefulSetOrdinals{Start: int32(chance.IntN(3))}
			})},
			{"what becomes of claims", 2, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.PersistentVolumeClaimRetentionPolicy = anyRetention(chance)
			})},
			{minReady, 1, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				set.Spec.MinReadySeconds = int32([]int{0, 0, 5, 30}[chance.IntN(4)])
			})},
			{"an annotation", 1, editStatefulSet(func(chance *rand.Rand, set *appsv1.StatefulSet) {
				metav1.SetMetaDataAnnotation(&set.ObjectMeta, "note", strconv.Itoa(chance.IntN(100)))
			})},
		},
		Restore: restoreStatefulSet,
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
	set := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
	selectFromStatefulSet(set, name+"-set")
	set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: anyImage(chance)}}
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

func selectFromStatefulSet(set *appsv1.StatefulSet, app string) {
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, "app", app)
}

func restoreStatefulSet(parent, revision client.Object) error {
	template, err := templateIn(revision)
	if err == nil {
		parent.(*appsv1.StatefulSet).Spec.Template = *template //nolint:forcetypeassert // the kind's own
	}
	return err
}

// plantedMember is a pod with the labels of a StatefulSet's pods, mostly under a name that one of them could have.
func plantedMember(chance *rand.Rand, parent client.Object, _ []string) client.Object {
	set := parent.(*appsv1.StatefulSet) //nolint:forcetypeassert // the kind's own
	template := set.Spec.Template.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = set.Namespace, fmt.Sprintf("%s-%d", set.Name, chance.IntN(5))
	if chance.IntN(4) == 0 {
		pod.Name = set.Name + "-planted"
	}
	if chance.IntN(3) == 0 {
		pod.Spec.Containers[0].Image = anyImage(chance)
	}
	return pod
}
