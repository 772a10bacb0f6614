package builder

import (
	"context"
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

// SetConditions sets the conditions of a parent in its status: Updated, LastGood, Stalled if it has a progress
// deadline, and HistoryHealthy if that was ever False. See packages pass and rollback. A lost child is recreated from
// the revision that LastGood names. If an author does not store LastGood, it may be recreated from a revision that does
// not start.
func (s *Summary) SetConditions(conditions *[]metav1.Condition) {
	s.rollout.Set(conditions)
	if s.healthy != nil {
		s.healthy(conditions)
	}
}

// report is what a pass found out.
type report struct {
	strategy Strategy
	plan     *plan
	recorded *pass.Recorded
	// failed is what went wrong with children.
	failed error
}

// report stores what rep says, and reports whether that is what the API server has now.
func (r *reconciler[P]) report(ctx context.Context, p *pass.Pass, parent P, rep report) (stored bool, err error) {
	s := Summary{
		Wanted:  int32(len(rep.plan.from.places)),
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

// refuse stores why nothing is done for a parent.
func (r *reconciler[P]) refuse(ctx context.Context, p *pass.Pass, why *pass.RefusedError) error {
	parent := p.Parent.(P)
	s := Summary{ObservedGeneration: parent.GetGeneration(), rollout: why.Conditions(p)}
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
	all := rep.recorded.Update != nil && rep.failed == nil && int(p.available) == len(rep.plan.from.places)
	return all && p.rollout.Complete() && len(rep.plan.rollout.Waiting) == 0 && len(rep.plan.Creates) == 0 && len(rep.plan.from.surplus) == 0
}

// rollout is how far the rollout is.
func (rep report) rollout(now time.Time) pass.Rollout {
	return pass.Report{
		Recorded: rep.recorded, Plan: &rep.plan.rollout, Failed: rep.failed, Child: "child", Children: "children",
		Blocked: rep.plan.blocker, OnDelete: rep.strategy.OnDelete, Paused: rep.strategy.Paused, Unproven: rep.plan.from.unproven,
		Deadline: rep.strategy.ProgressDeadline, MinReady: rep.plan.from.minReady, Blocker: func() string { return rep.plan.blocker },
	}.Rollout(now)
}
