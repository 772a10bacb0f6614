package sim

import (
	"fmt"
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to ReplicaSets and to ReplicationControllers: mostly, they scale them.

// ReplicaSet is apps/v1 ReplicaSets.
func ReplicaSet() Kind {
	return Kind{
		Check:     parents.ReplicaSet(),
		Scheduled: true,
		New: func(chance *rand.Rand, namespace, name string) client.Object {
			set := &appsv1.ReplicaSet{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			set.Spec.Replicas = new(int32(chance.IntN(4)))
			set.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: anyImage(chance)}}
			selectFromReplicaSet(set, name+"-rs")
			return set
		},
		Select: func(parent client.Object, app string) {
			selectFromReplicaSet(parent.(*appsv1.ReplicaSet), app) //nolint:forcetypeassert // the kind's own
		},
		Edits: replicatedEdits(func(parent client.Object) replicated {
			spec := &parent.(*appsv1.ReplicaSet).Spec //nolint:forcetypeassert // the kind's own
			return replicated{&spec.Replicas, &spec.MinReadySeconds, &spec.Template}
		}),
		Child: func(chance *rand.Rand, parent client.Object, _ []string) client.Object {
			return plantedReplica(chance, parent, parent.(*appsv1.ReplicaSet).Spec.Template) //nolint:forcetypeassert // the kind's own
		},
		Tend: changeDeletionCost,
	}
}

func selectFromReplicaSet(set *appsv1.ReplicaSet, app string) {
	set.Spec.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"app": app}}
	metav1.SetMetaDataLabel(&set.Spec.Template.ObjectMeta, "app", app)
}

// ReplicationController is v1 ReplicationControllers.
func ReplicationController() Kind {
	return Kind{
		Check:     parents.ReplicationController(),
		Scheduled: true,
		New: func(chance *rand.Rand, namespace, name string) client.Object {
			rc := &corev1.ReplicationController{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: name}}
			rc.Spec.Replicas = new(int32(chance.IntN(4)))
			rc.Spec.Template = &corev1.PodTemplateSpec{}
			rc.Spec.Template.Spec.Containers = []corev1.Container{{Name: "main", Image: anyImage(chance)}}
			selectFromReplicationController(rc, name+"-rc")
			return rc
		},
		Select: func(parent client.Object, app string) {
			selectFromReplicationController(parent.(*corev1.ReplicationController), app) //nolint:forcetypeassert // the kind's own
		},
		Edits: replicatedEdits(func(parent client.Object) replicated {
			spec := &parent.(*corev1.ReplicationController).Spec //nolint:forcetypeassert // the kind's own
			return replicated{&spec.Replicas, &spec.MinReadySeconds, spec.Template}
		}),
		Child: func(chance *rand.Rand, parent client.Object, _ []string) client.Object {
			return plantedReplica(chance, parent, *parent.(*corev1.ReplicationController).Spec.Template) //nolint:forcetypeassert // the kind's own
		},
		Tend: changeDeletionCost,
	}
}

func selectFromReplicationController(rc *corev1.ReplicationController, app string) {
	rc.Spec.Selector = map[string]string{"app": app}
	metav1.SetMetaDataLabel(&rc.Spec.Template.ObjectMeta, "app", app)
}

// replicated is what users edit in a parent of either kind.
type replicated struct {
	replicas        **int32
	minReadySeconds *int32
	template        *corev1.PodTemplateSpec
}

func replicatedEdits(in func(parent client.Object) replicated) []Edit {
	edit := func(do func(*rand.Rand, replicated)) func(*rand.Rand, client.Object) {
		return func(chance *rand.Rand, parent client.Object) { do(chance, in(parent)) }
	}
	return []Edit{
		{scaleEdit, 12, edit(func(chance *rand.Rand, spec replicated) { *spec.replicas = new(int32(chance.IntN(6))) })},
		{"the image", 5, edit(func(chance *rand.Rand, spec replicated) { spec.template.Spec.Containers[0].Image = anyImage(chance) })},
		{"a label of the template", 2, edit(func(chance *rand.Rand, spec replicated) {
			spec.template.Labels["tier"] = strconv.Itoa(chance.IntN(2))
		})},
		{minReady, 2, edit(func(chance *rand.Rand, spec replicated) {
			*spec.minReadySeconds = int32([]int{0, 0, 5, 30}[chance.IntN(4)])
		})},
		{"an annotation", 1, func(chance *rand.Rand, parent client.Object) {
			parent.SetAnnotations(map[string]string{"note": strconv.Itoa(chance.IntN(100))})
		}},
	}
}

// plantedReplica is a pod with the labels of a parent's pods.
func plantedReplica(chance *rand.Rand, parent client.Object, from corev1.PodTemplateSpec) client.Object {
	template := from.DeepCopy()
	pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
	pod.Namespace, pod.Name = parent.GetNamespace(), fmt.Sprintf("%s-planted-%d", parent.GetName(), chance.IntN(3))
	if chance.IntN(3) == 0 {
		pod.Spec.Containers[0].Image = anyImage(chance)
	}
	return pod
}

// changeDeletionCost says what a pod is worth: less than others, or more.
func changeDeletionCost(chance *rand.Rand, child client.Object) {
	child.SetAnnotations(map[string]string{corev1.PodDeletionCost: strconv.Itoa(chance.IntN(21) - 10)})
}
