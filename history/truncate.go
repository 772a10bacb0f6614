package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file deletes revisions, each with its UID and version as preconditions.

// Truncate deletes the oldest revisions beyond limit that nothing depends on (proposal, "History Maintenance"). entries
// are all revisions of parent, update is the one that the parent asks for; neither it nor a live one is ever deleted, and
// nothing is if live is not known. limit is the parent's revisionHistoryLimit; a negative one counts as 0.
//
// It runs on error paths too, so it must be given the full live set or none. The error joins all that went wrong; the
// log stays longer than asked, and the next pass tries again.
func (l *Log) Truncate(
	ctx context.Context, parent client.Object, entries []revision.Revision, update revision.Revision, live revision.Live, limit int,
) error {
	var errs []error
	for _, r := range revision.Prune(entries, update, live, limit) {
		_, err := l.Delete(ctx, parent, r)
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// Without returns entries without those of gone, by UID.
func Without(entries, gone []revision.Revision) []revision.Revision {
	return slices.DeleteFunc(slices.Clone(entries), func(r revision.Revision) bool {
		return slices.ContainsFunc(gone, func(g revision.Revision) bool { return g.UID == r.UID })
	})
}

// Delete removes exactly the revision that was read, and reports whether it did. If somebody renumbered it meanwhile it is in use
// again, and stays. The error is the API server's (retry).
func (l *Log) Delete(ctx context.Context, parent client.Object, r revision.Revision) (bool, error) {
	o, err := l.object(parent, r)
	if err != nil {
		return false, err
	}
	err = l.opts.Client.Delete(ctx, o, client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return false, nil
	case err != nil:
		return false, fmt.Errorf("delete revision %s: %w", r.Name, err)
	}
	l.opts.Deleted(parent.GetUID(), o)
	return true, nil
}
