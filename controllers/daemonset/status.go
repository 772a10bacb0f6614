package daemonset

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file reports: counters from what was seen, conditions that say why, and one write if anything differs.

// Condition types of a DaemonSet that cairn runs.
const (
	// ConditionUpdated is True once every pod comes from the revision that the spec asks for, and says until then what
	// the rollout does or waits for. Its reasons are those of composite controllers.
	ConditionUpdated appsv1.DaemonSetConditionType = "Updated"
	// ConditionHistoryHealthy is False while the revision history cannot be kept or read, and says why. It is absent
	// where that never happened.
	ConditionHistoryHealthy appsv1.DaemonSetConditionType = "HistoryHealthy"
)

// report is what a pass found out.
type report struct {
	plan *plan
	// update is the revision the pods should come from, nil if none could be recorded.
	update *revision.Revision
	// collisions is the count to store.
	collisions *int32
	// undecodable are the revisions that cannot be read; recordErr is why the update revision could not be stored, actErr
	// what went wrong with pods.
	undecodable       []revision.Revision
	recordErr, actErr error
}

// report stores what rep says, and tells in an event when the history is found not to be healthy. Where a revision could
// not be stored, the caller has told already.
func (r *Reconciler) report(ctx context.Context, ds *appsv1.DaemonSet, rep report) error {
	status := ds.Status.DeepCopy()
	c := rep.plan.counts
	status.DesiredNumberScheduled = c.desired
	status.CurrentNumberScheduled = c.current
	status.NumberMisscheduled = c.misscheduled
	status.NumberReady = c.ready
	status.UpdatedNumberScheduled = c.updated
	status.NumberAvailable = c.available
	status.NumberUnavailable = c.desired - c.available
	status.ObservedGeneration = max(status.ObservedGeneration, ds.Generation)
	if rep.collisions != nil {
		status.CollisionCount = rep.collisions
	}
	now := metav1.NewTime(r.clock.Now())
	for _, condition := range rep.conditions(ds) {
		setCondition(status, condition, now)
	}
	if err := r.writeStatus(ctx, ds, status); err != nil {
		return err
	}
	was, is := findCondition(ds.Status.Conditions, ConditionHistoryHealthy), findCondition(status.Conditions, ConditionHistoryHealthy)
	if is != nil && is.Status == corev1.ConditionFalse && rep.recordErr == nil && (was == nil || was.Reason != is.Reason) {
		r.recorder.Eventf(ds, nil, corev1.EventTypeWarning, is.Reason, "Report", "%s", is.Message)
	}
	return nil
}

// refuse reports a DaemonSet that nothing can be done for before somebody edits it.
func (r *Reconciler) refuse(ctx context.Context, ds *appsv1.DaemonSet, reason, message string) error {
	status := ds.Status.DeepCopy()
	c := appsv1.DaemonSetCondition{Type: ConditionUpdated, Status: corev1.ConditionFalse, Reason: reason, Message: message}
	setCondition(status, c, metav1.NewTime(r.clock.Now()))
	r.recorder.Eventf(ds, nil, corev1.EventTypeWarning, reason, "Reconcile", "%s", message)
	return r.writeStatus(ctx, ds, status)
}

// writeStatus stores status, if it differs. It is fenced by the resource version: counters from an older read of the
// DaemonSet never replace newer ones (S2).
func (r *Reconciler) writeStatus(ctx context.Context, ds *appsv1.DaemonSet, status *appsv1.DaemonSetStatus) error {
	if apiequality.Semantic.DeepEqual(&ds.Status, status) {
		return nil
	}
	before := &appsv1.DaemonSet{ObjectMeta: metav1.ObjectMeta{
		Namespace: ds.Namespace, Name: ds.Name, UID: ds.UID, ResourceVersion: ds.ResourceVersion,
	}, Status: ds.Status}
	out := before.DeepCopy()
	out.Status = *status
	err := r.client.Status().Patch(ctx, out, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	if apierrors.IsConflict(err) {
		return fmt.Errorf("%w to report on: %w", history.ErrStale, err)
	}
	if err != nil {
		return fmt.Errorf("write the status of DaemonSet %s/%s: %w", ds.Namespace, ds.Name, err)
	}
	r.ledger.Wrote(ds.UID, daemonSetResource, out)
	return nil
}

// conditions says what the report means in words.
func (rep report) conditions(ds *appsv1.DaemonSet) []appsv1.DaemonSetCondition {
	out := []appsv1.DaemonSetCondition{rep.updated(ds)}
	healthy := rep.healthy()
	if healthy.Status == corev1.ConditionTrue && findCondition(ds.Status.Conditions, ConditionHistoryHealthy) == nil {
		return out // it never was otherwise
	}
	return append(out, healthy)
}

// healthy says whether the history is kept, and can be read.
func (rep report) healthy() appsv1.DaemonSetCondition {
	c := appsv1.DaemonSetCondition{Type: ConditionHistoryHealthy, Status: corev1.ConditionFalse}
	var tooLarge *history.TooLargeError
	switch {
	case errors.As(rep.recordErr, &tooLarge):
		c.Reason, c.Message = "SnapshotTooLarge", rep.recordErr.Error()
	case rep.recordErr != nil:
		c.Reason, c.Message = "RecordFailed", rep.recordErr.Error()
	case len(rep.undecodable) > 0:
		c.Reason = "RevisionUnreadable"
		c.Message = fmt.Sprintf("%v; it is kept and ignored; delete it if nobody needs it", rep.undecodable[0].Err)
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "Recorded", "the revision history is recorded and readable"
	}
	return c
}

// updated says how far the rollout is.
func (rep report) updated(ds *appsv1.DaemonSet) appsv1.DaemonSetCondition {
	c := appsv1.DaemonSetCondition{Type: ConditionUpdated, Status: corev1.ConditionFalse}
	p := rep.plan.rollout
	progress := fmt.Sprintf("%d of %d pods updated", p.Updated, p.Total)
	switch {
	case rep.update == nil:
		c.Reason, c.Message = "RevisionNotRecorded", "no pod is touched before the revision that the spec asks for is recorded"
	case rep.actErr != nil:
		first, _, _ := strings.Cut(rep.actErr.Error(), "\n") // the others are most likely the same
		c.Reason, c.Message = "RolloutFailing", progress+"; "+first
	case p.Complete() && len(p.Waiting) == 0: // a node that is to take no new pod may hold an old and a new one
		c.Status, c.Reason = corev1.ConditionTrue, "OnLatestRevision"
		c.Message = fmt.Sprintf("latest ControllerRevision: %s", rep.update.Name)
	case len(p.Steps) > 0:
		c.Reason = "RolloutProgressing"
		c.Message = fmt.Sprintf("%s; %s: %s", progress, p.Steps[0].Unit, p.Steps[0].Reason)
	case !p.Complete() && ds.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType:
		c.Reason, c.Message = "RolloutWaiting", progress+"; the strategy is OnDelete, so the others are updated when somebody deletes them"
	case len(p.Waiting) > 0:
		c.Reason = "RolloutWaiting"
		c.Message = fmt.Sprintf("%s; %s: %s", progress, p.Waiting[0].Unit, p.Waiting[0].Reason)
	default:
		c.Reason, c.Message = "RolloutProgressing", progress+"; waiting for new pods to start"
	}
	return c
}

func setCondition(status *appsv1.DaemonSetStatus, c appsv1.DaemonSetCondition, now metav1.Time) {
	old := findCondition(status.Conditions, c.Type)
	c.LastTransitionTime = now
	if old == nil {
		status.Conditions = append(status.Conditions, c)
		return
	}
	if old.Status == c.Status {
		c.LastTransitionTime = old.LastTransitionTime
	}
	*old = c
}

func findCondition(conditions []appsv1.DaemonSetCondition, t appsv1.DaemonSetConditionType) *appsv1.DaemonSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1.DaemonSetCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
