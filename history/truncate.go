package history

import (
	"context"
	"errors"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file deletes revisions that nothing needs any more.

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
