package sim

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/parents"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file is what users do to DaemonSets.

// DaemonSet is apps/v1 DaemonSets.
func DaemonSet() Kind {
	return Kind{
		Check: parents.DaemonSet(),
		New:   newDaemonSet,
		Edits: []Edit{
			editImage(10), editVariable(3), editLabel(2),
			edit("the strategy", 3, func(chance *rand.Rand) fields {
				return fields{"spec.updateStrategy": value(anyDaemonSetStrategy(chance))}
			}),
			editLimit(2), editMinReady(1), edit("where it runs", 2, anyNodes), editAnnotation(),
		},
		Undo:  undone,
		Child: plantedPod,
		Copy:  copied,
	}
}

// anyNodes chooses the nodes of a zone, those with a taint besides, or all without.
func anyNodes(chance *rand.Rand) fields {
	selector, tolerations := "-", "-"
	switch chance.IntN(4) {
	case 0:
		selector = value(map[string]string{"zone": "a"})
	case 1:
		tolerations = value([]corev1.Toleration{{Key: "sim", Operator: corev1.TolerationOpExists}})
	default:
	}
	return fields{"spec.template.spec.nodeSelector": selector, "spec.template.spec.tolerations": tolerations}
}

func anyDaemonSetStrategy(chance *rand.Rand) appsv1.DaemonSetUpdateStrategy {
	rolling := func(unavailable, surge intstr.IntOrString) appsv1.DaemonSetUpdateStrategy {
		return appsv1.DaemonSetUpdateStrategy{
			Type:          appsv1.RollingUpdateDaemonSetStrategyType,
			RollingUpdate: &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &unavailable, MaxSurge: &surge},
		}
	}
	switch chance.IntN(8) {
	case 0:
		return appsv1.DaemonSetUpdateStrategy{Type: appsv1.OnDeleteDaemonSetStrategyType}
	case 1:
		return rolling(intstr.FromInt32(2), intstr.FromInt32(0))
	case 2:
		return rolling(intstr.FromString("50%"), intstr.FromInt32(0))
	case 3, 4:
		return rolling(intstr.FromInt32(0), intstr.FromInt32(1))
	case 5:
		return rolling(intstr.FromInt32(0), intstr.FromString("50%"))
	default:
		return rolling(intstr.FromInt32(1), intstr.FromInt32(0))
	}
}

func newDaemonSet(chance *rand.Rand, k Kind, name string) scenario.Step {
	set := fields{"image": anyImage(chance), "spec.updateStrategy": value(anyDaemonSetStrategy(chance))}
	if chance.IntN(2) == 0 {
		set["historyLimit"] = anyNumber(chance, 3)
	}
	return created(k, name, name, set)
}

// plantedPod is on any node, or on none yet.
func plantedPod(chance *rand.Rand, k Kind, parent client.Object, nodes []string) scenario.Step {
	pod := planted(chance, k, parent, plantedNamed(chance, parent))
	if len(nodes) > 0 && chance.IntN(4) > 0 {
		pod.Args = append(pod.Args, "on", nodes[chance.IntN(len(nodes))])
	}
	return pod
}
