package sim

import (
	"math/rand/v2"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/parents"
)

// This file is what users do to DaemonSets.

// DaemonSet is apps/v1 DaemonSets.
func DaemonSet() Kind {
	return Kind{
		Check: parents.DaemonSet(),
		New:   newDaemonSet,
		Edits: []Edit{
			editImage(10), editVariable(3), editLabel(2),
			{"the strategy", 3, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.UpdateStrategy = anyDaemonSetStrategy(chance)
			})},
			editLimit(2), editMinReady(1),
			{"where it runs", 2, editDaemonSet(func(chance *rand.Rand, ds *appsv1.DaemonSet) {
				ds.Spec.Template.Spec.NodeSelector = nil
				ds.Spec.Template.Spec.Tolerations = nil
				switch chance.IntN(4) {
				case 0:
					ds.Spec.Template.Spec.NodeSelector = map[string]string{"zone": "a"}
				case 1:
					ds.Spec.Template.Spec.Tolerations = []corev1.Toleration{{Key: "sim", Operator: corev1.TolerationOpExists}}
				default:
				}
			})},
			editAnnotation(1),
		},
		Restore: restoreTemplate,
		Child:   plantedPod,
	}
}

func editDaemonSet(do func(*rand.Rand, *appsv1.DaemonSet)) func(*rand.Rand, client.Object) {
	return func(chance *rand.Rand, parent client.Object) {
		do(chance, parent.(*appsv1.DaemonSet)) //nolint:forcetypeassert // an edit of DaemonSets
	}
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

func newDaemonSet(chance *rand.Rand, namespace, name string) client.Object {
	ds := &appsv1.DaemonSet{}
	begin(ds, namespace, name, name, anyImage(chance))
	ds.Spec.UpdateStrategy = anyDaemonSetStrategy(chance)
	if chance.IntN(2) == 0 {
		ds.Spec.RevisionHistoryLimit = new(int32(chance.IntN(3)))
	}
	return ds
}

// plantedPod is on any node, or on none yet.
func plantedPod(chance *rand.Rand, parent client.Object, nodes []string) client.Object {
	pod := planted(chance, parent, plantedNamed(chance, parent))
	if len(nodes) > 0 && chance.IntN(4) > 0 {
		pod.Spec.NodeName = nodes[chance.IntN(len(nodes))]
	}
	return pod
}
