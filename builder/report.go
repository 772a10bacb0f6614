package builder

import (
	"context"
	"errors"
	"fmt"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file reports: counters from what was seen, and conditions that say why. status.go writes them.

// Summary is what a pass has seen, for the author's status.
type Summary struct {
	// ObservedGeneration is the generation of the spec that all of this is about. It is that of the parent, but for one
	// whose revision could not be recorded.
	ObservedGeneration int64
	// Wanted is how many children the parent wants, Current how many of them there are. Of those, Ready are ready,
	// Available have been for long enough, and Updated come from the revision that the spec asks for. During a surge, the
	// two children of one place count as one, which is updated once the old one is deleted.
	Wanted, Current, Ready, Available, Updated int32
	// UpdateRevision is the name of the revision that the spec asks for, empty if it could not be recorded.
	UpdateRevision string
	// Complete says that all children come from it and are available, and that there are no others.
	Complete bool

	rollout pass.RolloutConditions
	healthy func(conditions *[]metav1.Condition)
}

// SetConditions sets the conditions Updated, of a parent with a progress deadline Stalled and, if it ever was False,
// HistoryHealthy in the status of a parent: see package pass.
func (s *Summary) SetConditions(conditions *[]metav1.Condition) {
	s.rollout.Set(conditions)
	if s.healthy != nil {
		s.healthy(conditions)
	}
}

// report is what a pass found out.
type report struct {
	facts    facts
	plan     *plan
	recorded *pass.Recorded
	// failed is what went wrong with children.
	failed error
}

// report stores what rep says, and reports whether that is what the API server has now.
func (r *reconciler[P]) report(ctx context.Context, p *pass.Pass, parent P, rep report) (stored bool, err error) {
	s := Summary{
		Wanted:  int32(len(rep.facts.places)),
		Current: rep.plan.current, Ready: rep.plan.ready, Available: rep.plan.available, Updated: rep.plan.updated,
		rollout: p.NoteRollout(rep.rollout(p.Now())),
		healthy: func(conditions *[]metav1.Condition) {
			rep.recorded.SetHealthy(p, conditions, r.limit(parent), p.Now())
		},
	}
	if unreadable := rep.recorded.Undecodable; len(unreadable) > 0 && r.author.Status == nil {
		p.Warn(nil, "RevisionUnreadable", "Report", "%v; it is kept", unreadable[0].Err) // else a condition and its event say so
	}
	if rep.recorded.Update != nil {
		s.ObservedGeneration, s.UpdateRevision = parent.GetGeneration(), rep.recorded.Update.Name
		s.Complete = rep.complete()
	}
	return r.writeStatus(ctx, p, parent, s)
}

// refuse reports a parent that nothing can be done for before somebody edits it.
func (r *reconciler[P]) refuse(ctx context.Context, p *pass.Pass, parent P, refused *refusedError) error {
	p.Warn(nil, refused.reason, "Reconcile", "%v", refused)
	s := Summary{ObservedGeneration: parent.GetGeneration(), rollout: p.NoteRollout(pass.Rollout{Updated: metav1.Condition{
		Type: pass.Updated, Status: metav1.ConditionFalse, Reason: refused.reason, Message: refused.Error(),
		LastTransitionTime: metav1.NewTime(p.Now()),
	}})}
	for rule, ch := range r.children {
		if r.kinds[rule].applied {
			continue
		}
		shown, err := ch.Shown(ctx, p)
		if err != nil {
			return err
		}
		places := map[string]owned{}
		for _, child := range shown {
			at, c := placeOf(child), r.judge(rule, child, parent, p.Now())
			c.ready, c.available = c.ready || places[at].ready, c.available || places[at].available
			if !c.terminating {
				places[at] = c
			}
		}
		for _, c := range places {
			s.count(c)
		}
	}
	s.Wanted = s.Current // nobody can say
	_, err := r.writeStatus(ctx, p, parent, s)
	if refused.retry {
		return errors.Join(refused, err)
	}
	return err
}

// count adds what is at one place to the counters that need no revision.
func (s *Summary) count(c owned) {
	s.Current++
	if c.ready {
		s.Ready++
	}
	if c.available {
		s.Available++
	}
}

// complete reports whether all children come from the update revision and are available, and there are no others.
func (rep report) complete() bool {
	p := rep.plan
	all := rep.recorded.Update != nil && rep.failed == nil && int(p.available) == len(rep.facts.places)
	return all && p.rollout.Complete() && len(rep.plan.rollout.Waiting) == 0 && len(rep.plan.creates) == 0 && len(rep.facts.surplus) == 0
}

// rollout is how far the rollout is.
func (rep report) rollout(now time.Time) pass.Rollout {
	strategy := rep.facts.strategy
	return pass.Rollout{
		Plan: &rep.plan.rollout, Revision: rep.recorded.UpdateName(), Updated: rep.updated(metav1.NewTime(now)),
		Stopped: strategy.Paused || strategy.OnDelete, Deadline: strategy.ProgressDeadline,
		MinReady: rep.facts.minReady, Blocker: func() string { return rep.plan.blocker },
	}
}

// updated says how far the rollout is.
func (rep report) updated(now metav1.Time) metav1.Condition {
	c := metav1.Condition{Type: pass.Updated, Status: metav1.ConditionFalse, LastTransitionTime: now}
	p := rep.plan.rollout
	progress := fmt.Sprintf("%d of %d children updated", p.Updated, p.Total)
	switch {
	case rep.recorded.Update == nil:
		c.Reason, c.Message = "RevisionNotRecorded", "no child is replaced before the revision that the spec asks for is recorded"
	case rep.failed != nil:
		c.Reason, c.Message = "RolloutFailing", progress+"; "+pass.FirstLine(rep.failed)
	case p.Complete() && len(p.Waiting) == 0:
		c.Status, c.Reason = metav1.ConditionTrue, "OnLatestRevision"
		c.Message = fmt.Sprintf("latest ControllerRevision: %s", rep.recorded.Update.Name)
	case len(p.Steps) > 0:
		c.Reason = pass.RolloutProgressing
		c.Message = fmt.Sprintf("%s; %s: %s", progress, p.Steps[0].Unit, p.Steps[0].Reason)
	case rep.plan.blocker != "":
		c.Reason, c.Message = pass.RolloutWaiting, progress+"; waiting for "+rep.plan.blocker
	case rep.facts.strategy.OnDelete:
		c.Reason, c.Message = pass.RolloutWaiting, progress+"; the others are updated when they are deleted"
	case len(p.Waiting) > 0:
		c.Reason = pass.RolloutWaiting
		c.Message = fmt.Sprintf("%s; %s: %s", progress, p.Waiting[0].Unit, p.Waiting[0].Reason)
	case p.Held > 0 && p.Updated+p.Held == p.Total:
		c.Reason = pass.RolloutWaiting
		c.Message = fmt.Sprintf("%s; %d are held by the partition", progress, p.Held)
	default:
		c.Reason, c.Message = pass.RolloutProgressing, progress+"; waiting for new children to start"
	}
	return c
}
