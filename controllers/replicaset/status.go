package replicaset

import (
	"context"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file writes status: counters from what was seen before anything was done, and a condition while something fails.
// It writes what differs at once: a Deployment waits for it.

// report stores what a pass saw, and the error with which its writes to pods ended, if any.
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, o *observed, plan *plan, failed error) error {
	status := o.set.Status.DeepCopy()
	c := plan.counts
	status.Replicas, status.FullyLabeledReplicas = c.replicas, c.fullyLabeled
	status.ReadyReplicas, status.AvailableReplicas = c.ready, c.available
	if r.kind.terminating && !r.unserved.Load() {
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

// refuse stores why nothing is done for a parent.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, why *pass.RefusedError) error {
	set := r.kind.read(p.Parent)
	status := set.Status.DeepCopy()
	fail(status, why.Reason, why.Error(), metav1.NewTime(p.Now()))
	return r.writeStatus(ctx, p, set, status)
}

// fail sets the condition that Deployments and users look at.
func fail(status *appsv1.ReplicaSetStatus, reason, message string, now metav1.Time) {
	status.Conditions, _ = pass.Conditions(status.Conditions, conditionFields, func(conditions *[]metav1.Condition) {
		pass.SetCondition(conditions, metav1.Condition{
			Type: string(appsv1.ReplicaSetReplicaFailure), Status: metav1.ConditionTrue, LastTransitionTime: now, Reason: reason, Message: message,
		})
	})
}

// conditionFields says where the fields of a condition are.
func conditionFields(c *appsv1.ReplicaSetCondition) pass.ConditionFields[appsv1.ReplicaSetConditionType] {
	return pass.ConditionFields[appsv1.ReplicaSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}

func isFailure(c appsv1.ReplicaSetCondition) bool { return c.Type == appsv1.ReplicaSetReplicaFailure }

func (r *Reconciler) writeStatus(ctx context.Context, p *pass.Pass, set *appsv1.ReplicaSet, status *appsv1.ReplicaSetStatus) error {
	after := r.kind.withStatus(set, status)
	stored, err := p.WriteStatus(ctx, r.kind.withStatus(set, &set.Status), after, true)
	if stored && status.TerminatingReplicas != nil && r.kind.read(after).Status.TerminatingReplicas == nil {
		r.unserved.Store(true) // or every pass would write it again
	}
	return err
}
