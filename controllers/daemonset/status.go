package daemonset

import (
	"context"
	"slices"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
)

// This file reports: counters from what was seen, conditions that say why, and one write if anything differs.

// Condition types of a DaemonSet that cairn runs: see package pass.
const (
	ConditionUpdated        appsv1.DaemonSetConditionType = pass.Updated
	ConditionHistoryHealthy appsv1.DaemonSetConditionType = pass.HistoryHealthy
)

// report is the result of a pass.
type report struct {
	plan     *plan
	recorded *pass.Recorded
	pods     []*corev1.Pod
	// failed is what went wrong with pods.
	failed error
}

// report stores what rep says. If the update revision could not be recorded, the observed generation stays as it is:
// the counters are about the old revision, and if that asks for no pods at all, kubectl would take them for the end of
// the new rollout.
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, o *observed, rep report) (stored bool, err error) {
	status := o.ds.Status.DeepCopy()
	c := rep.plan.counts
	status.DesiredNumberScheduled = c.desired
	status.CurrentNumberScheduled = c.current
	status.NumberMisscheduled = c.misscheduled
	status.NumberReady = c.ready
	status.UpdatedNumberScheduled = c.updated
	status.NumberAvailable = c.available
	status.NumberUnavailable = c.desired - c.available
	if rep.recorded.Update != nil {
		status.ObservedGeneration = max(status.ObservedGeneration, o.ds.Generation)
	}
	if rep.recorded.Collisions != nil {
		status.CollisionCount = rep.recorded.Collisions
	}
	rollout := p.NoteRollout(rep.rollout(o.ds, p.Now()))
	return r.writeStatus(ctx, p, o.ds, status, func(conditions *[]metav1.Condition) {
		rollout.Set(conditions)
		rep.recorded.SetHealthy(p, conditions, nil, p.Now())
	})
}

// refuse stores why nothing is done for a DaemonSet.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, why *pass.RefusedError) error {
	ds := asDaemonSet(p.Parent)
	_, err := r.writeStatus(ctx, p, ds, ds.Status.DeepCopy(), why.Conditions(p).Set)
	return err
}

func (r *Reconciler) writeStatus(
	ctx context.Context, p *pass.Pass, ds *appsv1.DaemonSet, status *appsv1.DaemonSetStatus, set func(*[]metav1.Condition),
) (stored bool, err error) {
	var urgent bool
	status.Conditions, urgent = pass.Conditions(ds.Status.Conditions, conditionFields, set)
	done := status.UpdatedNumberScheduled == status.DesiredNumberScheduled && status.NumberAvailable == status.DesiredNumberScheduled
	urgent = urgent || done || status.ObservedGeneration != ds.Status.ObservedGeneration
	before := &appsv1.DaemonSet{ObjectMeta: pass.Identity(ds), Status: ds.Status}
	return p.WriteStatus(ctx, before, &appsv1.DaemonSet{ObjectMeta: pass.Identity(ds), Status: *status}, urgent)
}

// conditionFields says where the fields of a condition are.
func conditionFields(c *appsv1.DaemonSetCondition) pass.ConditionFields[appsv1.DaemonSetConditionType] {
	return pass.ConditionFields[appsv1.DaemonSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}

// rollout is how far the rollout is.
func (rep report) rollout(ds *appsv1.DaemonSet, now time.Time) pass.Rollout {
	return pass.Report{
		Recorded: rep.recorded, Plan: &rep.plan.rollout, Failed: rep.failed, Child: "pod", Children: "pods", Waits: rep.plan.paused,
		OnDelete: ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		MinReady: time.Duration(ds.Spec.MinReadySeconds) * time.Second, Blocker: rep.blocker,
	}.Rollout(now)
}

// blocker says why a pod of the update revision is not ready.
func (rep report) blocker() string {
	return readiness.FirstBlocker(slices.DeleteFunc(slices.Clone(rep.pods), func(pod *corev1.Pod) bool {
		update := rep.recorded.Update
		return update == nil || pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != update.Hash
	}))
}
