package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file deletes revisions, each with its UID and version as preconditions.

// Truncate deletes the oldest revisions beyond limit that nothing depends on (proposal, "History Maintenance"). entries
// are all revisions of parent, update is the one that the parent asks for; neither it nor a live one is ever deleted,
// and nothing is if live is not known. limit is the parent's revisionHistoryLimit; a negative one counts as 0.
//
// It runs on error paths too, so it must be given the full live set or none. The error joins all that went wrong; the
// log stays longer than asked, and the next pass tries again. If the only failure is that another writer was first, the
// error wraps [ErrStale].
func (l *Log) Truncate(
	ctx context.Context, parent client.Object, entries []revision.Revision, update revision.Revision, live revision.InUse, limit int,
) error {
	var failed, stale []error
	for _, r := range revision.Prune(entries, update, live, limit) {
		if _, err := l.Delete(ctx, parent, r); errors.Is(err, ErrStale) {
			stale = append(stale, err)
		} else {
			failed = append(failed, err)
		}
	}
	if err := errors.Join(failed...); err != nil {
		return err
	}
	return errors.Join(stale...)
}

// Without returns the entries that are not in gone, by UID.
func Without(entries, gone []revision.Revision) []revision.Revision {
	return slices.DeleteFunc(slices.Clone(entries), func(r revision.Revision) bool {
		return slices.ContainsFunc(gone, func(g revision.Revision) bool { return g.UID == r.UID })
	})
}

// Delete removes exactly the revision that was read, and reports whether it did; one that does not exist is no error.
// If another writer renumbered it meanwhile, it is in use again, and stays: the error wraps [ErrStale] (drop the pass).
// Any other error is the API server's (retry).
func (l *Log) Delete(ctx context.Context, parent client.Object, r revision.Revision) (bool, error) {
	o, err := l.object(parent, r)
	if err != nil {
		return false, err
	}
	err = l.opts.Client.Delete(ctx, o, client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return false, l.overtaken(ctx, parent, o, fmt.Errorf("delete revision %s: %w", r.Name, err))
	case err != nil:
		return false, fmt.Errorf("delete revision %s: %w", r.Name, err)
	}
	l.opts.Consistency.Deleted(parent.GetUID(), l.Resource(), o)
	return true, nil
}

// overtaken says what a conflict about a revision means: that the pass rests on a stale read, or that admission refused
// the write with that code.
func (l *Log) overtaken(ctx context.Context, parent, read client.Object, conflict error) error {
	found, changed, err := ownership.Changed(ctx, l.opts.Live, read)
	switch {
	case err != nil:
		return err
	case !changed:
		return conflict
	case found != nil:
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), found) // the next pass waits until the cache shows it
	}
	return fmt.Errorf("%w: revision %s changed before it could be deleted", ErrStale, read.GetName())
}
