package composite

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/taken"
)

// This file makes a plan of what there is and what there should be. It has the hook asked about the parent as it is, and about
// an older revision if the plan needs to know what that wants; it has the API server asked where it takes that to tell a default
// from a difference.

// tidyAfter is how long a rollout stands still until older revisions say what they no longer have.
const tidyAfter = time.Minute

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
	d.plan.creates, d.blocked = taken.Free(d.plan.creates, func(c creation) error { return names.Check(ctx, r.cache, c.object) })
	if !d.done {
		d.blocked = blocking(d.plan.untold, d.blocked)
	}
	if o.log != nil {
		d.revisions = o.log.writes(d.plan.belongsTo, d.plan.held, r.tidies(o.memory, d.plan))
	}
	return d, nil
}

// tidies reports whether older revisions are to be told what has left them: when the rollout is over, and when it has stood
// still for long. Until then what the newer one says is enough; a pass that finds a child not ready yet would write it for
// each child.
func (r *decider) tidies(m *memory, p *plan) bool {
	if p.writes() {
		return false
	}
	left := m.pause.until.Add(tidyAfter).Sub(r.clock.Now())
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

func allAtOnce(strategies map[schema.GroupKind]strategy) map[schema.GroupKind]strategy {
	out := maps.Clone(strategies)
	for kind, s := range out {
		out[kind] = s.atOnce()
	}
	return out
}

// plan makes plans until one needs to know nothing more.
func (r *decider) plan(ctx context.Context, o *gathered, q *hook.Question, f facts) (*plan, error) {
	known := &comparison{
		Pass: r.childrenOf(o.parent, r.keeper), parent: o.parent, newest: f.answers[f.newest].objects, strategies: f.strategies,
	}
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
		asked, err := known.askDoubts(ctx)
		if err != nil {
			return nil, err
		}
		if len(p.asks) == 0 && !asked {
			return p, nil
		}
	}
}

// blocking joins why children that are missing are not made with why others stay as they are although nobody can tell
// whether they are what is wanted. What only waits for a name stays what it is, see [taken.Only].
func blocking(untold []error, missing error) error {
	if len(untold) == 0 {
		return missing
	}
	return errors.Join(append(untold, missing)...)
}
