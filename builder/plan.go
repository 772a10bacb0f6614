package builder

import (
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what one pass does. It is pure: facts in, a plan with reasons out.

// facts is all that a plan is made from.
type facts struct {
	// places are what the parent wants, in the order of the rollout.
	places []place
	// surplus are children that it does not want.
	surplus []owned
	// update and older are the label values of the revision that the spec asks for, and of the one that most recent children
	// come from which are not updated. Either may be empty: the first if it could not be recorded, the other if there is none.
	update, older string
	strategy      Strategy
	// applied are the children that belong to no revision, in the same order.
	applied []application
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

// place is one child that is wanted.
type place struct {
	// rule is the index of its kind, name its name.
	rule int
	name string
	// update and older are what the two revisions want there; nil if one wants nothing of that name.
	update, older client.Object
	// child is what is there, nil if nothing is. taken says that something else has its name then.
	child *owned
	taken bool
}

// owned is a child that is there.
type owned struct {
	object client.Object
	rule   int
	// revision is its label.
	revision string
	// terminating says that it is being deleted. ready and available are false then.
	terminating, ready, available bool
	// left is how long it still has to be ready until it is available, zero if no time would help; why says what it waits for.
	left time.Duration
	why  string
	// failed says that it ended and is of no more use, and pause how long it stays all the same: the back-off of its place.
	failed bool
	pause  time.Duration
}

// plan is what one pass does.
type plan struct {
	creates []creation
	deletes []deletion
	applies []application
	rollout rollout.Plan
	// blocker is the first child that is not available, with the reason; empty if all are.
	blocker string
	// again is when to look again although nothing happened; zero means never.
	again time.Duration
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

// risky reports whether the plan would do harm if it rests on an old cache.
func (p *plan) risky() bool { return len(p.creates) > 0 || len(p.deletes) > 0 }

// sources are the revisions that children are made from now.
func (p *plan) sources() []string {
	out := make([]string, 0, len(p.creates))
	for _, c := range p.creates {
		out = append(out, c.revision)
	}
	return out
}

// planner is one run of makePlan.
type planner struct {
	facts
	*plan

	// fresh is how many places have gone to the update revision and are not available there, those included that this plan
	// gives to it. While it is as large as the budget, no other place goes there: a revision that does not start spreads no
	// further, not by children that are lost either.
	fresh  int
	budget int
	units  []rollout.Unit
	at     map[string]*place
}

// makePlan plans one pass: missing children are made, surplus ones are deleted, and the rollout takes its next steps.
func makePlan(f facts) *plan {
	p := &planner{facts: f, plan: &plan{}, budget: max(1, f.strategy.MaxUnavailable), at: map[string]*place{}}
	for i := range p.places {
		p.count(i)
	}
	for i := range p.places {
		if p.places[i].child == nil {
			p.fill(i) // first: an empty place serves nobody
		}
	}
	for i := range p.places {
		p.visit(i)
	}
	p.roll()
	for _, a := range p.applied {
		switch {
		case a.taken:
			p.waitForName(a.desired.GetName())
		case a.child == nil:
			p.creates = append(p.creates, creation{a.desired, a.rule, "", "it is missing"})
		case !a.child.terminating && !a.same:
			p.applies = append(p.applies, a)
		}
	}
	if p.update != "" {
		for i := range p.surplus {
			if !p.surplus[i].terminating {
				p.deletes = append(p.deletes, deletion{child: &p.surplus[i], reason: "the parent does not want it"})
			}
		}
	}
	return p.plan
}

// count adds one place to what is known of all.
func (p *planner) count(i int) {
	c := p.places[i].child
	if c == nil {
		return
	}
	switch conforms := p.conforms(c); {
	case c.terminating:
		if !p.held(i) {
			p.fresh++ // the rollout took it, or somebody else; what follows comes from the update revision
		}
		return
	case conforms:
		p.updated++
		if !c.available {
			p.fresh++
		}
	}
	p.current++
	if c.ready {
		p.ready++
	}
	if c.available {
		p.available++
	}
	if !c.available && p.blocker == "" {
		p.blocker = p.places[i].name + ": " + c.why
	}
	p.lookAgain(c.left)
}

func (p *planner) lookAgain(after time.Duration) {
	if after > 0 && (p.again == 0 || after < p.again) {
		p.again = after
	}
}

func (p *planner) conforms(c *owned) bool { return p.update != "" && c.revision == p.update }

// held reports whether a place keeps what it has.
func (p *planner) held(i int) bool {
	return p.update == "" || i >= len(p.places)-p.strategy.Partition
}

// visit makes the rollout's picture of one place.
func (p *planner) visit(i int) {
	at := &p.places[i]
	u := rollout.Unit{Key: at.name, Held: p.held(i) || p.strategy.OnDelete}
	p.at[at.name] = at
	switch c := at.child; {
	case c == nil, c.terminating:
	case c.failed && c.pause <= 0:
		p.deletes = append(p.deletes, deletion{child: c, reason: "it has failed", failed: true})
	case p.conforms(c):
		u.New = c.instance()
	default:
		u.Old = c.instance()
		if !c.available && !u.Held {
			u.Stays = p.turn()
		}
	}
	if c := at.child; c != nil && c.failed {
		p.lookAgain(c.pause)
	}
	p.units = append(p.units, u)
}

// turn takes a place in the budget for a child that is unavailable anyway. It returns why there is none, empty if there is. If it
// were replaced all the same, the empty place could not be told from one whose child was lost.
func (p *planner) turn() string {
	if p.fresh < p.budget {
		p.fresh++
		return ""
	}
	return fmt.Sprintf("%d updated children are not available yet, and no more than %d may be", p.fresh, p.budget)
}

// takenRetry is how often a pass looks whether a name is free again, in the cache: what happens to other people's objects wakes
// nobody.
const takenRetry = 10 * time.Second

// fill makes a missing child: from the update revision where the rollout may go there, and from the one that the others still
// come from where it may not.
func (p *planner) fill(i int) {
	at := &p.places[i]
	if at.taken {
		p.waitForName(at.name)
		return
	}
	c := creation{at.update, at.rule, p.update, "it is missing"}
	back := creation{at.older, at.rule, p.older, fmt.Sprintf("it is missing, and the rollout has not reached it: from revision %s", p.older)}
	switch {
	case at.older == nil: // nothing to come back from
	case p.held(i), p.strategy.Paused:
		c = back
	case p.strategy.OnDelete:
	case p.fresh >= p.budget:
		c = back
	default:
		p.fresh++
	}
	if c.object != nil && c.revision != "" {
		p.creates = append(p.creates, c)
	}
}

func (p *planner) waitForName(name string) {
	p.lookAgain(takenRetry)
	if p.blocker == "" {
		p.blocker = name + ": an object of that name exists and does not belong to this parent"
	}
}

// roll takes the next steps of the rollout.
func (p *planner) roll() {
	p.rollout = rollout.New(p.units, rollout.Strategy{
		MaxUnavailable: p.budget, Ordered: p.strategy.Ordered, Paused: p.strategy.Paused,
	})
	for _, step := range p.rollout.Steps {
		p.deletes = append(p.deletes, deletion{child: p.at[step.Unit].child, reason: step.Reason})
	}
}

// instance is a child as the rollout sees it.
func (c *owned) instance() *rollout.Instance {
	return &rollout.Instance{Name: c.object.GetName(), Revision: c.revision, Ready: c.ready, Available: c.available}
}
