package sim

import (
	"math/rand/v2"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check"
	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to ReplicaSets and to ReplicationControllers: mostly, they scale them.

// ReplicaSet is apps/v1 ReplicaSets.
func ReplicaSet() Kind {
	return replicated(parents.ReplicaSet(), "-rs", func() client.Object { return &appsv1.ReplicaSet{} })
}

// ReplicationController is v1 ReplicationControllers.
func ReplicationController() Kind {
	return replicated(parents.ReplicationController(), "-rc", func() client.Object {
		return &corev1.ReplicationController{Spec: corev1.ReplicationControllerSpec{Template: &corev1.PodTemplateSpec{}}}
	})
}

func replicated(rules check.Kind, suffix string, empty func() client.Object) Kind {
	return Kind{
		Check:     rules,
		Scheduled: true,
		New: func(chance *rand.Rand, namespace, name string) client.Object {
			parent, replicas := empty(), new(int32(chance.IntN(4)))
			*begin(parent, namespace, name, name+suffix, anyImage(chance)).replicas = replicas
			return parent
		},
		Edits: []Edit{editScale(12, 6), editImage(5), editLabel(2), editMinReady(2), editAnnotation(1)},
		Child: func(chance *rand.Rand, parent client.Object, _ []string) client.Object {
			return planted(chance, parent, plantedNamed(chance, parent))
		},
		Tend: changeDeletionCost,
	}
}

// changeDeletionCost says what a pod is worth: less than others, or more.
func changeDeletionCost(chance *rand.Rand, child client.Object) {
	child.SetAnnotations(map[string]string{corev1.PodDeletionCost: strconv.Itoa(chance.IntN(21) - 10)})
}
