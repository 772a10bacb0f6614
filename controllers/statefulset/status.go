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

// report stores what rep says. If the update revision could not be recorded, the names of revisions and the observed
// generation stay as they are: kubectl would take the counters of the old revision for the end of the new rollout.
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, rep report) (stored bool, err error) {
	status := set.Status.DeepCopy()
	rep.plan.counts.store(status)
	if rep.recorded.Update != nil {
		status.CurrentRevision, status.UpdateRevision = rep.current, rep.recorded.Update.Name
		status.ObservedGeneration = max(status.ObservedGeneration, set.Generation)
	}
	if rep.recorded.Collisions != nil {
		status.CollisionCount = rep.recorded.Collisions
	}
	rollout := p.NoteRollout(rep.rollout(set, p.Now()))
	return r.writeStatus(ctx, p, set, status, func(conditions *[]metav1.Condition) {
		rollout.Set(conditions)
		rep.setProgressing(set, conditions, metav1.NewTime(p.Now()))
		rep.recorded.SetHealthy(p, conditions, set.Spec.RevisionHistoryLimit, p.Now())
	})
}

// refuse stores why nothing is done for a StatefulSet.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, why *pass.RefusedError) error {
	set := asStatefulSet(p.Parent)
	_, err := r.writeStatus(ctx, p, set, set.Status.DeepCopy(), why.Conditions(p).Set)
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
	if _, err := r.writeStatus(ctx, p, o.set, status, func(*[]metav1.Condition) {}); err != nil {
		return err
	}
	return fmt.Errorf("%w: its status named revision %s, which equals %s", ownership.ErrStale, from, to)
}

func (r *Reconciler) writeStatus(
	ctx context.Context, p *pass.Pass, set *appsv1.StatefulSet, status *appsv1.StatefulSetStatus, change func(*[]metav1.Condition),
) (stored bool, err error) {
	var urgent bool
	was := set.Status
	status.Conditions, urgent = pass.Conditions(was.Conditions, conditionFields, change)
	_, count := ordinals(set)
	wanted := int32(count)
	done := status.Replicas == wanted && status.UpdatedReplicas == wanted && status.AvailableReplicas == wanted
	named := status.CurrentRevision != was.CurrentRevision || status.UpdateRevision != was.UpdateRevision
	urgent = urgent || done || named || status.ObservedGeneration != was.ObservedGeneration
	before := &appsv1.StatefulSet{ObjectMeta: pass.Identity(set), Status: was}
	return p.WriteStatus(ctx, before, &appsv1.StatefulSet{ObjectMeta: pass.Identity(set), Status: *status}, urgent)
}

// conditionFields says where the fields of a condition are.
func conditionFields(c *appsv1.StatefulSetCondition) pass.ConditionFields[appsv1.StatefulSetConditionType] {
	return pass.ConditionFields[appsv1.StatefulSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}
