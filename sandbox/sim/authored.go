package sim

import (
	"context"
	"fmt"
	"math/rand/v2"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/sandbox/check/parents"
	"github.com/cairn-dev/cairn/sandbox/scenario"
)

// This file is a controller that somebody made with package builder, and what users do to its parents.

// Authored is StatefulSets under such a controller.
func Authored() Kind {
	return Kind{
		Check:     parents.Authored(),
		Add:       addAuthored,
		Scheduled: true,
		New: func(chance *rand.Rand, k Kind, name string) scenario.Step {
			set := fields{"image": anyImage(chance), "replicas": anyNumber(chance, 4)}
			if chance.IntN(2) == 0 {
				set["historyLimit"] = anyNumber(chance, 3)
			}
			return created(k, name, name+"-set", set)
		},
		Edits: []Edit{editImage(10), editScale(6, 5), editVariable(2), editLimit(2), editMinReady(1), editAnnotation(1)},
		Undo:  undone,
		Child: plantedMember,
		Copy:  copied,
	}
}

func addAuthored(ctx context.Context, mgr ctrl.Manager) error {
	pods := builder.Rolled(&corev1.Pod{}, nil).MinReady(func(parent client.Object) time.Duration {
		return time.Duration(parent.(*appsv1.StatefulSet).Spec.MinReadySeconds) * time.Second //nolint:forcetypeassert // its parents
	})
	return builder.Controller[*appsv1.StatefulSet]{
		Parent:   &appsv1.StatefulSet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{pods},
		Children: authoredChildren,
		Limit:    func(set *appsv1.StatefulSet) int32 { return *set.Spec.RevisionHistoryLimit },
		Labels:   func(set *appsv1.StatefulSet) map[string]string { return set.Spec.Selector.MatchLabels },
		Status: func(set *appsv1.StatefulSet, s builder.Summary) {
			set.Status = appsv1.StatefulSetStatus{
				ObservedGeneration: max(set.Status.ObservedGeneration, s.ObservedGeneration), UpdateRevision: s.UpdateRevision,
				Replicas: s.Current, ReadyReplicas: s.Ready, AvailableReplicas: s.Available, UpdatedReplicas: s.Updated,
			}
		},
	}.Setup(ctx, mgr)
}

func authoredChildren(set *appsv1.StatefulSet) ([]client.Object, error) {
	var out []client.Object
	for i := *set.Spec.Replicas - 1; i >= 0; i-- {
		template := set.Spec.Template.DeepCopy()
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = fmt.Sprintf("%s-%d", set.Name, i)
		out = append(out, pod)
	}
	return out, nil
}
