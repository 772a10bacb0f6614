package replicaset

import (
	"context"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file writes status: counters from what was seen before anything was done, and a condition while something fails. It
// writes only what differs, and once a pass.

// report stores what a pass saw, and the error with which its writes to pods ended, if any.
func (r *Reconciler) report(ctx context.Context, o *observed, p *plan, failed error) error {
	status := o.set.Status.DeepCopy()
	c := p.counts
	status.Replicas, status.FullyLabeledReplicas = c.replicas, c.fullyLabeled
	status.ReadyReplicas, status.AvailableReplicas = c.ready, c.available
	if r.flavor.terminating && !r.unserved.Load() {
		status.TerminatingReplicas = &c.terminating
	}
	status.ObservedGeneration = max(status.ObservedGeneration, o.set.Generation)
	switch {
	case failed == nil:
		status.Conditions = withoutFailure(status.Conditions)
	case p.missing > 0:
		r.fail(status, "FailedCreate", firstLine(failed))
	default:
		r.fail(status, "FailedDelete", firstLine(failed))
	}
	return r.writeStatus(ctx, o.parent, status)
}

// refuse reports a parent that nothing can be done for before somebody edits it.
func (r *Reconciler) refuse(ctx context.Context, parent client.Object, reason, message string) error {
	status := r.flavor.read(parent).Status.DeepCopy()
	r.fail(status, reason, message)
	r.recorder.Eventf(parent, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", message)
	return r.writeStatus(ctx, parent, status)
}

// fail sets the condition that Deployments and people look at.
func (r *Reconciler) fail(status *appsv1.ReplicaSetStatus, reason, message string) {
	c := appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionTrue, LastTransitionTime: metav1.NewTime(r.clock.Now()),
		Reason: reason, Message: message,
	}
	i := slices.IndexFunc(status.Conditions, isFailure)
	if i < 0 {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if status.Conditions[i].Status == c.Status {
		c.LastTransitionTime = status.Conditions[i].LastTransitionTime
	}
	status.Conditions[i] = c
}

func isFailure(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }

func withoutFailure(conditions []appsv1.ReplicaSetCondition) []appsv1.ReplicaSetCondition {
	return slices.DeleteFunc(slices.Clone(conditions), isFailure)
}

// firstLine is the first of several joined errors. The others are most likely the same, and as many as there are pods.
func firstLine(err error) string {
	line, _, _ := strings.Cut(err.Error(), "\n")
	return line
}

// writeStatus stores status if it differs. It is fenced by the resource version: counters from an older read of the parent
// never replace newer ones (S2).
func (r *Reconciler) writeStatus(ctx context.Context, parent client.Object, status *appsv1.ReplicaSetStatus) error {
	set := r.flavor.read(parent)
	if apiequality.Semantic.DeepEqual(&set.Status, status) {
		return nil
	}
	before, out := r.flavor.withStatus(set, &set.Status), r.flavor.withStatus(set, status)
	err := r.client.Status().Patch(ctx, out, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w: %w", errStale, err)
	}
	if err != nil {
		return fmt.Errorf("write the status of %s: %w", r.describe(set), err)
	}
	if status.TerminatingReplicas != nil && r.flavor.read(out).Status.TerminatingReplicas == nil {
		r.unserved.Store(true) // or every pass would write it again
	}
	r.ledger.Wrote(set.UID, r.flavor.resource, out)
	return nil
}
