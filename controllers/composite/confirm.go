package composite

import (
	"context"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
)

// This file makes sure that a process that just started, or that does not know what became of its last write, does not act
// on the past.

// confirm checks, before the first write of this process for a parent, that the cache is not behind the API server, and so
// again after an answer was lost. Whether the parent still asks for what is about to become its newest revision it asks
// each time (H7). It returns an error that wraps ownership.ErrStale if the cache is behind.
func (r *reconciler) confirm(ctx context.Context, o *observed, d *decision) error {
	if !d.writes() || o.parent.GetDeletionTimestamp() != nil {
		return nil // whoever is going keeps nothing that could be lost
	}
	if !o.memory.confirmed || d.promotes() {
		if err := o.memory.pass.Current(ctx); err != nil {
			return err
		}
		o.memory.confirmed = true
	}
	// What is gone from a revision rests on all of them, and so does a number: another process may have given it a moment
	// ago, so that they are listed for each. Of a parent that was never edited there can be one only, of the name that is
	// about to be made.
	numbers := d.promotes() && o.parent.GetGeneration() != 1
	if numbers {
		r.revisions.Fresh.Forget(o.parent.GetUID())
	}
	if numbers || d.plan.replaces() {
		if err := r.confirmRevisions(ctx, o); err != nil {
			return err
		}
	}
	if !d.plan.replaces() {
		return nil // names of children follow from the hook's answer, so that what is made twice exists already
	}
	for _, group := range o.groups {
		kind := group.GroupKind()
		if !d.plan.touches(kind) {
			continue
		}
		if err := r.owned[kind].Confirm(ctx, o.memory.pass, o.selector, group.Objects); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) confirmRevisions(ctx context.Context, o *observed) error {
	if o.log == nil {
		return nil
	}
	selector, err := r.format.Selector(o.parent)
	if err != nil {
		return err
	}
	stored := make([]*v1alpha1.ControllerRevision, len(o.log.entries))
	for i, e := range o.log.entries {
		stored[i] = e.object
	}
	return r.revisions.Confirm(ctx, o.memory.pass, selector, stored)
}
