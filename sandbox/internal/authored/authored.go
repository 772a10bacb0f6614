// Package authored is a controller that somebody made with package builder, for checks: StatefulSets, because the type is at
// hand, of which it reads the replicas, the template and two limits. Its pods are rolled from the highest ordinal down.
//
// What may not come in: a server, a rule, and what an author would not write.
package authored

import (
	"context"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
)

// Setup adds the controller to a manager.
func Setup(ctx context.Context, mgr ctrl.Manager) error {
	pods := builder.Rolled(&corev1.Pod{}, nil).MinReady(func(parent client.Object) time.Duration {
		seconds := parent.(*appsv1.StatefulSet).Spec.MinReadySeconds //nolint:forcetypeassert // its parents
		return time.Duration(seconds) * time.Second
	})
	return builder.Controller[*appsv1.StatefulSet]{
		Parent:   &appsv1.StatefulSet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{pods},
		Children: children,
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

func children(set *appsv1.StatefulSet) ([]client.Object, error) {
	var out []client.Object
	for i := *set.Spec.Replicas - 1; i >= 0; i-- {
		template := set.Spec.Template.DeepCopy()
		pod := &corev1.Pod{ObjectMeta: template.ObjectMeta, Spec: template.Spec}
		pod.Name = fmt.Sprintf("%s-%d", set.Name, i)
		out = append(out, pod)
	}
	return out, nil
}
