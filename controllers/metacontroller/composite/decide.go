package composite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/history/metacontroller"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/taken"
)

// This file asks what there should be, and makes a plan of it. It asks the hook about the parent as it is, and about an
// older revision if the plan needs to know what that wants; it asks the API server where it takes that to tell a default
// from a difference.

// selectorMismatch is the reason for a child that its parent could never claim.
const selectorMismatch = "SelectorMismatch"

// decision is what a pass is about to do.
type decision struct {
	plan   *plan
	answer *hook.Answer
	// newest is the name of the newest revision, empty if the parent has none.
	newest string
	// done says that the finalize hook has nothing left to do.
	done bool
	// revisions are the writes of the log. hidden is the name of a revision that is about to be made, and is there already
	// although the cache does not show it.
	revisions []revisionWrite
	hidden    string
	// blocked says why a child that is missing is not made, nil if all are.
	blocked error
}

// writes reports whether anything but the status is written.
func (d *decision) writes() bool { return len(d.revisions) > 0 || d.plan.writes() }

// promotes reports whether a revision becomes the newest one.
func (d *decision) promotes() bool {
	return slices.ContainsFunc(d.revisions, func(w revisionWrite) bool { return w.entry.object == nil || w.number != w.entry.revision.Number })
}

// prepared is an answer that is ready for plans. The answer itself keeps it, so that all goes together when the memory of
// answers is full. What is remembered beside that has no objects.
type prepared struct {
	parent   types.UID
	revision string
	wanted   wanted
}

// decide makes the plan of a pass.
func (r *reconciler) decide(ctx context.Context, o *observed, resync bool) (*decision, error) {
	d := &decision{}
	q := &hook.Question{Parent: o.parent, Version: o.memory.version(o.parent), Children: o.groups, Again: resync}
	f := facts{
		observed: o.children, strategies: r.strategies, changed: o.memory.changed, now: r.Clock.Now(), answers: map[string]wanted{},
	}
	if o.log != nil {
		d.newest = o.log.newest.revision.Name
		f.claimed, f.lost = o.log.claimed()
	}
	f.newest = d.newest
	if o.ending || o.log == nil {
		f.strategies = atOnce(r.strategies)
	}
	var err error
	if d.answer, err = r.ask(ctx, o, q, ""); err != nil {
		return nil, err
	}
	d.done = o.ending && r.finalizes && d.answer.Finalized
	if f.answers[f.newest], err = r.prepare(o, "", d.answer); err != nil {
		return nil, err
	}
	d.plan = &plan{}
	if r.manages(o.parent) && d.answer.ChildrenPresence != hook.Absent {
		if d.plan, err = r.plan(ctx, o, q, f); err != nil {
			return nil, err
		}
	}
	names := r.names(o.parent)
	d.plan.creates, d.blocked = taken.Free(d.plan.creates, func(c creation) error { return names.Check(ctx, r.Cache, c.object) })
	if !d.done {
		d.blocked = blocking(d.plan.untold, d.blocked)
	}
	if o.log != nil {
		d.revisions = o.log.writes(d.plan.claims, d.plan.held, r.tidies(o.memory, d.plan))
	}
	return d, nil
}

// tidies reports whether older revisions are to be told what has left them: when the rollout is over, and when it has stood
// still for long. Until then what the newer one says is enough; a pass that finds a child not ready yet would write it for
// each child.
func (r *reconciler) tidies(m *memory, p *plan) bool {
	if p.writes() {
		return false
	}
	left := m.quiet.Add(tidyAfter).Sub(r.Clock.Now())
	if p.complete() || left <= 0 {
		return true
	}
	p.again = soonest(p.again, left)
	return false
}

// manages reports whether the children of a parent are ours to manage: as long as it is not being deleted, and after that
// while our finalizer holds it, unless somebody told the garbage collector what is to become of them (Metacontroller).
func (s *settings) manages(parent *unstructured.Unstructured) bool {
	if parent.GetDeletionTimestamp() == nil {
		return true
	}
	return s.finalized(parent) && !slices.ContainsFunc(parent.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

func atOnce(strategies map[schema.GroupKind]strategy) map[schema.GroupKind]strategy {
	out := maps.Clone(strategies)
	for kind, s := range out {
		out[kind] = s.atOnce()
	}
	return out
}

// plan makes plans until one needs to know nothing more.
func (r *reconciler) plan(ctx context.Context, o *observed, q *hook.Question, f facts) (*plan, error) {
	known := &comparison{Pass: r.childrenOf(o.parent), parent: o.parent, newest: f.answers[f.newest].objects, strategies: f.strategies}
	f.same, f.untold = known.same, known.untold
	for {
		p, err := makePlan(f)
		if err != nil {
			return nil, &faultError{Reason: "InvalidStrategy", Err: err}
		}
		for _, name := range p.asks {
			if f.answers[name], err = r.askAgain(ctx, o, *q, name); err != nil {
				return nil, err
			}
		}
		asked, err := known.settle(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.asks) == 0 && !asked {
			return p, nil
		}
	}
}

// ask asks the hook that the parent's state calls for. Where no finalize hook is declared sync is asked to the end: what it
// says of the status of a parent that somebody else holds is written.
func (r *reconciler) ask(ctx context.Context, o *observed, q *hook.Question, revision string) (*hook.Answer, error) {
	h := r.sync
	if o.ending && r.finalizes {
		h = r.finalize
	}
	q.Revision = revision
	var err error
	if q.Related, err = r.related.GatherFor(ctx, q); err != nil {
		return nil, err
	}
	answer, err := h.Ask(ctx, q)
	if err != nil {
		return nil, err
	}
	if answer.ResyncAfter > 0 {
		r.resync.After(types.NamespacedName{Namespace: o.parent.GetNamespace(), Name: o.parent.GetName()}, answer.ResyncAfter)
	}
	return answer, nil
}

// askAgain asks what an older revision of the parent wants (W2).
func (r *reconciler) askAgain(ctx context.Context, o *observed, q hook.Question, name string) (wanted, error) {
	restored, err := metacontroller.Restore(o.parent, o.log.entry(name).revision.Snapshot)
	if err != nil {
		return wanted{}, &faultError{Reason: "RestoreFailed", Err: fmt.Errorf("revision %s: %w", name, err)}
	}
	q.Parent = restored
	answer, err := r.ask(ctx, o, &q, name)
	if err != nil {
		return wanted{}, fmt.Errorf("revision %s: %w", name, err)
	}
	return r.prepare(o, name, answer)
}

// names returns what is wanted without the objects.
func (w wanted) names() wanted {
	out := wanted{objects: make(map[metacontroller.Child]*unstructured.Unstructured, len(w.order))}
	for _, key := range w.order {
		out.objects[key] = nil
	}
	return out
}

// prepare makes an answer ready for plans, once. It checks that the parent could claim what it is told to make: it would
// let go of it at once, and make it again for ever.
func (r *reconciler) prepare(o *observed, revision string, answer *hook.Answer) (wanted, error) {
	if p, ok := answer.Kept().(prepared); ok && p.parent == o.parent.GetUID() && p.revision == revision {
		return p.wanted, nil
	}
	w := wanted{objects: make(map[metacontroller.Child]*unstructured.Unstructured, len(answer.Children))}
	for _, desired := range answer.Children {
		if r.generate && desired.GetLabels()[metacontroller.UIDLabel] == "" {
			desired = labelled(desired, string(o.parent.GetUID()))
		}
		key := child(o.parent, desired)
		if !o.selector.Matches(labels.Set(desired.GetLabels())) {
			return wanted{}, &faultError{Reason: selectorMismatch, Err: fmt.Errorf(
				"the hook wants %s with labels that the selector of %s does not match (%s), so that it could never be its child",
				key, anyobject.Describe(o.parent), o.selector)}
		}
		w.order = append(w.order, key)
		w.objects[key] = desired
	}
	answer.Keep(prepared{o.parent.GetUID(), revision, w})
	o.memory.prepared[revision] = prepared{wanted: w.names()}
	return w, nil
}

// labelled returns a copy with the label by which parents claim children where the controller generates the selector. All
// but the labels is that of desired.
func labelled(desired *unstructured.Unstructured, uid string) *unstructured.Unstructured {
	out := &unstructured.Unstructured{Object: maps.Clone(desired.Object)}
	metadata, _ := desired.Object["metadata"].(map[string]any)
	if metadata = maps.Clone(metadata); metadata == nil {
		metadata = map[string]any{}
	}
	out.Object["metadata"] = metadata
	l := desired.GetLabels() // a copy
	if l == nil {
		l = map[string]string{}
	}
	l[metacontroller.UIDLabel] = uid
	out.SetLabels(l)
	return out
}

// version is the resourceVersion under which hooks are told of a parent: that of the last read that was news to them. A
// status that we wrote ourselves, on the hook's own word, is none.
func (m *memory) version(parent *unstructured.Unstructured) string {
	if at := parent.GetResourceVersion(); at != m.own {
		m.told = at
	}
	return m.told
}
