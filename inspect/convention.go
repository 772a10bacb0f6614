package inspect

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file finds the log of an object of a kind that nobody has told us of, by what the object controls: ControllerRevisions, which
// say what they hold or follow the convention, or ReplicaSets with a number. No kind is named here but those of the logs, and pods.

// conventional returns the kind of an object's log, nil if it controls nothing that is one.
func (i *Inspector) conventional(ctx context.Context, parent client.Object) (kind, error) {
	if parent == nil {
		return nil, nil //nolint:nilnil // nobody has said which object
	}
	gvk, err := i.client.GroupVersionKindFor(parent)
	if err != nil {
		return nil, err
	}
	revisions, err := i.controlled(ctx, parent, appsv1.SchemeGroupVersion.WithKind("ControllerRevision"))
	if err != nil {
		return nil, err
	}
	for n := range revisions {
		if format, ok := history.Described(&revisions[n], gvk); ok {
			return newBuiltin(i.client, format), nil
		}
	}
	if len(revisions) > 0 {
		return i.inferred(ctx, parent, gvk)
	}
	sets, err := i.controlled(ctx, parent, replicaSetKind)
	if err != nil {
		return nil, err
	}
	if key := numberKey(sets); key != "" {
		return newReplicaSets(i.client, gvk, key)
	}
	return nil, nil //nolint:nilnil // as above
}

// inferred reads the revisions whole: only their content says what they hold.
func (i *Inspector) inferred(ctx context.Context, parent client.Object, gvk schema.GroupVersionKind) (kind, error) {
	all := &appsv1.ControllerRevisionList{}
	if err := i.client.List(ctx, all, client.InNamespace(parent.GetNamespace())); err != nil {
		return nil, err
	}
	var revisions []appsv1.ControllerRevision
	for n := range all.Items {
		if metav1.IsControlledBy(&all.Items[n], parent) {
			revisions = append(revisions, all.Items[n])
		}
	}
	pod := corev1.SchemeGroupVersion.WithKind("Pod")
	pods, err := i.controlled(ctx, parent, pod)
	if err != nil {
		return nil, err
	}
	format, err := history.Inferred(gvk, revisions, pod, pods)
	if err != nil {
		return nil, fmt.Errorf("find the history of %s: %w", parent.GetName(), err)
	}
	return newBuiltin(i.client, format), nil
}

// controlled returns the metadata of the objects of a kind that parent controls. Whoever may not list them is shown none: the log may be
// elsewhere.
func (i *Inspector) controlled(ctx context.Context, parent client.Object, gvk schema.GroupVersionKind) (
	[]metav1.PartialObjectMetadata, error,
) {
	found := &metav1.PartialObjectMetadataList{} // the client's scheme need not have the type
	found.SetGroupVersionKind(gvk.GroupVersion().WithKind(gvk.Kind + "List"))
	switch err := i.client.List(ctx, found, client.InNamespace(parent.GetNamespace())); {
	case apierrors.IsForbidden(err):
		return nil, nil
	case err != nil:
		return nil, err
	}
	var out []metav1.PartialObjectMetadata
	for n := range found.Items {
		if metav1.IsControlledBy(&found.Items[n], parent) {
			out = append(out, found.Items[n])
		}
	}
	return out, nil
}
