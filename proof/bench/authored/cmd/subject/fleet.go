package main

import (
	"context"
	"fmt"
	"maps"
	"strconv"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/builder"
)

// This file is the author's controller: what docs/library.md makes, with the pods of a StatefulSet. What an author
// would not write to be faster may not come in.

// children are the pods that a StatefulSet of the same name would have, the highest ordinal first, as that is rolled.
func children(fleet *Fleet) ([]client.Object, error) {
	out := make([]client.Object, 0, fleet.Spec.Replicas)
	for i := fleet.Spec.Replicas - 1; i >= 0; i-- {
		pod := &corev1.Pod{ObjectMeta: fleet.Spec.Template.ObjectMeta, Spec: fleet.Spec.Template.Spec}
		pod.GenerateName, pod.Name = fleet.Name+"-", fmt.Sprintf("%s-%d", fleet.Name, i)
		pod.Spec.Hostname = pod.Name
		pod.Labels = map[string]string{appsv1.StatefulSetPodNameLabel: pod.Name, appsv1.PodIndexLabel: strconv.Itoa(int(i))}
		maps.Copy(pod.Labels, fleet.Spec.Template.Labels)
		out = append(out, pod)
	}
	return out, nil
}

func status(fleet *Fleet, s builder.Summary) {
	fleet.Status.ObservedGeneration, fleet.Status.UpdateRevision = s.ObservedGeneration, s.UpdateRevision
	fleet.Status.Replicas, fleet.Status.ReadyReplicas = s.Current, s.Ready
	fleet.Status.AvailableReplicas, fleet.Status.UpdatedReplicas = s.Available, s.Updated
	s.SetConditions(&fleet.Status.Conditions)
}

// setupFleets adds the author's controller to a manager.
func setupFleets(ctx context.Context, mgr ctrl.Manager) error {
	return builder.Controller[*Fleet]{
		Parent:   &Fleet{},
		Versions: []string{"spec.template"},
		Owns:     []builder.Rule{builder.Rolled(&corev1.Pod{}, nil)},
		Children: children,
		Labels:   func(fleet *Fleet) map[string]string { return fleet.Spec.Selector.MatchLabels },
		Status:   status,
	}.Setup(ctx, mgr)
}
