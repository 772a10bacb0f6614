package builder

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file is one pass, from the parent to the report. setup.go wires it to a manager; package pass begins and ends
// it.

// pass is one pass over a parent that is there: gather, record, plan, act, report, truncate.
func (r *reconciler[P]) pass(ctx context.Context, p *pass.Pass) error {
	parent := p.Parent.(P)
	o, err := r.gather(ctx, p, parent)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return r.refuse(ctx, p, parent, refused)
	}
	if err != nil {
		return err
	}
	recorded, err := pass.Record(ctx, p, r.log, o.entries, nil, r.relabel(p, o))
	if err != nil {
		return err
	}
	rep := report{recorded: recorded}
	rep.facts, err = r.facts(ctx, o, recorded)
	if refused, ok := errors.AsType[*refusedError](err); ok {
		return r.refuse(ctx, p, parent, refused)
	}
	if err != nil {
		return err
	}
	rep.plan = makePlan(rep.facts)
	altered := r.trial(ctx, p, o, &rep)
	p.RequeueAfter(rep.plan.again)
	if err := r.confirm(ctx, p, o, rep); err != nil {
		return err
	}
	rep.failed = r.act(ctx, p, rep.facts.update, rep.plan)
	p.NoteUnknownOutcome(rep.failed)
	if pass.IsStale(rep.failed) {
		return rep.failed
	}
	rep.failed = errors.Join(altered, rep.failed)
	marked := r.complete(ctx, p, o, rep)
	if pass.IsStale(marked) {
		return marked // the status says so afterwards
	}
	if rep.complete() {
		r.answers.forget(parent.GetUID()) // it costs memory, and there is nothing to do
	}
	stored, reported := r.report(ctx, p, parent, rep)
	err = pass.Finished(errors.Join(rep.failed, recorded.Retry(), marked), reported)
	if pass.IsStale(err) || !stored {
		return err // what is live was read too early as well; or the status may name a revision that is not the parent's any more
	}
	confirm := func(ctx context.Context) error { return r.confirmChildren(ctx, p, o) }
	live := o.live(append(rep.plan.sources(), rep.facts.update)...)
	return errors.Join(err, recorded.Truncate(ctx, p, r.log, live, r.limit(parent), confirm))
}

// complete notes on the update revision that the rollout to it is complete, once.
func (r *reconciler[P]) complete(ctx context.Context, p *pass.Pass, o *observed, rep report) error {
	update := rep.recorded.Update
	if !rep.complete() || o.completed[update.UID] {
		return nil
	}
	_, err := r.log.Change(ctx, p.Parent, *update, history.Change{Annotations: map[string]any{history.CompletedAnnotation: "true"}})
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return fmt.Errorf("%w: revision %s has changed", ownership.ErrStale, update.Name)
	}
	return err
}

// limit is how many revisions are kept.
func (r *reconciler[P]) limit(parent P) *int32 {
	if r.author.Limit == nil {
		return nil
	}
	return new(r.author.Limit(parent))
}

// confirm makes sure that what is about to be done does not rest on an old cache: of children, and of the revisions of
// those that go.
func (r *reconciler[P]) confirm(ctx context.Context, p *pass.Pass, o *observed, rep report) error {
	if rep.plan.risky() {
		if err := r.confirmChildren(ctx, p, o); err != nil {
			return err
		}
	}
	if len(rep.plan.deletes) == 0 {
		return nil
	}
	return rep.recorded.Complete(ctx, p, r.log, o.live())
}

func (r *reconciler[P]) confirmChildren(ctx context.Context, p *pass.Pass, o *observed) error {
	for i, ch := range r.children {
		if err := ch.Confirm(ctx, p, o.selector, o.children[i]); err != nil {
			return err
		}
	}
	return nil
}

// relabel points the children of a duplicate revision at the one that stays.
func (r *reconciler[P]) relabel(p *pass.Pass, o *observed) func(ctx context.Context, from, to revision.Revision) error {
	value := func(r revision.Revision) string { return r.Hash }
	return func(ctx context.Context, from, to revision.Revision) error {
		for i, ch := range r.children {
			if err := ch.Relabel(p, o.selector, o.children[i], HashLabel, value)(ctx, from, to); err != nil {
				return err
			}
		}
		return nil
	}
}

// refusedError says why nothing can be done for a parent before somebody edits it, or mends the controller.
type refusedError struct {
	reason string
	err    error
	// retry says that the same may succeed later: the author's function failed.
	retry bool
}

func (e *refusedError) Error() string { return e.err.Error() }
func (e *refusedError) Unwrap() error { return e.err }

func refusef(reason, format string, args ...any) error {
	return &refusedError{reason: reason, err: fmt.Errorf(format, args...)}
}

// describe names a child in events and errors.
func describe(k childKind, o client.Object) string { return k.gvk.Kind + " " + o.GetName() }
