package statefulset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file writes status: counters from what was seen, the names of both revisions, conditions that say why. It writes
// only what differs, and once a pass.

// report stores what rep says. Where the update revision could not be recorded, the names of revisions and the observed
// generation stay as they are: kubectl would take the counters of the old revision for the end of the new rollout.
func (r *Reconciler) report(ctx context.Context, set *appsv1.StatefulSet, rep report) error {
	status := set.Status.DeepCopy()
	rep.plan.counts.store(status)
	if rep.update != nil {
		status.CurrentRevision, status.UpdateRevision = rep.current, rep.update.Name
		status.ObservedGeneration = max(status.ObservedGeneration, set.Generation)
	}
	if rep.collisions != nil {
		status.CollisionCount = rep.collisions
	}
	now := metav1.NewTime(r.clock.Now())
	for _, condition := range rep.conditions(set) {
		setCondition(status, condition, now)
	}
	if err := r.writeStatus(ctx, set, status); err != nil {
		return err
	}
	was, is := findCondition(set.Status.Conditions, ConditionHistoryHealthy), findCondition(status.Conditions, ConditionHistoryHealthy)
	if is != nil && is.Status == corev1.ConditionFalse && rep.recordErr == nil && (was == nil || was.Reason != is.Reason) {
		r.recorder.Eventf(set, nil, corev1.EventTypeWarning, is.Reason, "Report", "%s", is.Message)
	}
	return nil
}

// refuse reports a set that nothing can be done for before somebody edits it.
func (r *Reconciler) refuse(ctx context.Context, set *appsv1.StatefulSet, reason, message string) error {
	status := set.Status.DeepCopy()
	c := appsv1.StatefulSetCondition{Type: ConditionUpdated, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	setCondition(status, c, metav1.NewTime(r.clock.Now()))
	r.recorder.Eventf(set, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", message)
	return r.writeStatus(ctx, set, status)
}

// rename replaces the name of a revision that is about to go in status, and counts again: the pods that name it are about
// to name the other one. It returns an error that wraps [history.ErrStale] if it wrote, because the set as it was read is
// outdated by that.
func (r *Reconciler) rename(ctx context.Context, o *observed, from, to string) error {
	status := o.set.Status.DeepCopy()
	for _, name := range []*string{&status.CurrentRevision, &status.UpdateRevision} {
		if *name == from {
			*name = to
		}
	}
	if status.CurrentRevision == o.set.Status.CurrentRevision && status.UpdateRevision == o.set.Status.UpdateRevision {
		return nil
	}
	now := r.clock.Now()
	c, moving := countsOf(o.set, o.pods, status.CurrentRevision, status.UpdateRevision, now), countsOf(o.set, o.pods, from, from, now)
	if status.CurrentRevision == to {
		c.current += moving.current
	}
	if status.UpdateRevision == to {
		c.updated += moving.updated
	}
	c.store(status)
	if err := r.writeStatus(ctx, o.set, status); err != nil {
		return err
	}
	return fmt.Errorf("%w: its status named revision %s, which equals %s", history.ErrStale, from, to)
}

// writeStatus stores status if it differs. It is fenced by the resource version: counters from an older read of the set
// never replace newer ones (S2).
func (r *Reconciler) writeStatus(ctx context.Context, set *appsv1.StatefulSet, status *appsv1.StatefulSetStatus) error {
	if apiequality.Semantic.DeepEqual(&set.Status, status) {
		return nil
	}
	before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion,
	}, Status: set.Status}
	out := before.DeepCopy()
	out.Status = *status
	err := r.client.Status().Patch(ctx, out, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w to report on: %w", history.ErrStale, err)
	}
	if err != nil {
		return fmt.Errorf("write the status of StatefulSet %s/%s: %w", set.Namespace, set.Name, err)
	}
	r.ledger.Wrote(set.UID, statefulSetResource, out)
	return nil
}
