package composite

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/rollout"
)

// This file decides what happens to each child: missing ones are created, those that are no longer desired are deleted,
// and the others become what their revision asks for, at once or by the rollout of package rollout. It is pure.

// facts is all that a plan is made from.
type facts struct {
	// newest is the revision that the parent asks for. answers holds what the hook wants, by the name of the revision;
	// that of the newest is always there, others if an earlier plan needed them.
	newest  string
	answers map[string]wanted
	// storedIn says which revision lists each child. It is empty for a child that is held and that no revision lists.
	storedIn map[metacontroller.Child]string
	// lost says what is wrong with revisions that no child can be created from, by their names.
	lost map[string]string
	// observed are the parent's children, terminating ones included.
	observed map[metacontroller.Child]*unstructured.Unstructured
	// strategies are those of the kinds that the controller declares.
	strategies map[schema.GroupKind]strategy
	// same reports whether a child is as desired, so that applying that again would change nothing.
	same func(observed, desired *unstructured.Unstructured) bool
	// compareErr returns why a child could not be compared, nil if it could. A nil func means that every child can be.
	compareErr func(observed, desired *unstructured.Unstructured) error
	// changed is when children were changed in place.
	changed changes
	now     time.Time
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
	p := &planner{facts: f, plan: &plan{belongsTo: map[metacontroller.Child]string{}, held: metacontroller.Held{}}, sets: sets{}}
	for _, key := range p.newestAnswer().order {
		if s := p.strategies[key.GroupKind]; s.method.Rolling() {
			p.sets.add(key, s)
		}
	}
	p.guarded, p.unproven = p.sets.guarded(), p.provesNothing()
	for _, key := range p.newestAnswer().order {
		p.total++
		if p.strategies[key.GroupKind].method.Rolling() {
			p.assign(key)
		}
		p.visit(key)
	}
	p.surplus()
	if err := p.roll(); err != nil {
		return nil, err
	}
	return p.plan, nil
}

// provesNothing reports whether children of some kinds are checked, and none of these is wanted.
func (p *planner) provesNothing() bool {
	checked := func(s strategy) bool { return len(s.ready.Checks) > 0 }
	return !slices.ContainsFunc(p.newestAnswer().order, func(key metacontroller.Child) bool { return checked(p.strategies[key.GroupKind]) }) &&
		slices.ContainsFunc(slices.Collect(maps.Values(p.strategies)), checked)
}

func (p *planner) newestAnswer() wanted { return p.answers[p.newest] }

// assign notes to which revision a child of a rolling kind belongs.
func (p *planner) assign(key metacontroller.Child) {
	name := p.revisionFor(key)
	if p.belongsTo[key] = name; name != p.newest && p.guarded[key] {
		p.held.Add(name, key)
	}
}

// revisionFor returns the revision of a child of a rolling kind: the one that lists it, or none for an existing child
// that none lists. One that is already what the newest asks for moves there at once. A missing one that no revision
// lists, or that its revision does not want, belongs to the newest.
//
// What an older revision wants matters only for a child that has to be created from it, or kept at it. So a rollout in
// which nothing is lost calls the hook for the newest revision only.
func (p *planner) revisionFor(key metacontroller.Child) string {
	name, stored := p.storedIn[key]
	child := p.observed[key]
	switch {
	case stored && name == p.newest, !stored && child == nil:
		return p.newest
	case child != nil && p.same(child, p.newestAnswer().objects[key]):
		return p.newest
	case !stored, p.isLost(name):
		if child == nil && !p.guarded[key] {
			return p.newest // no other can be created, and the rollout would move it there
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

// isLost reports whether no child can be created from a revision: it was deleted, cannot be read, or is unknown.
func (p *planner) isLost(revision string) bool {
	_, lost := p.lost[revision]
	return lost || revision == ""
}

// strand notes a child that is held at a lost revision, and reports whether it is one.
func (p *planner) strand(key metacontroller.Child) bool {
	name := p.belongsTo[key]
	if !p.guarded[key] || !p.isLost(name) {
		return false
	}
	p.stranded = append(p.stranded, heldAtLostRevision{key, name, p.lost[name], p.observed[key] == nil})
	return true
}

func (p *planner) ask(revision string) {
	if !slices.Contains(p.asks, revision) {
		p.asks = append(p.asks, revision)
	}
}

// source is the revision that a child is created from, and its desired state there.
func (p *planner) source(key metacontroller.Child) (revision string, object *unstructured.Unstructured) {
	revision = p.newest
	if name, ok := p.belongsTo[key]; ok {
		revision = name
	}
	return revision, p.answers[revision].objects[key]
}

// visit plans for one desired child, except for what the rollout plans.
func (p *planner) visit(key metacontroller.Child) {
	s, child := p.strategies[key.GroupKind], p.observed[key]
	switch {
	case s.method.Rolling() && p.strand(key):
	case child == nil:
		revision, object := p.source(key)
		p.creates = append(p.creates, creation{key, object, revision, "revision " + revision})
	case !s.method.Rolling():
		p.planAtOnce(key, s, child)
	}
}

// planAtOnce plans for a child of a kind that is not rolled out: all that is to be done is done at once.
func (p *planner) planAtOnce(key metacontroller.Child, s strategy, child *unstructured.Unstructured) {
	object := p.newestAnswer().objects[key]
	h := healthOf(key, child, s, p.changed[child.GetUID()], p.now)
	p.lookAgain(h.left)
	if p.count(child, object, h) {
		return
	}
	if p.unknown(key, child, object) != "" {
		return
	}
	const differs = "it differs from the desired state"
	switch {
	case child.GetDeletionTimestamp() != nil: // it is replaced once it is deleted
	case s.inPlace():
		p.updates = append(p.updates, update{key, child, object, true, differs})
	case s.method == v1alpha1.ChildUpdateRecreate:
		p.deletes = append(p.deletes, deletion{key, child, object, p.newest, differs})
	default:
		p.keeping++
		p.waits = append(p.waits, rollout.Wait{Unit: key.String(), Reason: "the method is OnDelete, so it is updated when it is deleted"})
	}
}

// unknown returns why a child could not be compared, empty if it could. The plan waits for it.
func (p *planner) unknown(key metacontroller.Child, child, object *unstructured.Unstructured) string {
	if p.compareErr == nil {
		return ""
	}
	why := p.compareErr(child, object)
	if why == nil {
		return ""
	}
	p.compareErrs = append(p.compareErrs, why)
	p.waits = append(p.waits, rollout.Wait{Unit: key.String(), Reason: why.Error()})
	return why.Error()
}

// surplus plans the deletion of the children that are no longer desired.
func (p *planner) surplus() {
	for _, key := range slices.SortedFunc(maps.Keys(p.observed), metacontroller.Child.Compare) {
		if _, wants := p.newestAnswer().objects[key]; wants || p.observed[key].GetDeletionTimestamp() != nil {
			continue
		}
		p.deletes = append(p.deletes, deletion{key, p.observed[key], nil, "", "it is not wanted any more"})
	}
}

// count counts a child, and reports whether it is what the newest revision asks for.
func (p *planner) count(child, newest *unstructured.Unstructured, h health) bool {
	available, same := h.available() && child.GetDeletionTimestamp() == nil, p.same(child, newest)
	if available {
		p.serving++
	}
	if !same {
		return false
	}
	p.updated++
	p.done.Gone++
	p.done.Made++
	if h.failing == "" {
		p.done.Ready++
	}
	if available {
		p.done.Available++
	}
	return true
}

// lookAgain asks for a requeue after a time, unless there is one earlier. Zero asks for nothing.
func (p *planner) lookAgain(after time.Duration) {
	p.again = pass.Soonest(p.again, after)
}

// roll plans the next steps of every set.
func (p *planner) roll() error {
	for _, s := range p.sets {
		budget, err := s.budget()
		if err != nil {
			return err
		}
		units := make([]rollout.Unit, 0, len(s.keys))
		for i, key := range s.keys {
			units = append(units, p.unit(s, i, key))
		}
		p.contain(s, units, budget)
		rolled := rollout.New(units, rollout.Strategy{MaxUnavailable: budget, Ordered: true})
		for _, step := range rolled.Steps {
			i := slices.IndexFunc(units, func(u rollout.Unit) bool { return u.Key == step.Unit })
			p.step(s, i, step.Reason)
		}
		p.waits = append(p.waits, rolled.Waiting...)
	}
	return nil
}

// contain keeps an unavailable child at its revision while as many as the budget are down at the newest one: to replace
// it would cost no budget, but its replacement might fail too, and would not be moved back.
func (p *planner) contain(s *set, units []rollout.Unit, budget int) {
	down := 0
	for i, u := range units {
		isNew := p.belongsTo[s.keys[i]] == p.newest && (u.New != nil || u.Old == nil)
		if isNew && (u.New == nil || !u.New.Available) {
			down++
		}
	}
	if down < budget {
		return
	}
	for i := range units {
		if old := units[i].Old; old != nil && !old.Available && p.belongsTo[s.keys[i]] != p.newest {
			units[i].Stays = fmt.Sprintf("%d of the children that are updated are not available", down)
		}
	}
}

// unit describes one child to the rollout. A held child is compared with its own revision; every other one with the
// newest. One that differs is an old instance, wherever the difference comes from: a new revision, a field of the
// parent that no revision covers, or an edit of the child. So all of these share one budget. A child that is held at a
// lost revision conforms: there is nothing to compare it with.
func (p *planner) unit(s *set, i int, key metacontroller.Child) rollout.Unit {
	u := rollout.Unit{Key: key.String()}
	child := p.observed[key]
	u.Vacant = child == nil && s.held(i) && p.isLost(p.belongsTo[key])
	if child == nil || child.GetDeletionTimestamp() != nil {
		if s.held(i) && p.belongsTo[key] != p.newest {
			p.keeping++
		}
		if child != nil {
			p.waits = append(p.waits, rollout.Wait{Unit: u.Key, Reason: "it is terminating"})
		}
		p.done.Gone++
		return u
	}
	h := healthOf(key, child, p.strategies[key.GroupKind], p.changed[child.GetUID()], p.now)
	p.lookAgain(h.left)
	instance := &rollout.Instance{
		Name: child.GetName(), Revision: cmp.Or(p.belongsTo[key], "unknown"), Ready: h.failing == "", Available: h.available(),
	}
	if h.failing != "" {
		p.waits = append(p.waits, rollout.Wait{Unit: u.Key, Reason: h.failing})
	}
	if !p.count(child, p.newestAnswer().objects[key], h) && s.held(i) {
		p.keeping++
	}
	target := p.target(s, i, key)
	if s.held(i) && p.isLost(p.belongsTo[key]) || p.same(child, target) {
		u.New = instance
	} else {
		u.Old, u.Stays = instance, p.unknown(key, child, target)
	}
	return u
}

// target is what a child is to become.
func (p *planner) target(s *set, i int, key metacontroller.Child) *unstructured.Unstructured {
	if s.held(i) {
		_, object := p.source(key)
		return object
	}
	return p.newestAnswer().objects[key]
}

// step adds a step of the rollout to the plan: the child belongs to its target's revision before it is touched.
func (p *planner) step(s *set, i int, reason string) {
	key := s.keys[i]
	object := p.target(s, i, key)
	if !s.held(i) {
		p.belongsTo[key] = p.newest
	}
	if p.strategies[key.GroupKind].inPlace() {
		newest := p.newestAnswer().objects[key] == object
		p.updates = append(p.updates, update{key, p.observed[key], object, newest, reason})
		return
	}
	p.deletes = append(p.deletes, deletion{key, p.observed[key], object, p.belongsTo[key], reason})
}
