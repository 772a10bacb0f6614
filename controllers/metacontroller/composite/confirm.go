package composite

import (
	"context"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file makes sure that a process that just started, or that does not know what became of its last write, does not act
// on the past.

// confirmer reads past the cache.
type confirmer struct {
	kinds *children.Kinds
	log   *history.Log
}

// confirm checks, before the first write of this process for a parent, that the cache is not stale, and so
// again after an answer was lost. Whether the parent still asks for what is about to become its newest revision it asks
// each time (H7). It returns an error that wraps ownership.ErrStale if the cache is stale.
func (r *confirmer) confirm(ctx context.Context, o *gathered, d *decision) error {
	if !d.writes() || o.parent.GetDeletionTimestamp() != nil {
		return nil // a parent that is being deleted keeps nothing that could be lost
	}
	if err := r.confirmLog(ctx, o, d); err != nil || !d.plan.replaces() {
		return err // names of children follow from the hook's answer, so that what is made twice exists already
	}
	for _, group := range o.groups {
		kind := group.GroupKind()
		if !d.plan.touches(kind) {
			continue
		}
		if err := r.kinds.Of(kind).Confirm(ctx, o.pass, o.selector, group.Objects); err != nil {
			return err
		}
	}
	return nil
}

// confirmLog checks the parent and its revisions.
func (r *confirmer) confirmLog(ctx context.Context, o *gathered, d *decision) error {
	// What is gone from a revision rests on all of them, and so does a number: another process may have given it a moment
	// ago, so that they are listed for each. Of a parent that was never edited there can be one only, of the name that is
	// about to be made.
	done, numbers := &o.memory.confirmed, d.promotes() && o.parent.GetGeneration() != 1
	var err error
	switch {
	case numbers:
		d.hidden, err = r.log.Fence(ctx, o.parent, o.log.Verdict, o.log.collisions)
	case !done.parent || d.promotes():
		err = o.pass.Current(ctx)
	}
	if err != nil {
		return err
	}
	done.parent, done.revisions = true, done.revisions || numbers
	if o.log != nil && d.plan.replaces() && !done.revisions {
		if err := r.log.Confirm(ctx, o.parent, o.log.Entries); err != nil {
			return err
		}
		done.revisions = true
	}
	return nil
}
