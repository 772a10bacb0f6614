package statefulset

import (
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollout"
)

// This file says in words what a pass found out.

// Condition types of a StatefulSet that cairn runs.
const (
	// ConditionUpdated is True once every pod comes from the revision that the spec asks for and no other is left, and
	// says until then what the rollout does or waits for, or what keeps it from anything. Its reasons are those of composite controllers.
	ConditionUpdated appsv1.StatefulSetConditionType = "Updated"
	// ConditionHistoryHealthy is False while the revision history cannot be kept or read, and says why. It is absent
	// where that never happened.
	ConditionHistoryHealthy appsv1.StatefulSetConditionType = "HistoryHealthy"
)

// report is what a pass found out.
type report struct {
	plan *plan
	// update is the revision the pods should come from, nil if none could be recorded. current is the name of the one that
	// those pods come from which are not updated.
	update  *revision.Revision
	current string
	// collisions is the count to store.
	collisions *int32
	// undecodable are the revisions that cannot be read; recordErr is why the update revision could not be stored, actErr
	// what went wrong with pods and claims.
	undecodable       []revision.Revision
	recordErr, actErr error
}

// conditions says what the report means in words.
func (rep report) conditions(set *appsv1.StatefulSet) []appsv1.StatefulSetCondition {
	out := []appsv1.StatefulSetCondition{rep.updated(set)}
	healthy := rep.healthy(set)
	if healthy.Status == corev1.ConditionTrue && findCondition(set.Status.Conditions, ConditionHistoryHealthy) == nil {
		return out // it never was otherwise
	}
	return append(out, healthy)
}

// healthy says whether the history is kept, and can be read.
func (rep report) healthy(set *appsv1.StatefulSet) appsv1.StatefulSetCondition {
	c := appsv1.StatefulSetCondition{Type: ConditionHistoryHealthy, Status: corev1.ConditionFalse}
	var tooLarge *history.TooLargeError
	switch limit := set.Spec.RevisionHistoryLimit; {
	case errors.As(rep.recordErr, &tooLarge):
		c.Reason, c.Message = "SnapshotTooLarge", rep.recordErr.Error()
	case rep.recordErr != nil:
		c.Reason, c.Message = "RecordFailed", rep.recordErr.Error()
	case len(rep.undecodable) > 0:
		c.Reason = "RevisionUnreadable"
		c.Message = fmt.Sprintf("%v; it is kept and ignored; delete it if nobody needs it", rep.undecodable[0].Err)
	case limit != nil && *limit < 0:
		c.Reason = "NegativeHistoryLimit"
		c.Message = fmt.Sprintf("spec.revisionHistoryLimit is %d, which keeps every revision for ever; set 0 or more", *limit)
	default:
		c.Status, c.Reason, c.Message = corev1.ConditionTrue, "Recorded", "the revision history is recorded and readable"
	}
	return c
}

// updated says how far the rollout is.
func (rep report) updated(set *appsv1.StatefulSet) appsv1.StatefulSetCondition {
	c := appsv1.StatefulSetCondition{Type: ConditionUpdated, Status: corev1.ConditionFalse}
	if rep.update == nil {
		c.Reason, c.Message = "RevisionNotRecorded", "no pod is touched before the revision that the spec asks for is recorded"
		return c
	}
	p := rep.plan.rollout
	progress := fmt.Sprintf("%d of %d pods updated", p.Updated, p.Total)
	switch {
	case rep.actErr != nil:
		c.Reason, c.Message = "RolloutFailing", fmt.Sprintf("%s; %v", progress, rep.actErr)
	case len(rep.plan.guarded) > 0:
		lost := slices.IndexFunc(rep.plan.waits, func(w rollout.Wait) bool { return w.Unit == rep.plan.guarded[0] })
		c.Reason, c.Message = "CurrentRevisionLost", fmt.Sprintf("%s; %s: %s", progress, rep.plan.waits[lost].Unit, rep.plan.waits[lost].Reason)
	case p.Complete() && rep.plan.surplus == 0:
		c.Status, c.Reason = corev1.ConditionTrue, "OnLatestRevision"
		c.Message = rep.plan.onLatest(rep.update.Name)
	default:
		var why string
		c.Reason, why = rep.plan.underWay(set.Spec.UpdateStrategy.Type == appsv1.OnDeleteStatefulSetStrategyType)
		c.Message = progress + "; " + why
	}
	return c
}

// underWay says what a plan that is not at its end does, or waits for.
func (p *plan) underWay(onDelete bool) (reason, why string) {
	complete := p.rollout.Complete()
	switch waits := slices.Concat(p.rollout.Waiting, p.waits); {
	case len(p.deletes) > 0:
		return "RolloutProgressing", fmt.Sprintf("%s: %s", p.deletes[0].pod.Name, p.deletes[0].reason)
	case complete && len(waits) == 0:
		return "RolloutProgressing", fmt.Sprintf("%d more are going", p.surplus)
	case !complete && onDelete && len(p.creates) == 0:
		return "RolloutWaiting", "the strategy is OnDelete, so the others are updated when somebody deletes them"
	case len(waits) > 0:
		return "RolloutWaiting", fmt.Sprintf("%s: %s", waits[0].Unit, waits[0].Reason)
	case len(p.creates) == 0 && p.rollout.Unavailable == 0:
		return "RolloutWaiting", "the others are below the partition"
	default:
		return "RolloutProgressing", "waiting for new pods to start"
	}
}

func setCondition(status *appsv1.StatefulSetStatus, c appsv1.StatefulSetCondition, now metav1.Time) {
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

func findCondition(conditions []appsv1.StatefulSetCondition, t appsv1.StatefulSetConditionType) *appsv1.StatefulSetCondition {
	i := slices.IndexFunc(conditions, func(c appsv1.StatefulSetCondition) bool { return c.Type == t })
	if i < 0 {
		return nil
	}
	return &conditions[i]
}
