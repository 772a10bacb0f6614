// Package authored is a controller that somebody made with package builder, for checks: StatefulSets, because the type
// is at hand, of which it reads the replicas, the template and a few limits. Its pods are rolled from the highest
// ordinal down.
//
// What may not come in: a server, a rule, and what an author would not write.
package authored

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/utils/ptr"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
	"github.com/cairn-dev/cairn/pass"
)

// Setup adds the controller to a manager. It replaces one pod at a time.
func Setup(ctx context.Context, mgr ctrl.Manager) error { return Controller().Setup(ctx, mgr) }

// Controller is what [Setup] adds.
func Controller() builder.Controller[*appsv1.StatefulSet] { return controller(pods()) }

// SetupSurging adds another controller of the same parents.
func SetupSurging(ctx context.Context, mgr ctrl.Manager) error { return Surging().Setup(ctx, mgr) }

// Surging is what [SetupSurging] adds: its pods are named by revision, it surges by as many as ordinals.start says,
// which is a number at hand, and keeps the partition and the budget of the StatefulSet.
func Surging() builder.Controller[*appsv1.StatefulSet] {
	c := controller(pods().NamedByRevision())
	c.Strategy = strategy
	return c
}

// Releases are what adds two releases of the first controller: the second one has more in its revisions, a field that
// nobody edits, and something that its function relies on.
func Releases() []func(ctx context.Context, mgr ctrl.Manager) error {
	return []func(ctx context.Context, mgr ctrl.Manager) error{Setup, func(ctx context.Context, mgr ctrl.Manager) error {
		c := controller(pods())
		c.Versions = append(c.Versions, "spec.podManagementPolicy")
		c.Upgrade = upgrade
		c.Children = func(set *appsv1.StatefulSet) ([]client.Object, error) {
			if set.Spec.PodManagementPolicy == "" {
				return nil, errors.New("spec.podManagementPolicy is not set") // the API server defaults it
			}
			return children(set)
		}
		return c.Setup(ctx, mgr)
	}}
}

// upgrade fills in what the first release did not record.
func upgrade(old *unstructured.Unstructured) (*appsv1.StatefulSet, error) {
	set := &appsv1.StatefulSet{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(old.Object, set); err != nil {
		return nil, err
	}
	set.Spec.PodManagementPolicy = cmp.Or(set.Spec.PodManagementPolicy, appsv1.OrderedReadyPodManagement)
	return set, nil
}

func pods() builder.Rule {
	return builder.Rolled(&corev1.Pod{}, nil).MinReady(func(parent client.Object) time.Duration {
		seconds := parent.(*appsv1.StatefulSet).Spec.MinReadySeconds
		return time.Duration(seconds) * time.Second
	})
}

func strategy(set *appsv1.StatefulSet) builder.Strategy {
	var s builder.Strategy
	if set.Spec.Ordinals != nil {
		s.MaxSurge = int(set.Spec.Ordinals.Start)
	}
	if u := set.Spec.UpdateStrategy.RollingUpdate; u != nil {
		s.Partition = int(ptr.Deref(u.Partition, 0))
		if u.MaxUnavailable != nil && u.MaxUnavailable.IntValue() != 1 { // the API server defaults it to 1
			s.MaxUnavailable = u.MaxUnavailable.IntValue()
		}
	}
	return s
}

func controller(pods builder.Rule) builder.Controller[*appsv1.StatefulSet] {
	return builder.Controller[*appsv1.StatefulSet]{
		Parent:   &appsv1.StatefulSet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{pods},
		Children: children,
		Limit:    func(set *appsv1.StatefulSet) int32 { return *set.Spec.RevisionHistoryLimit },
		Labels:   func(set *appsv1.StatefulSet) map[string]string { return set.Spec.Selector.MatchLabels },
		Status: func(set *appsv1.StatefulSet, s builder.Summary) {
			conditions := pass.ConditionsOf(set.Status.Conditions, fields)
			s.SetConditions(&conditions)
			set.Status = appsv1.StatefulSetStatus{
				Conditions:         pass.StoredConditions(conditions, fields),
				ObservedGeneration: max(set.Status.ObservedGeneration, s.ObservedGeneration), UpdateRevision: s.UpdateRevision,
				Replicas: s.Current, ReadyReplicas: s.Ready, AvailableReplicas: s.Available, UpdatedReplicas: s.Updated,
			}
		},
	}
}

// fields returns the fields of a condition of a StatefulSet.
func fields(c *appsv1.StatefulSetCondition) pass.ConditionFields[appsv1.StatefulSetConditionType] {
	return pass.ConditionFields[appsv1.StatefulSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
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
