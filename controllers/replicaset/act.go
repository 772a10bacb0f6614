package replicaset

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// This file holds all writes to pods.

// act carries a plan out: creates, slowly at first, or deletes, all at once. One of the errors it returns may wrap
// errStale, or be [ownership.Superseded]: then the plan rests on an old read.
func (r *Reconciler) act(ctx context.Context, o *observed, p *plan) error {
	still := ownership.Unedited(ctx, r.client, o.parent)
	err := errors.Join(
		ownership.SlowStart(p.creates, still, func(c creation) error { return r.create(ctx, o, c) }),
		ownership.Each(p.deletes, func(d deletion) error { return r.delete(ctx, o, d) }),
	)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // nothing can be made here any more, and nobody wants to read so
	}
	return err
}

// create makes one pod. One of ours that is alive under that name was made by an earlier request whose response was lost,
// or by another manager, and is the one we want, whatever template it was made from.
func (r *Reconciler) create(ctx context.Context, o *observed, c creation) error {
	pod := podFor(o.set, r.flavor.kind, c.name)
	how, err := r.pods.Create(ctx, o.set, pod, func(found client.Object) bool { return !ended(asPod(found)) })
	switch {
	case apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return err
	case err != nil:
		r.recorder.Eventf(o.parent, nil, corev1.EventTypeWarning, "FailedCreate", "Create", "Error creating: %v", err)
		return fmt.Errorf("create pod %s: %w", c.name, err)
	case how == ownership.Taken:
		return fmt.Errorf("%w: the name %s is taken, and the cache does not show by whom", errStale, c.name)
	case how == ownership.Created:
		r.recorder.Eventf(o.parent, pod, corev1.EventTypeNormal, "SuccessfulCreate", "Create", "Created pod: %s (%s)", c.name, c.reason)
	}
	return nil
}

// delete removes the pod that the plan was made from, unless it changed since.
func (r *Reconciler) delete(ctx context.Context, o *observed, d deletion) error {
	deleted, err := r.pods.Delete(ctx, o.set, d.pod)
	if err != nil {
		r.recorder.Eventf(o.parent, d.pod, corev1.EventTypeWarning, "FailedDelete", "Delete", "Error deleting pod %s: %v", d.pod.Name, err)
		return fmt.Errorf("delete pod %s: %w", d.pod.Name, err)
	}
	if deleted {
		r.recorder.Eventf(o.parent, d.pod, corev1.EventTypeNormal, "SuccessfulDelete", "Delete", "Deleted pod: %s (%s)", d.pod.Name, d.reason)
	}
	return nil
}
