package replicaset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file writes status: counters from what was seen before anything was done, and a condition while something fails. It
// writes what differs at once: a Deployment waits for it.

// report stores what a pass saw, and the error with which its writes to pods ended, if any.
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, o *observed, plan *plan, failed error) error {
	status := o.set.Status.DeepCopy()
	c := plan.counts
	status.Replicas, status.FullyLabeledReplicas = c.replicas, c.fullyLabeled
	status.ReadyReplicas, status.AvailableReplicas = c.ready, c.available
	if r.flavor.terminating && !r.unserved.Load() {
		status.TerminatingReplicas = &c.terminating
	}
	status.ObservedGeneration = max(status.ObservedGeneration, o.set.Generation)
	switch {
	case failed == nil:
		status.Conditions = slices.DeleteFunc(slices.Clone(status.Conditions), isFailure)
	case plan.missing > 0:
		fail(status, "FailedCreate", pass.FirstLine(failed), metav1.NewTime(p.Now()))
	default:
		fail(status, "FailedDelete", pass.FirstLine(failed), metav1.NewTime(p.Now()))
	}
	return r.writeStatus(ctx, p, o.set, status)
}

// refuse reports a parent that nothing can be done for before somebody edits it.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, set *appsv1.ReplicaSet, reason, message string) error {
	status := set.Status.DeepCopy()
	fail(status, reason, message, metav1.NewTime(p.Now()))
	p.Warn(nil, reason, "Reconcile", "%s", message)
	return r.writeStatus(ctx, p, set, status)
}

// fail sets the condition that Deployments and people look at.
func fail(status *appsv1.ReplicaSetStatus, reason, message string, now metav1.Time) {
	var conditions []metav1.Condition
	if i := slices.IndexFunc(status.Conditions, isFailure); i >= 0 {
		was := status.Conditions[i]
		conditions = append(conditions, metav1.Condition{
			Type: string(was.Type), Status: metav1.ConditionStatus(was.Status), LastTransitionTime: was.LastTransitionTime,
		})
	}
	pass.SetCondition(&conditions, metav1.Condition{
		Type: string(appsv1.ReplicaSetReplicaFailure), Status: metav1.ConditionTrue, LastTransitionTime: now, Reason: reason, Message: message,
	})
	c := appsv1.ReplicaSetCondition{
		Type: appsv1.ReplicaSetReplicaFailure, Status: corev1.ConditionStatus(conditions[0].Status),
		LastTransitionTime: conditions[0].LastTransitionTime, Reason: conditions[0].Reason, Message: conditions[0].Message,
	}
	status.Conditions = append(slices.DeleteFunc(slices.Clone(status.Conditions), isFailure), c)
}

func isFailure(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }

func (r *Reconciler) writeStatus(ctx context.Context, p *pass.Pass, set *appsv1.ReplicaSet, status *appsv1.ReplicaSetStatus) error {
	after := r.flavor.withStatus(set, status)
	written, err := p.WriteStatus(ctx, r.flavor.withStatus(set, &set.Status), after, true)
	if written && status.TerminatingReplicas != nil && r.flavor.read(after).Status.TerminatingReplicas == nil {
		r.unserved.Store(true) // or every pass would write it again
	}
	return err
}
