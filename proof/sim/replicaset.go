package sim

import (
	"math/rand/v2"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is what users do to ReplicaSets and to ReplicationControllers: mostly, they scale them.

// ReplicaSet is apps/v1 ReplicaSets.
func ReplicaSet() Kind { return replicated(parents.ReplicaSet(), "-rs") }

// ReplicationController is v1 ReplicationControllers.
func ReplicationController() Kind { return replicated(parents.ReplicationController(), "-rc") }

func replicated(rules check.Kind, suffix string) Kind {
	return Kind{
		Check:     rules,
		Scheduled: true,
		New: func(chance *rand.Rand, k Kind, name string) scenario.Step {
			return created(k, name, name+suffix, fields{"replicas": anyNumber(chance, 4), "image": anyImage(chance)})
		},
		Edits: []Edit{editScale(12, 6), editImage(5), editLabel(2), editMinReady(2), editAnnotation()},
		Child: func(chance *rand.Rand, k Kind, parent client.Object, _ []string) scenario.Step {
			return planted(chance, k, parent, plantedNamed(chance, parent))
		},
		Tend: changeDeletionCost,
	}
}

// changeDeletionCost says what a pod is worth: less than others, or more.
func changeDeletionCost(chance *rand.Rand) fields {
	return fields{"metadata.annotations": value(map[string]string{corev1.PodDeletionCost: strconv.Itoa(chance.IntN(21) - 10)})}
}
