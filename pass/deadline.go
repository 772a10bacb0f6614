package pass

import (
	"cmp"
	"fmt"
	"math"
	"strings"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/rollback"
	"github.com/cairn-dev/cairn/rollout"
)

// This file observes rollouts for package rollback, which decides which revisions are good and which rollouts have
// failed, and reports its decisions in conditions and events.

// Rollout describes the rollout of a parent, for [Pass.NoteRollout].
type Rollout struct {
	// Plan is nil if nothing could be planned; the progress is unchanged then.
	Plan *rollout.Plan
	// Revision is the update revision, zero if it could not be recorded.
	Revision rollback.Revision
	// Updated is the condition [Updated].
	Updated metav1.Condition
	// Paused means that no child is replaced; OnDelete, only when a user deletes it.
	Paused, OnDelete bool
	// Unproven means that the controller checks children of some kinds, and desires none of them: only a ConfigMap, for
	// example, because the parent is scaled to zero. That counts as no desired children.
	Unproven bool
	// Deadline is the progress deadline of a parent without [rollback.ProgressDeadlineAnnotation]. Zero means
	// [Config.ProgressDeadline].
	Deadline time.Duration
	// MinReady is minReadySeconds. A deadline that is not longer is ignored: every rollout would exceed it.
	MinReady time.Duration
	// Blocker returns a clause about the cause of a rollout that makes no progress. It is called once, when the rollout
	// has failed. If it is nil or returns "", the message of Updated is used.
	Blocker func() string
}

// RolloutConditions are the conditions of a rollout.
type RolloutConditions struct {
	Updated metav1.Condition
	// Stalled is nil for a parent without a deadline. Good is nil if no good revision is known.
	Stalled, Good *metav1.Condition
}

// Set sets them in a list in place. It removes [rollback.Stalled] from a parent that no longer has a deadline.
func (c RolloutConditions) Set(conditions *[]metav1.Condition) {
	SetCondition(conditions, c.Updated)
	if c.Good != nil { // not SetCondition, which truncates messages: the next pass parses this one
		meta.SetStatusCondition(conditions, *c.Good)
	}
	if c.Stalled != nil {
		meta.SetStatusCondition(conditions, *c.Stalled)
	} else if was := find(*conditions, rollback.Stalled); was != nil && rollback.IsOurs(was.Type, was.Reason, was.Message) {
		meta.RemoveStatusCondition(conditions, rollback.Stalled)
	}
}

// rolloutMemory is the memory of a rollout between passes.
type rolloutMemory struct {
	// progress is nil if the rollout has no deadline, or its progress is not known.
	progress *rollback.Progress
	// invalid is the last error about the deadline that was reported.
	invalid string
	// refused is the last rollback that was refused.
	refused *refusal
}

// NoteRollout records the progress of the parent's rollout: for the metrics, the last good revision and the progress
// deadline, at which it requeues the parent. It returns the conditions to be stored.
func (p *Pass) NoteRollout(r Rollout) RolloutConditions {
	m, now := p.memory, metav1.NewTime(p.Now())
	if r.Plan != nil && !r.Paused && r.Updated.Reason == RolloutWaiting && permitted(*r.Plan) {
		r.Updated.Reason = RolloutHeld // a pause is not the end
	}
	out := RolloutConditions{Updated: r.Updated}
	deadline, err := rollback.Deadline(p.Parent.GetAnnotations(), cmp.Or(r.Deadline, p.controller.ProgressDeadline), r.MinReady)
	good := rollback.GoodOf(p.Parent)
	if m.progress == nil {
		m.progress = rollback.ProgressOf(p.Parent)
	}
	if deadline > 0 || m.progress != nil {
		out.Updated, out.Stalled = p.noteProgress(r, cmp.Or(deadline, unlimited), good)
	}
	// A rollback is reported until the next edit, also if the deadline was removed.
	if deadline == 0 && m.progress.LastRollback(rollback.NoteOf(p.Parent)) == nil {
		m.progress, out.Stalled = nil, nil
	}
	if err != nil {
		out.Stalled = &metav1.Condition{
			Type: rollback.Stalled, Status: metav1.ConditionUnknown, Reason: rollback.InvalidProgressDeadline, Message: err.Error(),
			LastTransitionTime: now,
		}
		if m.invalid != err.Error() {
			m.invalid = err.Error()
			p.Warn(nil, rollback.InvalidProgressDeadline, "Roll", "%v", err)
		}
	}
	if plan := r.evidence(); plan != nil {
		complete := r.Updated.Status == metav1.ConditionTrue && (m.progress == nil || m.progress.Complete())
		good = good.Observed(r.Revision, complete, plan.Available, plan.Total, p.Now())
		p.measure(*r.Plan, r.Updated, m.progress != nil && m.progress.Failed != "")
	}
	p.good, out.Good = &good, good.Condition(now)
	return out
}

// evidence returns the counts that can show whether the revision works, nil if nothing could be planned.
func (r Rollout) evidence() *rollout.Plan {
	if r.Plan != nil && r.Unproven {
		return &rollout.Plan{}
	}
	return r.Plan
}

// unlimited is a deadline that no rollout exceeds.
const unlimited = time.Duration(math.MaxInt64)

// noteProgress records the progress of a rollout that has a deadline. It returns the conditions [Updated] and
// [rollback.Stalled]; the latter is nil if the progress is not known. good is parsed from the status.
func (p *Pass) noteProgress(r Rollout, deadline time.Duration, good rollback.Good) (metav1.Condition, *metav1.Condition) {
	m, updated := p.memory, r.Updated
	seen := rollback.Seen{
		Revision: cmp.Or(r.Revision.Name, fmt.Sprintf("generation/%d", p.Parent.GetGeneration())),
		Updated:  updated.Status == metav1.ConditionTrue, Paused: r.Paused, OnDelete: r.OnDelete,
		Note: rollback.NoteOf(p.Parent), Now: p.Now(), Deadline: deadline,
	}
	if plan := r.evidence(); plan != nil {
		seen.Plan, seen.Held = *plan, !seen.Updated && permitted(*r.Plan) && (r.Plan.Held > 0 || updated.Reason != RolloutProgressing)
		m.progress = seen.Next(m.progress)
	}
	is := m.progress
	if is == nil {
		return updated, nil
	}
	if left := is.Left(seen); !is.Over() && left > 0 {
		p.RequeueAfter(left)
	} else if !is.Over() {
		updated = p.expire(is, r, deadline, good)
	}
	stalled := is.Condition(seen.Note, metav1.NewTime(seen.Now))
	return updated, &stalled
}

// expire records the cause of the failure, and returns the condition [Updated] with it.
func (p *Pass) expire(is *rollback.Progress, r Rollout, deadline time.Duration, good rollback.Good) metav1.Condition {
	first := is.Failed == ""
	if first {
		why := r.Updated.Message
		if r.Blocker != nil {
			why = cmp.Or(r.Blocker(), why)
		}
		is.Failed = fmt.Sprintf("no progress for %s: %s", deadline, Cut(strings.Join(strings.Fields(why), " "), maxMessage/2))
	}
	if !r.Revision.IsZero() {
		p.failure = &rollback.Failure{
			Revision: r.Revision.Name, Reason: is.Failed, Made: is.Done.Made, Available: is.Done.Available,
			To: good.Target(r.Revision.Name), Now: p.Now(),
		}
	}
	c := r.Updated
	c.Status, c.Reason, c.Message = metav1.ConditionFalse, rollback.ProgressDeadlineExceeded, is.Failed+p.notUndone()
	if !strings.HasSuffix(is.Failed, ": "+r.Updated.Message) {
		c.Message += "; " + r.Updated.Message
	}
	if first {
		p.Warn(nil, rollback.ProgressDeadlineExceeded, "Roll", "%s", c.Message)
	}
	return c
}
