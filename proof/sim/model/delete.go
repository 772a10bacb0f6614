package model

import (
	"context"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/validation"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apiserver/pkg/registry/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// validDeletion refuses options that make no sense. The API server looks at them before it looks for an object.
func validDeletion(r Request) error {
	options := &metav1.DeleteOptions{
		Preconditions: r.Preconditions, PropagationPolicy: r.Propagation, GracePeriodSeconds: r.GracePeriodSeconds,
	}
	if errs := validation.ValidateDeleteOptions(options); len(errs) > 0 {
		return apierrors.NewInvalid(schema.GroupKind{Group: metav1.GroupName, Kind: "DeleteOptions"}, "", errs)
	}
	return nil
}

// remove serves a delete.
func (s *Server) remove(t *table, r Request) (client.Object, error) {
	if err := validDeletion(r); err != nil {
		return nil, err
	}
	stored, err := t.find(r)
	if err != nil {
		return nil, err
	}
	options := &metav1.DeleteOptions{Preconditions: r.Preconditions, PropagationPolicy: r.Propagation}
	if r.GracePeriodSeconds != nil {
		seconds := *r.GracePeriodSeconds
		options.GracePeriodSeconds = &seconds // the rules set it
	}
	hub, err := t.kind.toHub(stored)
	if err != nil {
		return nil, unknown(err)
	}
	if !t.kind.builtIn() {
		hub = t.kind.fork(stored)
	}
	graceful, pending, err := rest.BeforeDelete(t.kind.rules, scope(t, r), hub, options)
	if err != nil {
		return nil, err //nolint:wrapcheck // what the API server answers
	}
	if pending {
		return stored, nil
	}
	after, err := meta.Accessor(hub)
	if err != nil {
		return nil, unknown(err)
	}
	finalizers := deletionFinalizers(defaultPolicy(scope(t, r), t.kind.rules), after.GetFinalizers(), options)
	after.SetFinalizers(finalizers)
	switch {
	case graceful:
		s.setDeadline(stored, after, *options.GracePeriodSeconds)
	case len(finalizers) > 0:
		s.markDeleting(after)
	default:
		return s.drop(t, stored, r.DryRun), nil
	}
	return s.writeDeleting(t, r, hub, len(finalizers) > 0 || (graceful && *options.GracePeriodSeconds > 0))
}

// writeDeleting stores an object that is being deleted, and deletes it unless something holds it.
func (s *Server) writeDeleting(t *table, r Request, hub runtime.Object, held bool) (client.Object, error) {
	object, err := t.kind.fromHub(hub)
	if err != nil {
		return nil, unknown(err)
	}
	written, err := s.write(t, object, r.DryRun)
	if err != nil {
		return nil, unknown(err)
	}
	if held {
		return written, nil
	}
	return s.drop(t, written, r.DryRun), nil
}

// setDeadline says when a graceful deletion ends, by the server's own clock. An earlier request may have set a
// deadline; this one can only bring it forward.
func (s *Server) setDeadline(before client.Object, after metav1.Object, grace int64) {
	now := s.timestamp()
	deadline := now.Add(time.Duration(grace) * time.Second)
	if set, was := before.GetDeletionTimestamp(), before.GetDeletionGracePeriodSeconds(); set != nil && was != nil {
		deadline = set.Add(time.Duration(grace-*was) * time.Second)
		if deadline.Before(now.Time) {
			deadline = now.Time
			grace = min(grace, 1)
		}
	}
	timestamp := metav1.NewTime(deadline)
	after.SetDeletionTimestamp(&timestamp)
	after.SetDeletionGracePeriodSeconds(&grace)
}

// markDeleting starts the deletion of an object that finalizers hold.
func (s *Server) markDeleting(object metav1.Object) {
	now := s.timestamp()
	set := object.GetDeletionTimestamp()
	if set == nil && object.GetGeneration() > 0 {
		object.SetGeneration(object.GetGeneration() + 1)
	}
	if set == nil || set.After(now.Time) {
		object.SetDeletionTimestamp(&now)
	}
	object.SetDeletionGracePeriodSeconds(new(int64))
}

// defaultPolicy is what happens to the dependents of a kind's objects if a delete does not say.
func defaultPolicy(ctx context.Context, kind rules) rest.GarbageCollectionPolicy {
	if defaults, ok := kind.(rest.GarbageCollectionDeleteStrategy); ok {
		return defaults.DefaultGarbageCollectionPolicy(ctx)
	}
	return rest.DeleteDependents
}

// deletionFinalizers are the finalizers with which an object is deleted: those that it has, and at most one by which
// the garbage collector orphans its dependents or deletes them first. The request decides; then the finalizers that are
// there; then the kind.
func deletionFinalizers(kind rest.GarbageCollectionPolicy, present []string, options *metav1.DeleteOptions) []string {
	wanted := ""
	at := slices.IndexFunc(present, collectorFinalizer)
	switch policy := options.PropagationPolicy; {
	case kind == rest.Unsupported:
	case policy != nil && *policy == metav1.DeletePropagationOrphan:
		wanted = metav1.FinalizerOrphanDependents
	case policy != nil && *policy == metav1.DeletePropagationForeground:
		wanted = metav1.FinalizerDeleteDependents
	case policy != nil:
	case at >= 0:
		wanted = present[at]
	case kind == rest.OrphanDependents:
		wanted = metav1.FinalizerOrphanDependents
	}
	if wanted != "" && slices.Contains(present, wanted) {
		others := slices.DeleteFunc(slices.Clone(present), func(f string) bool { return collectorFinalizer(f) && f != wanted })
		if len(others) == len(present) {
			return present // in the order in which they are there
		}
	}
	finalizers := slices.DeleteFunc(slices.Clone(present), collectorFinalizer)
	if wanted != "" {
		finalizers = append(finalizers, wanted)
	}
	return finalizers
}

// collectorFinalizer tells whether a finalizer is the garbage collector's.
func collectorFinalizer(name string) bool {
	return name == metav1.FinalizerOrphanDependents || name == metav1.FinalizerDeleteDependents
}

// removeAll serves a deletecollection: a list, then a delete of each object in turn.
func (s *Server) removeAll(t *table, r Request) ([]client.Object, error) {
	if err := validDeletion(r); err != nil {
		return nil, err // also if there is nothing to delete
	}
	items, err := s.list(t, r)
	if err != nil {
		return nil, err
	}
	for _, item := range items {
		each := r
		each.Namespace, each.Name = item.GetNamespace(), item.GetName()
		if _, err := s.remove(t, each); err != nil && !apierrors.IsNotFound(err) {
			return nil, err
		}
	}
	return items, nil
}
