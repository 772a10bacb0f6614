package builder

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what one pass does. It is pure: facts in, a plan with reasons out.

// facts is all that a plan is made from.
type facts struct {
	// places are what the parent wants, in the order of the rollout.
	places []place
	// surplus are children that it does not want.
	surplus []owned
	// update and older are the label values of the revision that the spec asks for, and of the one that most recent
	// children come from which are not updated. Either may be empty: the first if it could not be recorded, the other if
	// there is none.
	update, older string
	strategy      Strategy
	// minReady is how long children have to be ready until they are available, of all kinds the longest.
	minReady time.Duration
	// unproven is as in [pass.Rollout].
	unproven bool
	// applied are the children that belong to no revision, in the same order.
	applied []application
	// altered reports whether admission altered a child, which is not replaced then. Nil means no.
	altered pass.Altered
	// failed is [pass.Pass.Failed] for a child of that kind and name. Nil means that nothing failed.
	failed func(rule int, child client.Object) int
}

// application is a child that is applied.
type application struct {
	rule int
	// desired is what is wanted, child what is there, nil if nothing is. same says that desired was applied to just that.
	desired client.Object
	child   *owned
	same    bool
	// taken says that something else has its name.
	taken bool
}

// place is where one child is wanted.
type place struct {
	// rule is the index of its kind, name what the author calls it, key what it is called in conditions.
	rule      int
	name, key string
	// named says that its children are named by revision, so that a new one can be created while another one is there.
	named bool
	// update and older are what the two revisions want there; nil if one wants nothing of that name, or if there is a
	// child: then nothing is made from the older one. They are the author's objects, and complete already if they are
	// named by revision.
	update, older client.Object
	// children are what is there, one at most unless named.
	children []*owned
	// taken says why a name that a new child would have is not free.
	taken map[string]string
}

// owned is a child that is there.
type owned struct {
	object client.Object
	rule   int
	// revision is its label.
	revision string
	// terminating says that it is being deleted. ready and available are false then.
	terminating, ready, available bool
	// left is how long it still has to be ready until it is available, zero if no time would help; why says what it waits
	// for.
	left time.Duration
	why  string
	// failed says that it ended and is of no more use, and pause how long it stays all the same: see [pass.Pass.Pause].
	failed bool
	pause  time.Duration
}

// plan is what one pass does.
type plan struct {
	pass.Work[creation, deletion]

	// from are the facts of the plan.
	from    facts
	applies []application
	rollout rollout.Plan
	// blocker is the first child that is not available, with the reason; empty if all are.
	blocker string
	// current, ready and available count what is there and not terminating, updated what comes from the update revision.
	current, ready, available, updated int32
}

type creation struct {
	object           client.Object
	rule             int
	revision, reason string
}

type deletion struct {
	child  *owned
	reason string
	// failed marks a child that ended by itself: its place has a back-off.
	failed bool
}

// sources are the revisions that children are made from now.
func (p *plan) sources() []string {
	out := make([]string, 0, len(p.Creates))
	for _, c := range p.Creates {
		out = append(out, c.revision)
	}
	return out
}

// planner is one run of makePlan.
type planner struct {
	facts
	*plan

	slots []slot
	// fresh is how many places have gone to the update revision and have no available child, those included that this plan
	// gives to it. While it is as large as most, no other place goes there unless its old child stays beside the new one:
	// a revision that does not start spreads no further, not by children that are lost either.
	fresh, most int
	units       []rollout.Unit
	at          map[string]*slot
}

// makePlan plans one pass: missing children are made, surplus ones are deleted, and the rollout takes its next steps.
func makePlan(f facts) *plan {
	p := &planner{facts: f, plan: &plan{from: f}, most: f.strategy.budget(), at: make(map[string]*slot, len(f.places))}
	p.slots, p.units = make([]slot, 0, len(f.places)), make([]rollout.Unit, 0, len(f.places))
	for i := range p.places {
		p.slots = append(p.slots, p.slotOf(i))
	}
	for i := range p.slots {
		p.at[p.slots[i].key] = &p.slots[i]
		p.count(&p.slots[i])
	}
	for i := range p.slots {
		p.fill(&p.slots[i]) // first: an empty place serves nobody
	}
	for i := range p.slots {
		p.visit(&p.slots[i])
	}
	p.roll()
	p.apply()
	if p.update != "" {
		for i := range p.surplus {
			if !p.surplus[i].terminating {
				p.Deletes = append(p.Deletes, deletion{child: &p.surplus[i], reason: "the parent does not want it"})
			}
		}
	}
	return p.plan
}

// apply plans what belongs to no revision.
func (p *planner) apply() {
	for _, a := range p.applied {
		switch {
		case a.taken:
			p.waitForName(a.desired.GetName(), foreign)
		case a.child == nil:
			p.Creates = append(p.Creates, creation{a.desired, a.rule, "", "it is missing"})
		case !a.child.terminating && !a.same:
			p.applies = append(p.applies, a)
		}
	}
}

// turn takes a place in the budget for a child that is unavailable anyway. It returns why there is none, empty if there
// is. If it were replaced all the same, the empty place could not be told from one whose child was lost.
func (p *planner) turn() string {
	if p.fresh < p.most {
		p.fresh++
		return ""
	}
	return p.enough(p.most)
}

func (p *planner) enough(most int) string {
	return fmt.Sprintf("%d updated children are not available yet, and no more than %d may be", p.fresh, most)
}

// surge is how many places may have two children. Places that have lost their old child beside a new one that does not
// start count as well: otherwise a revision that does not start would spread by that.
func (p *planner) surge() int {
	return max(0, p.strategy.MaxSurge-max(0, p.fresh-p.most))
}

// fill makes a missing child: from the update revision where the rollout may go there, and from the one that the others
// still come from where it may not.
func (p *planner) fill(s *slot) {
	if !s.empty(p.strategy) {
		return
	}
	c := creation{s.update, s.rule, p.update, "it is missing"}
	back := creation{s.older, s.rule, p.older, fmt.Sprintf("it is missing, and the rollout has not reached it: from revision %s", p.older)}
	reached := false
	switch {
	case s.older == nil: // nothing to come back from
	case s.held, p.strategy.Paused:
		c = back
	case p.strategy.OnDelete:
	case p.fresh >= p.most:
		c = back
	default:
		reached = true
	}
	if c.object == nil || c.revision == "" {
		return
	}
	if why := s.taken[c.object.GetName()]; why != "" {
		p.waitForName(c.object.GetName(), why)
		return
	}
	if reached {
		p.fresh++
	}
	p.Creates = append(p.Creates, c)
}

// foreign is why a name is not free that belongs to somebody else.
const foreign = "an object of that name exists and does not belong to this parent"

func (p *planner) waitForName(name, why string) {
	p.LookAgain(pass.TakenRetry)
	if p.blocker == "" {
		p.blocker = name + ": " + why
	}
}

// roll takes the next steps of the rollout.
func (p *planner) roll() {
	p.rollout = rollout.New(p.units, rollout.Strategy{
		MaxUnavailable: p.strategy.budget(), MaxSurge: p.surges(), Ordered: p.strategy.Ordered, Paused: p.strategy.Paused,
	})
	for _, step := range p.rollout.Steps {
		s := p.at[step.Unit]
		switch step.Verb {
		case rollout.Create:
			p.Creates = append(p.Creates, creation{s.update, s.rule, p.update, step.Reason})
		case rollout.Delete:
			p.Deletes = append(p.Deletes, deletion{child: s.child(step.Instance), reason: step.Reason})
		}
	}
}

// surges is the surge as the rollout is given it. It is none only if the strategy says so: that changes what an old
// child that is ready is worth.
func (p *planner) surges() int {
	if p.strategy.MaxSurge == 0 {
		return 0
	}
	return max(1, p.surge())
}
