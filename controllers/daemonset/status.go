package daemonset

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
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
func (r *Reconciler) report(ctx context.Context, p *pass.Pass, ds *appsv1.DaemonSet, rep report) error {
	status := ds.Status.DeepCopy()
	c := rep.plan.counts
	status.DesiredNumberScheduled = c.desired
	status.CurrentNumberScheduled = c.current
	status.NumberMisscheduled = c.misscheduled
	status.NumberReady = c.ready
	status.UpdatedNumberScheduled = c.updated
	status.NumberAvailable = c.available
	status.NumberUnavailable = c.desired - c.available
	if rep.recorded.Update != nil {
		status.ObservedGeneration = max(status.ObservedGeneration, ds.Generation)
	}
	if rep.recorded.Collisions != nil {
		status.CollisionCount = rep.recorded.Collisions
	}
	conditions := pass.ConditionsOf(status.Conditions, conditionFields)
	p.NoteRollout(rep.rollout(ds, p.Now())).Set(&conditions)
	rep.recorded.SetHealthy(p, &conditions, nil, p.Now())
	return r.writeStatus(ctx, p, ds, status, conditions)
}

// refuse reports a DaemonSet that nothing can be done for before it is edited.
func (r *Reconciler) refuse(ctx context.Context, p *pass.Pass, ds *appsv1.DaemonSet, reason, message string) error {
	status := ds.Status.DeepCopy()
	conditions := pass.ConditionsOf(status.Conditions, conditionFields)
	pass.SetCondition(&conditions, metav1.Condition{
		Type: pass.Updated, Status: metav1.ConditionFalse, Reason: reason, Message: message, LastTransitionTime: metav1.NewTime(p.Now()),
	})
	p.Warn(nil, reason, "Reconcile", "%s", message)
	return r.writeStatus(ctx, p, ds, status, conditions)
}

func (r *Reconciler) writeStatus(
	ctx context.Context, p *pass.Pass, ds *appsv1.DaemonSet, status *appsv1.DaemonSetStatus, conditions []metav1.Condition,
) error {
	was := pass.ConditionsOf(ds.Status.Conditions, conditionFields)
	done := status.UpdatedNumberScheduled == status.DesiredNumberScheduled && status.NumberAvailable == status.DesiredNumberScheduled
	urgent := pass.Urgent(was, conditions, status.ObservedGeneration == ds.Status.ObservedGeneration, done)
	status.Conditions = pass.StoredConditions(conditions, conditionFields)
	before := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID, ResourceVersion: ds.ResourceVersion,
	}, Status: ds.Status}
	after := before.DeepCopy()
	after.Status = *status
	_, err := p.WriteStatus(ctx, before, after, urgent)
	return err
}

// conditionFields says where the fields of a condition are.
func conditionFields(c *appsv1.DaemonSetCondition) pass.ConditionFields[appsv1.DaemonSetConditionType] {
	return pass.ConditionFields[appsv1.DaemonSetConditionType]{
		Type: &c.Type, Status: &c.Status, LastTransitionTime: &c.LastTransitionTime, Reason: &c.Reason, Message: &c.Message,
	}
}

// rollout is how far the rollout is.
func (rep report) rollout(ds *appsv1.DaemonSet, now time.Time) pass.Rollout {
	return pass.Rollout{
		Plan: &rep.plan.rollout, Revision: rep.recorded.UpdateName(), Updated: rep.updated(ds, metav1.NewTime(now)),
		Stopped:  ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType,
		MinReady: time.Duration(ds.Spec.MinReadySeconds) * time.Second, Blocker: rep.blocker,
	}
}

// blocker says why a pod of the update revision is not ready.
func (rep report) blocker() string {
	return readiness.FirstBlocker(slices.DeleteFunc(slices.Clone(rep.pods), func(pod *corev1.Pod) bool {
		update := rep.recorded.Update
		return update == nil || pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != update.Hash
	}))
}

// updated says how far the rollout is.
func (rep report) updated(ds *appsv1.DaemonSet, now metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: pass.Updated, Status: metav1.ConditionFalse, LastTransitionTime: now}
	p := rep.plan.rollout
	progress := fmt.Sprintf("%d of %d pods updated", p.Updated, p.Total)
	switch {
	case rep.recorded.Update == nil:
		c.Reason, c.Message = "RevisionNotRecorded", "no pod is replaced before the revision that the spec asks for is recorded"
	case rep.failed != nil:
		c.Reason, c.Message = "RolloutFailing", progress+"; "+pass.FirstLine(rep.failed)
	case p.Complete() && len(p.Waiting) == 0: // a node that takes no new pod may hold an old and a new one
		c.Status, c.Reason = metav1.ConditionTrue, "OnLatestRevision"
		c.Message = fmt.Sprintf("latest ControllerRevision: %s", rep.recorded.Update.Name)
	case len(p.Steps) > 0:
		c.Reason = pass.RolloutProgressing
		c.Message = fmt.Sprintf("%s; %s: %s", progress, p.Steps[0].Unit, p.Steps[0].Reason)
	case !p.Complete() && ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		c.Reason, c.Message = pass.RolloutWaiting, progress+"; the strategy is OnDelete, so the others are updated when they are deleted"
	case len(p.Waiting) > 0:
		c.Reason = pass.RolloutWaiting
		c.Message = fmt.Sprintf("%s; %s: %s%s", progress, p.Waiting[0].Unit, p.Waiting[0].Reason, downBeside(p))
	case rep.plan.paused != "":
		c.Reason, c.Message = pass.RolloutWaiting, progress+"; "+rep.plan.paused
	default:
		c.Reason, c.Message = pass.RolloutProgressing, progress+"; waiting for new pods to start"
	}
	return c
}

// downBeside names the first nodes without an available pod, but for the one that waits: one of them may be what is
// waited for.
func downBeside(p rollout.Plan) string {
	const most = 3
	var names []string
	for _, name := range p.Down {
		if name != p.Waiting[0].Unit {
			names = append(names, name)
		}
	}
	switch n := len(names); {
	case n == 0:
		return ""
	case n > most:
		return fmt.Sprintf("; unavailable: %s, and %d more", strings.Join(names[:most], ", "), n-most)
	default:
		return "; unavailable: " + strings.Join(names, ", ")
	}
}
