package statefulset

import (
	"context"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file writes status: counters from what was seen, the names of both revisions, conditions that say why. It writes
// only if something differs, and once a pass.

// report stores what rep says, and reports whether it wrote. If the update revision could not be recorded, the names of
// revisions and the observed generation stay as they are: kubectl would take the counters of the old revision for the
// end of the new rollout.
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, rep report) (written bool, err error) {
	status := set.Status.DeepCopy()
	rep.plan.counts.store(status)
	if rep.recorded.Update != nil {
		status.CurrentRevision, status.UpdateRevision = rep.current, rep.recorded.Update.Name
		status.ObservedGeneration = max(status.ObservedGeneration, set.Generation)
	}
	if rep.recorded.Collisions != nil {
		status.CollisionCount = rep.recorded.Collisions
	}
	conditions := pass.ConditionsOf(status.Conditions, conditionFields)
	p.NoteRollout(rep.rollout(set, p.Now())).Set(&conditions)
	rep.setProgressing(set, &conditions, metav1.NewTime(p.Now()))
	rep.recorded.SetHealthy(p, &conditions, set.Spec.RevisionHistoryLimit, p.Now())
	status.Conditions = pass.StoredConditions(conditions, conditionFields)
	names := status.CurrentRevision == set.Status.CurrentRevision && status.UpdateRevision == set.Status.UpdateRevision
	was := pass.ConditionsOf(set.Status.Conditions, conditionFields)
	_, count := ordinals(set)
	wanted := int32(count)
	done := status.Replicas == wanted && status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted
	urgent := !names || pass.Urgent(was, conditions, status.ObservedGeneration == set.Status.ObservedGeneration, done)
	return r.writeStatus(ctx, p, set, status, urgent)
}

// refuse reports a set that nothing can be done for before it is edited.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, reason, message string) error {
	status := set.Status.DeepCopy()
	conditions := pass.ConditionsOf(status.Conditions, conditionFields)
	pass.SetCondition(&conditions, metav1.Condition{
		Type: pass.Updated, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(p.Now()),
	})
	status.Conditions = pass.StoredConditions(conditions, conditionFields)
	p.Warn(nil, reason, "Reconcile", "%s", message)
	_, err := r.writeStatus(ctx, p, set, status, true)
	return err
}

// rename replaces the name of a duplicate revision in status, before it is deleted, and counts again: the pods that
// name it will soon name the other one. It returns an error that wraps [ownership.ErrStale] if it wrote, because that
// write outdates the set as it was read.
func (r *Reconciler) rename(ctx context.Context, p *pass.Pass, o *observed, from, to string) error {
	status := o.set.Status.DeepCopy()
	for _, name := range []*string{&status.CurrentRevision, &status.UpdateRevision} {
		if *name == from {
			*name = to
		}
	}
	if status.CurrentRevision == o.set.Status.CurrentRevision && status.UpdateRevision == o.set.Status.UpdateRevision {
		return nil
	}
	now := p.Now()
	c, moving := countsOf(o.set, o.pods, status.CurrentRevision, status.UpdateRevision, now), countsOf(o.set, o.pods, from, from, now)
	if status.CurrentRevision == to {
		c.current += moving.current
	}
	if status.UpdateRevision == to {
		c.updated += moving.updated
	}
	c.store(status)
	if _, err := r.writeStatus(ctx, p, o.set, status, true); err != nil {
		return err
	}
	return fmt.Errorf("%w: its status named revision %s, which equals %s", ownership.ErrStale, from, to)
}

func (r *Reconciler) writeStatus(
	ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, status *appsv1.StatefulSetStatus, urgent bool,
) (written bool, err error) {
	before := &appsv1.StatefulSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: set.Namespace, Name: set.Name, UID: set.UID, ResourceVersion: set.ResourceVersion,
	}, Status: set.Status}
	after := before.DeepCopy()
	after.Status = *status
	return p.WriteStatus(ctx, before, after, urgent)
}

// conditionFields says where the fields of a condition are.
func conditionFields(c *appsv1.StatefulSetCondition) pass.ConditionFields[appsv1.StatefulSetConditionType] {
	return pass.ConditionFields[appsv1.StatefulSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}
