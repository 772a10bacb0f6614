package composite

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what happens to each child: those that are missing come, those that nobody wants go, and the others
// become what their revision asks for, at once or by the rollout (units.go). It is pure.

// plan is what one pass does, and what it knows by then.
type plan struct {
	// claims says which revision each child of a rolling kind belongs to from now on. It is stored before any child is
	// touched.
	claims map[metacontroller.Child]string
	// held are the children that partition or paused keep at another revision than the newest, and stranded those of them
	// whose revision is lost. Those are left as they are, and not made again.
	held     metacontroller.Held
	stranded []stranded
	creates  []creation
	updates  []update
	deletes  []deletion
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
	key      metacontroller.Child
	object   *unstructured.Unstructured
	revision string
	reason   string
}

type update struct {
	key              metacontroller.Child
	observed, object *unstructured.Unstructured
	// newest says that the newest revision wants the object.
	newest bool
	reason string
}

type deletion struct {
	key      metacontroller.Child
	observed *unstructured.Unstructured
	// instead is what is to be there afterwards, made from revision, nil if nothing is.
	instead  *unstructured.Unstructured
	revision string
	reason   string
}

// stranded is a child that is held at a revision from which nothing can be made, for that reason. The revision is empty
// if none says that the child is its own.
type stranded struct {
	key              metacontroller.Child
	revision, reason string
	// missing says that the child is not there.
	missing bool
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
	// guarded are the children that partition or paused keep at their revision.
	guarded map[metacontroller.Child]bool
}

// makePlan plans one pass.
func makePlan(f facts) (*plan, error) {
	p := &planner{facts: f, plan: &plan{claims: map[metacontroller.Child]string{}, held: metacontroller.Held{}}, sets: sets{}}
	for _, key := range p.newestAnswer().order {
		if s := p.strategies[key.GroupKind]; s.method.Rolling() {
			p.sets.add(key, s)
		}
	}
	p.guarded = p.sets.guarded()
	for _, key := range p.newestAnswer().order {
		p.total++
		if p.strategies[key.GroupKind].method.Rolling() {
			p.claim(key)
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

// claim notes to which revision a child of a rolling kind belongs.
func (p *planner) claim(key metacontroller.Child) {
	name := p.belongs(key)
	if p.claims[key] = name; name != p.newest && p.guarded[key] {
		p.held.Add(name, key)
	}
}

// belongs returns the revision of a child of a rolling kind: the one that claims it, or none for a child that is there and
// that none claims. One that is already what the newest asks for moves there at once. One that is missing and that none
// claims, or that its revision does not want, belongs to the newest.
//
// What an older revision wants is only looked at for a child that has to be made from it, or kept at it. So a rollout in
// which nothing is lost asks about the newest revision only.
func (p *planner) belongs(key metacontroller.Child) string {
	name, claimed := p.claimed[key]
	child := p.observed[key]
	switch {
	case claimed && name == p.newest, !claimed && child == nil:
		return p.newest
	case child != nil && p.same(child, p.newestAnswer().objects[key]):
		return p.newest
	case !claimed, p.isLost(name):
		if child == nil && !p.guarded[key] {
			return p.newest // nothing else can be made, and that is where it was to go
		}
		return name
	case child != nil && !p.strategies[key.GroupKind].holds():
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

// isLost reports whether nothing can be made from a revision: it is gone, it cannot be read, or nobody knows which it is.
func (p *planner) isLost(revision string) bool {
	_, lost := p.lost[revision]
	return lost || revision == ""
}

// strand notes a child that is held at a revision that is lost, and reports whether it is one.
func (p *planner) strand(key metacontroller.Child) bool {
	name := p.claims[key]
	if !p.guarded[key] || !p.isLost(name) {
		return false
	}
	p.stranded = append(p.stranded, stranded{key, name, p.lost[name], p.observed[key] == nil})
	return true
}

func (p *planner) ask(revision string) {
	if !slices.Contains(p.asks, revision) {
		p.asks = append(p.asks, revision)
	}
}

// source is the revision that a child is made from, and what that asks of it.
func (p *planner) source(key metacontroller.Child) (revision string, object *unstructured.Unstructured) {
	revision = p.newest
	if name, ok := p.claims[key]; ok {
		revision = name
	}
	return revision, p.answers[revision].objects[key]
}

// visit plans for one child that is wanted, as far as the rollout does not.
func (p *planner) visit(key metacontroller.Child) {
	s, child := p.strategies[key.GroupKind], p.observed[key]
	switch {
	case s.method.Rolling() && p.strand(key):
	case child == nil:
		revision, object := p.source(key)
		p.creates = append(p.creates, creation{key, object, revision, "revision " + revision})
	case !s.method.Rolling():
		p.settle(key, s, child)
	}
}

// settle plans for a child of a kind that is not rolled out: whatever is to be done is done at once.
func (p *planner) settle(key metacontroller.Child, s strategy, child *unstructured.Unstructured) {
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
func (p *planner) unknown(key metacontroller.Child, child, object *unstructured.Unstructured) string {
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
	for _, key := range slices.SortedFunc(maps.Keys(p.observed), metacontroller.Child.Compare) {
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
	case p.complete() && newest == "": // it is said of children that are not rolled, beside those of another controller that are
		return "True", "ChildrenUpdated", "all children are what the hook wants"
	case p.complete():
		return "True", "OnLatestRevision", "latest ControllerRevision: " + newest
	case len(p.stranded) > 0:
		return "False", revisionLost, p.strandedMessage()
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

// revisionLost is the reason of the condition Updated while children are held at a revision from which nothing can be made.
const revisionLost = "RevisionLost"

// strandedMessage says which child is held at what, and what a person can do about it. It is empty if none is.
func (p *plan) strandedMessage() string {
	if len(p.stranded) == 0 {
		return ""
	}
	first := p.stranded[0]
	who, does, held := first.key.String(), "is", "it"
	if more := len(p.stranded) - 1; more > 0 {
		who, does, held = fmt.Sprintf("%s and %d more", who, more), "are", "they"
	}
	at := "although no revision says what it was made from"
	if first.revision != "" {
		at = fmt.Sprintf("at ControllerRevision %s, %s", first.revision, first.reason)
	}
	left := held + " " + does + " left alone"
	if i := slices.IndexFunc(p.stranded, func(s stranded) bool { return s.missing }); i >= 0 {
		left = fmt.Sprintf("%s is missing and is not made from another revision", p.stranded[i].key)
	}
	return fmt.Sprintf("%s %s held by partition or paused, %s; %s. To go on, restore that ControllerRevision, "+
		"or lower partition and end the pause so that the newest revision takes its place", who, does, at, left)
}
