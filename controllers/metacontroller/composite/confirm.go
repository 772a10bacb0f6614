package composite

import (
	"context"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file keeps a process that just started, or that does not know the outcome of its last write, from acting on a
// stale cache.

// confirmer compares cached objects with the API server.
type confirmer struct {
	kinds *children.Kinds
	log   *history.Log
}

// confirm compares the caches with the API server, before the first write of this process for a parent, and again after
// a response was lost. Whether the parent still asks for what is about to become its newest revision is checked each
// time (H7). It returns an error that wraps ownership.ErrStale if the cache is stale.
func (r *confirmer) confirm(ctx context.Context, o *gathered, d *decision) error {
	if !d.writes() || o.parent.GetDeletionTimestamp() != nil {
		return nil // a terminating parent has nothing to lose
	}
	if err := r.confirmLog(ctx, o, d); err != nil || !d.plan.replaces() {
		return err // names of children follow from the hook's answer, so that none is created twice
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
	// What is removed from a revision depends on all revisions, and so does a new number: another process may have used it
	// a moment ago, so they are listed for each promotion. A parent that was never edited can have one revision only, of
	// the name that is about to be created.
	edited := o.parent.GetGeneration() != 1
	done, numbers := &o.memory.confirmed, d.promotes() && edited
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
	// A missing child comes from the revision that lists it, which a cache from before an edit does not have.
	comesBack := len(d.plan.creates) > 0 && edited
	if o.log != nil && (d.plan.replaces() || comesBack) && !done.revisions {
		if err := r.log.Confirm(ctx, o.parent, o.log.Entries); err != nil {
			return err
		}
		done.revisions = true
	}
	return nil
}
