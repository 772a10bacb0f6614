package composite

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/record"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what happens to each child: those that are missing come, those that nobody wants go, and the others
// become what their revision asks for, at once or by the rollout (units.go). It is pure.

// plan is what one pass does, and what it knows by then.
type plan struct {
	// claims says which revision each child of a rolling kind belongs to from now on. It is stored before any child is
	// touched.
	claims  map[record.Child]string
	creates []creation
	updates []update
	deletes []deletion
	// waits says what the rollout waits for, in the order of the hook's answer.
	waits []rollout.Wait
	// total counts the children that are wanted, updated those that are what the newest revision asks for, and serving
	// those that pass their checks.
	total, updated, serving int
	// untold says of which children nobody can tell whether they are what is wanted. They stay as they are.
	untold []error
	// again is when to look again although nothing happened; zero means never.
	again time.Duration
	// asks are the older revisions whose answers are needed and not there. While there are any, nothing else in the plan
	// means anything.
	asks []string
}

type creation struct {
	key      record.Child
	object   *unstructured.Unstructured
	revision string
	reason   string
}

type update struct {
	key              record.Child
	observed, object *unstructured.Unstructured
	// newest says that the newest revision wants the object.
	newest bool
	reason string
}

type deletion struct {
	key      record.Child
	observed *unstructured.Unstructured
	// instead is what is to be there afterwards, made from revision, nil if nothing is.
	instead  *unstructured.Unstructured
	revision string
	reason   string
}

// writes reports whether any child is written.
func (p *plan) writes() bool { return len(p.creates) > 0 || p.replaces() }

// replaces reports whether a child that is there is changed or deleted.
func (p *plan) replaces() bool { return len(p.updates)+len(p.deletes) > 0 }

// touches reports whether a child of that kind that is there is changed or deleted.
func (p *plan) touches(kind schema.GroupKind) bool {
	return slices.ContainsFunc(p.updates, func(u update) bool { return u.key.GroupKind == kind }) ||
		slices.ContainsFunc(p.deletes, func(d deletion) bool { return d.key.GroupKind == kind })
}

// complete reports whether every child is what the newest revision asks for and passes its checks, and nothing else is
// left (R4).
func (p *plan) complete() bool {
	return p.updated == p.total && p.serving == p.total && !p.writes()
}

// planner is one run of makePlan.
type planner struct {
	facts
	*plan

	sets sets
}

// makePlan plans one pass.
func makePlan(f facts) (*plan, error) {
	p := &planner{facts: f, plan: &plan{claims: map[record.Child]string{}}, sets: sets{}}
	for _, key := range p.newestAnswer().order {
		p.total++
		if p.strategies[key.GroupKind].method.Rolling() {
			p.claims[key] = p.belongs(key)
		}
		p.visit(key)
	}
	p.surplus()
	if err := p.roll(); err != nil {
		return nil, err
	}
	return p.plan, nil
}

func (p *planner) newestAnswer() wanted { return p.answers[p.newest] }

// belongs returns the revision of a child of a rolling kind: the one that claims it. A child that none claims, or that its
// revision does not want, belongs to the newest; one that is already what the newest asks for moves there at once.
//
// What an older revision wants is only looked at for a child that has to be made from it, or kept at it. So a rollout in
// which nothing is lost asks about the newest revision only.
func (p *planner) belongs(key record.Child) string {
	name, ok := p.claimed[key]
	if !ok || name == p.newest {
		return p.newest
	}
	child := p.observed[key]
	if child != nil && p.same(child, p.newestAnswer().objects[key]) {
		return p.newest
	}
	if child != nil && !p.strategies[key.GroupKind].holds() {
		return name
	}
	old, known := p.answers[name]
	if !known {
		p.ask(name)
		return p.newest
	}
	if _, wants := old.objects[key]; !wants {
		return p.newest
	}
	return name
}

func (p *planner) ask(revision string) {
	if !slices.Contains(p.asks, revision) {
		p.asks = append(p.asks, revision)
	}
}

// source is the revision that a child is made from, and what that asks of it.
func (p *planner) source(key record.Child) (revision string, object *unstructured.Unstructured) {
	revision = p.newest
	if name, ok := p.claims[key]; ok {
		revision = name
	}
	return revision, p.answers[revision].objects[key]
}

// visit plans for one child that is wanted.
func (p *planner) visit(key record.Child) {
	s, child := p.strategies[key.GroupKind], p.observed[key]
	switch {
	case child == nil:
		revision, object := p.source(key)
		p.creates = append(p.creates, creation{key, object, revision, "revision " + revision})
	case s.method.Rolling():
	default:
		p.settle(key, s, child)
		return
	}
	if s.method.Rolling() {
		p.sets.add(key, s)
	}
}

// settle plans for a child of a kind that is not rolled out: whatever is to be done is done at once.
func (p *planner) settle(key record.Child, s strategy, child *unstructured.Unstructured) {
	object := p.newestAnswer().objects[key]
	h := healthOf(key, child, s, p.changed[child.GetUID()], p.now)
	p.lookAgain(h.left)
	if h.available() && child.GetDeletionTimestamp() == nil {
		p.serving++
	}
	if p.same(child, object) {
		p.updated++
		return
	}
	if p.unknown(key, child, object) != "" {
		return
	}
	const differs = "it is not what is wanted"
	switch {
	case child.GetDeletionTimestamp() != nil: // it is replaced once it is gone
	case s.inPlace():
		p.updates = append(p.updates, update{key, child, object, true, differs})
	case s.method == v1alpha1.ChildUpdateRecreate:
		p.deletes = append(p.deletes, deletion{key, child, object, p.newest, differs})
	default:
		p.waits = append(p.waits, rollout.Wait{Unit: key.String(), Reason: "the method is OnDelete, so it is updated when somebody deletes it"})
	}
}

// unknown returns why nobody can tell whether a child is what is wanted, empty if somebody can. It is waited for.
func (p *planner) unknown(key record.Child, child, object *unstructured.Unstructured) string {
	if p.facts.untold == nil {
		return ""
	}
	why := p.facts.untold(child, object)
	if why == nil {
		return ""
	}
	p.plan.untold = append(p.plan.untold, why)
	p.waits = append(p.waits, rollout.Wait{Unit: key.String(), Reason: why.Error()})
	return why.Error()
}

// surplus plans the end of the children that nobody wants any more.
func (p *planner) surplus() {
	for _, key := range slices.SortedFunc(maps.Keys(p.observed), record.Child.Compare) {
		if _, wants := p.newestAnswer().objects[key]; wants || p.observed[key].GetDeletionTimestamp() != nil {
			continue
		}
		p.deletes = append(p.deletes, deletion{key, p.observed[key], nil, "", "it is not wanted any more"})
	}
}

// lookAgain asks for another pass after a time, unless there is one earlier. Zero asks for nothing.
func (p *planner) lookAgain(after time.Duration) {
	if after > 0 && (p.again == 0 || after < p.again) {
		p.again = after
	}
}

// condition is what a plan means for the parent's condition Updated: its status, and reason and message in Metacontroller's
// words.
func (p *plan) condition(newest string) (status, reason, message string) {
	switch {
	case p.complete():
		return "True", "OnLatestRevision", "latest ControllerRevision: " + newest
	case len(p.updates) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("updating %s", p.updates[0].key)
	case len(p.deletes) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("updating %s", p.deletes[0].key)
	case len(p.creates) > 0:
		return "False", "RolloutProgressing", fmt.Sprintf("creating %s", p.creates[0].key)
	case len(p.waits) > 0:
		return "False", "RolloutWaiting", p.waits[0].Unit + ": " + p.waits[0].Reason
	}
	return "False", "RolloutWaiting", fmt.Sprintf("%d of %d children are updated, %d pass their checks", p.updated, p.total, p.serving)
}
