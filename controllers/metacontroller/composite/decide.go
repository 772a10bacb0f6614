package composite

import (
	"context"
	"errors"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/readiness"
)

// This file makes the plan of a pass. It has the hook called for the parent as it is, and for an older revision if the
// plan needs to know what that wants; it asks the API server, by dry runs, where only that can tell a default from a
// difference.

// decision is what a pass is about to do.
type decision struct {
	plan   *plan
	answer *hook.Answer
	// newest is the name of the newest revision, empty if the parent has none.
	newest string
	// done says that the finalize hook has nothing left to do.
	done bool
	// revisions are the writes of the log. hidden is the name of a revision that is about to be created, and exists
	// already although the cache does not show it.
	revisions []revisionWrite
	hidden    string
	// blocked says why a missing child is not created, nil if all are.
	blocked error
}

// writes reports whether anything but the status is written.
func (d *decision) writes() bool { return len(d.revisions) > 0 || d.plan.writes() }

// promotes reports whether a revision becomes the newest one.
func (d *decision) promotes() bool {
	return slices.ContainsFunc(d.revisions, func(w revisionWrite) bool { return w.entry.object == nil || w.number != w.entry.revision.Number })
}

// blocker says why a pod of the newest revision is not ready, or else what the plan waits for.
func (d *decision) blocker(o *gathered) string {
	var pods []*corev1.Pod
	for key, child := range o.children {
		pod := &corev1.Pod{}
		if key.GroupKind == (schema.GroupKind{Kind: "Pod"}) && d.plan.belongsTo[key] == d.newest &&
			runtime.DefaultUnstructuredConverter.FromUnstructured(child.Object, pod) == nil {
			pods = append(pods, pod)
		}
	}
	if why := readiness.FirstBlocker(pods); why != "" || len(d.plan.waits) == 0 {
		return why
	}
	return d.plan.waits[0].Unit + ": " + d.plan.waits[0].Reason
}

// decider makes plans.
type decider struct {
	*settings
	*asker

	keeper *children.Keeper
	cache  client.Reader
	clock  clock.PassiveClock
}

// decide makes the plan of a pass.
func (r *decider) decide(ctx context.Context, o *gathered, resync bool) (*decision, error) {
	d := &decision{}
	q := o.question(o.groups)
	q.Again = resync
	f := facts{
		observed: o.children, strategies: r.strategies, changed: o.memory.changed, now: r.clock.Now(), answers: map[string]wanted{},
	}
	if o.log != nil {
		d.newest = o.log.newest.revision.Name
		f.storedIn, f.lost = o.log.storedIn()
	}
	f.newest = d.newest
	if o.ending || o.log == nil {
		f.strategies = allAtOnce(r.strategies)
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
	names := namesFor(o.parent)
	d.plan.creates, d.blocked = children.Free(d.plan.creates, func(c creation) error { return names.Check(ctx, r.cache, c.object) })
	if !d.done {
		d.blocked = blocking(d.plan.compareErrs, d.blocked)
	}
	if o.log != nil {
		d.revisions = o.log.writes(d.plan.belongsTo, d.plan.held)
	}
	return d, nil
}

// manages reports whether the children of a parent are ours to manage: as long as it is not terminating, and after that
// while our finalizer holds it, unless its deletion orphans them or waits for the garbage collector (Metacontroller).
func (s *settings) manages(parent *unstructured.Unstructured) bool {
	if parent.GetDeletionTimestamp() == nil {
		return true
	}
	return s.finalized(parent) && !slices.ContainsFunc(parent.GetFinalizers(), func(f string) bool {
		return f == metav1.FinalizerDeleteDependents || f == metav1.FinalizerOrphanDependents
	})
}

func allAtOnce(strategies map[schema.GroupKind]strategy) map[schema.GroupKind]strategy {
	out := maps.Clone(strategies)
	for kind, s := range out {
		out[kind] = s.atOnce()
	}
	return out
}

// plan makes plans until one needs no further answer.
func (r *decider) plan(ctx context.Context, o *gathered, q *hook.Question, f facts) (*plan, error) {
	known := &comparison{
		Pass: r.childrenOf(o.parent, r.keeper), parent: o.parent, newest: f.answers[f.newest].objects, strategies: f.strategies,
	}
	f.same, f.compareErr = known.same, known.compareErr
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
		asked, err := known.askDoubts(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.asks) == 0 && !asked {
			return p, nil
		}
	}
}

// blocking joins why missing children are not created with why others, which could not be compared, stay as they are.
// Without others it returns missing unwrapped, for [children.OnlyTaken].
func blocking(compareErrs []error, missing error) error {
	if len(compareErrs) == 0 {
		return missing
	}
	return errors.Join(append(compareErrs, missing)...)
}
