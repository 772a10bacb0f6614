package pass

import (
	"fmt"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/rollout"
)

// This file reports the state of a rollout in the condition [Updated], in the same words for all kinds.

// Report is the result of a pass over a parent whose children come from revisions.
type Report struct {
	Recorded *Recorded
	// Plan is the plan of the rollout.
	Plan *rollout.Plan
	// Failed is what went wrong with children, nil if nothing did.
	Failed error
	// Child and Children are nouns for the messages, such as "pod" and "pods".
	Child, Children string

	// Lost names a child that is not created because its revision is lost. Optional, as all fields that follow.
	Lost string
	// Doing is the current action. Without it the message has the first step of the plan.
	Doing string
	// Blocked is the child that the rollout waits for first. Waits are waits beside those of the plan.
	Blocked string
	Waits   []rollout.Wait
	// Surplus describes children that are not asked for. The rollout is not complete while there are any.
	Surplus string
	// Note is added to the message of a complete rollout.
	Note string
	// OnDelete is true if only users delete old children, Paused if nothing replaces them now.
	OnDelete, Paused bool

	// Unproven, Deadline, MinReady and Blocker are as in [Rollout].
	Unproven           bool
	Deadline, MinReady time.Duration
	Blocker            func() string
}

// Rollout returns how far the rollout is.
func (r Report) Rollout(now time.Time) Rollout {
	c := metav1.Condition{Type: Updated, Status: metav1.ConditionFalse, LastTransitionTime: metav1.NewTime(now)}
	switch {
	case r.Recorded.Update == nil:
		c.Reason = "RevisionNotRecorded"
		c.Message = fmt.Sprintf("no %s is replaced before the revision that the spec asks for is recorded", r.Child)
	case r.Failed == nil && r.Lost == "" && r.complete():
		c.Status, c.Reason = metav1.ConditionTrue, "OnLatestRevision"
		c.Message = "latest ControllerRevision: " + r.Recorded.Update.Name + r.Note
	default:
		var why string
		c.Reason, why = r.underWay()
		c.Message = fmt.Sprintf("%d of %d %s updated; %s", r.Plan.Updated, r.Plan.Total, r.Children, why)
	}
	return Rollout{
		Plan: r.Plan, Revision: r.Recorded.updateRevision(), Updated: c, Paused: r.Paused, OnDelete: r.OnDelete,
		Unproven: r.Unproven, Deadline: r.Deadline, MinReady: r.MinReady, Blocker: r.Blocker,
	}
}

// complete reports whether there are only children of the update revision. A place that takes no new child may hold an
// old and a new one, and waits then.
func (r Report) complete() bool {
	return r.Plan.Complete() && len(r.Plan.Waiting) == 0 && r.Surplus == ""
}

// underWay is the reason and the message of a rollout that is not complete.
func (r Report) underWay() (reason, why string) {
	p := r.Plan
	switch {
	case r.Failed != nil:
		return "RolloutFailing", FirstLine(r.Failed)
	case r.Lost != "":
		return "CurrentRevisionLost", r.Lost
	case r.Doing != "":
		return RolloutProgressing, r.Doing
	case len(p.Steps) > 0:
		return RolloutProgressing, p.Steps[0].Unit + ": " + p.Steps[0].Reason
	case r.Blocked != "":
		return RolloutWaiting, "waiting for " + r.Blocked
	case r.OnDelete && !p.Complete():
		return RolloutWaiting, "the strategy is OnDelete, so the others are updated when they are deleted"
	case len(p.Waiting) > 0:
		return RolloutWaiting, p.Waiting[0].Unit + ": " + p.Waiting[0].Reason + downBeside(p)
	case len(r.Waits) > 0:
		return RolloutWaiting, r.Waits[0].Unit + ": " + r.Waits[0].Reason
	case r.Surplus != "":
		return RolloutProgressing, r.Surplus
	case p.Held > 0 && p.Updated+p.Held == p.Total && p.Unavailable == 0:
		return RolloutWaiting, fmt.Sprintf("%d are held by the partition", p.Held)
	default:
		return RolloutProgressing, fmt.Sprintf("waiting for new %s to start", r.Children)
	}
}

// downBeside names the first places without an available child: the rollout may wait for one of them. It leaves out the
// place that waits, and places that its reason names.
func downBeside(p *rollout.Plan) string {
	const most = 3
	var names []string
	for _, name := range p.Down {
		if wait := p.Waiting[0]; name != wait.Unit && !strings.Contains(wait.Reason, name) {
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
