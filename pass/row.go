package pass

import (
	"context"
	"errors"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file is the order of a pass over a parent whose children come from revisions: record, plan, try, confirm, act,
// report, truncate. Each step has one place, so that no controller can leave one out.

// Plan is the plan of a controller: a pointer to a struct that embeds [Work].
type Plan interface {
	Writes() bool
	deletes() bool
	again() time.Duration
}

// Work are the creations and deletions of a plan. The zero value does nothing.
type Work[C, D any] struct {
	Creates []C
	Deletes []D
	// Again is the time to the next pass if no event comes first. Zero means never.
	Again time.Duration
}

// LookAgain asks for another pass after a time, unless the plan asks for an earlier one. Zero asks for nothing.
func (w *Work[C, D]) LookAgain(after time.Duration) {
	w.Again = Soonest(w.Again, after)
}

// Writes reports whether the plan creates or deletes a child, so that it must not rest on a stale cache.
func (w *Work[C, D]) Writes() bool         { return len(w.Creates)+len(w.Deletes) > 0 }
func (w *Work[C, D]) deletes() bool        { return len(w.Deletes) > 0 }
func (w *Work[C, D]) again() time.Duration { return w.Again }

// Family are the claimed children of one kind: a [Claimed].
type Family interface {
	Confirm(ctx context.Context) error
	Relabel(ctx context.Context, from, to revision.Revision) error
	revisions() []string
	value(r revision.Revision) string
	suspects(known []revision.Revision, altered func(client.Object) bool) []client.Object
	serves(child client.Object) bool
}

// Row is one pass over a parent whose children come from revisions, after the children and the revisions were claimed.
type Row[P Plan] struct {
	Log *history.Log
	// Entries are the claimed revisions. Collisions is status.collisionCount, Limit spec.revisionHistoryLimit.
	Entries           []revision.Revision
	Collisions, Limit *int32
	// Children are all claimed children.
	Children []Family
	// Rename, if set, replaces the name of a duplicate revision in the status before children are relabelled.
	Rename func(ctx context.Context, from, to revision.Revision) error
	// Plan plans. It replaces no child that altered reports, and none at all if the update revision is not recorded.
	Plan func(recorded *Recorded, altered Altered) (P, error)
	// Try asks whether admission would alter the replacement of suspect: see [Children.Trial]. tried is false if the plan
	// knows of no replacement.
	Try func(ctx context.Context, plan P, suspect client.Object) (tried bool, altered error)
	// Act carries the plan out.
	Act func(ctx context.Context, plan P) error
	// Report writes the status. stored is true if the API server has it now; named are the revisions that the status or
	// children created in this pass name.
	Report func(ctx context.Context, recorded *Recorded, plan P, failed error) (named []string, stored bool, err error)
}

// Run makes the pass. The error is for [Config.Run].
func (w Row[P]) Run(ctx context.Context, p *Pass) error {
	recorded, err := Record(ctx, p, w.Log, w.Entries, w.Collisions, w.relabel)
	if err != nil {
		return err
	}
	plan, altered, err := w.plan(ctx, p, recorded)
	if err != nil {
		return err
	}
	p.RequeueAfter(plan.again())
	if err := w.confirmFor(ctx, p, recorded, plan); err != nil {
		return err
	}
	failed := w.Act(ctx, plan)
	p.NoteUnknownOutcome(failed)
	if Unreported(failed) {
		return failed
	}
	failed = errors.Join(altered, failed)
	named, stored, reported := w.Report(ctx, recorded, plan, failed)
	err = Finished(errors.Join(failed, recorded.Retry()), reported)
	if IsStale(err) || !stored {
		return err // the status that the API server has may name other revisions, and so may children that the pass did not read
	}
	return errors.Join(err, recorded.Truncate(ctx, p, w.Log, Live(w.Children, append(named, p.Targets()...)...), w.Limit, w.confirm))
}

// plan plans. If a child may have been altered by admission, it asks whether its replacement would be altered as well.
// If so, the plan replaces no such child, and altered is the reason. err ends the pass.
func (w Row[P]) plan(ctx context.Context, p *Pass, recorded *Recorded) (plan P, altered, err error) {
	plan, err = w.Plan(recorded, func(client.Object, string) bool { return false })
	if err != nil || !plan.Writes() {
		return plan, nil, err
	}
	known := recorded.Entries
	if recorded.Update != nil {
		known = append(slices.Clip(known), *recorded.Update)
	}
	suspects := p.suspects(w.Children, known, recorded.Update)
	for i, tried := 0, false; i < len(suspects) && !tried; i++ {
		tried, altered = w.Try(ctx, plan, suspects[i])
	}
	if altered == nil {
		return plan, nil, nil
	}
	plan, err = w.Plan(recorded, p.held(suspects))
	return plan, altered, err
}

// confirmFor compares the children with the API server and, before a deletion, the revisions that they come from.
func (w Row[P]) confirmFor(ctx context.Context, p *Pass, recorded *Recorded, plan P) error {
	if !plan.Writes() {
		return nil
	}
	if err := w.confirm(ctx); err != nil || !plan.deletes() {
		return err
	}
	return recorded.Complete(ctx, p, w.Log, Live(w.Children))
}

func (w Row[P]) confirm(ctx context.Context) error {
	for _, children := range w.Children {
		if err := children.Confirm(ctx); err != nil {
			return err
		}
	}
	return nil
}

// Live returns the revisions that something depends on: those that children name, terminating children included, and
// more.
func Live(children []Family, more ...string) revision.InUse {
	more = slices.Clip(more)
	for _, f := range children {
		more = append(more, f.revisions()...)
	}
	return revision.NewInUse(more...)
}

// relabel points the status and the children of a duplicate revision at the revision that stays.
func (w Row[P]) relabel(ctx context.Context, from, to revision.Revision) error {
	if err := w.confirm(ctx); err != nil {
		return err
	}
	if w.Rename != nil {
		if err := w.Rename(ctx, from, to); err != nil {
			return err
		}
	}
	for _, children := range w.Children {
		if err := children.Relabel(ctx, from, to); err != nil {
			return err
		}
	}
	return nil
}
