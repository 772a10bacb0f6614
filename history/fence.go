package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file decides what a write of the log may rest on, by reading past every cache.

// Fence checks past every cache what a new number rests on: that the parent is still as it was read (H7), and that the
// verdict is about all its revisions, because a number that was counted from a stale list would be used twice (H2,
// kubernetes#80698). It costs two requests. The revision that is to be written is left to [Log.Create], and its name
// returned: it may exist because a response was lost. Errors: [ErrStale] (drop the pass), or the API server's (retry).
func (l *Log) Fence(ctx context.Context, parent client.Object, v *Verdict, collisionCount *int32) (hidden string, err error) {
	if err := l.confirmParent(ctx, parent); err != nil {
		return "", err
	}
	wanted := ""
	if v.Update == nil {
		wanted = l.Name(parent, v.Snapshot, collisionCount)
	}
	return l.compare(ctx, parent, v.Entries, func(r revision.Revision) bool { return r.Name == wanted && v.heldBy(r) })
}

// Confirm checks, past every cache, that entries are the revisions of parent, and such as they were read. It costs a
// request. Errors: [ErrStale] (drop the pass), or the API server's (retry).
func (l *Log) Confirm(ctx context.Context, parent client.Object, entries []revision.Revision) error {
	_, err := l.compare(ctx, parent, entries, func(revision.Revision) bool { return false })
	return err
}

// compare looks for a difference between entries, the last one of each UID, and what the API server has. It returns the
// name of a revision that is not among them and is expected.
func (l *Log) compare(
	ctx context.Context, parent client.Object, entries []revision.Revision, expected func(revision.Revision) bool,
) (hidden string, err error) {
	stored, err := l.stored(ctx, parent)
	if err != nil {
		return "", err
	}
	shown := map[types.UID]revision.Revision{}
	for _, r := range entries {
		shown[r.UID] = r
	}
	for _, o := range stored {
		r, known := shown[o.GetUID()]
		delete(shown, o.GetUID())
		switch {
		case known && r.ResourceVersion == o.GetResourceVersion():
		case !known && expected(l.Revision(o)):
			hidden = o.GetName()
		default:
			l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) // the next pass waits until the cache shows it
			return "", fmt.Errorf("%w: the cache does not show revision %s as it is", ErrStale, o.GetName())
		}
	}
	return hidden, l.gone(parent, slices.DeleteFunc(slices.Clone(entries), func(r revision.Revision) bool {
		left, ok := shown[r.UID]
		return !ok || left.ResourceVersion != r.ResourceVersion
	}))
}

// gone notes the revisions that the cache shows although the API server does not have them, all of them: a pass that
// waited for one would find the next one then. The error is nil if there are none.
func (l *Log) gone(parent client.Object, revisions []revision.Revision) error {
	for _, r := range revisions {
		o, err := l.object(parent, r)
		if err != nil {
			return err
		}
		l.opts.Consistency.Outdated(parent.GetUID(), l.Resource(), o)
	}
	if len(revisions) == 0 {
		return nil
	}
	return fmt.Errorf("%w: revision %s was deleted, or no longer belongs to this parent", ErrStale, revisions[0].Name)
}

// Stays checks past the cache that a revision is still as it was read, before its duplicate is deleted: without both,
// what the children came from would be lost. One whose labels were removed will soon be released. Errors: [ErrStale]
// (drop the pass), or the API server's (retry).
func (l *Log) Stays(ctx context.Context, parent client.Object, r revision.Revision) error {
	o, err := l.get(ctx, parent, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: revision %s was deleted, and the cache does not show it", ErrStale, r.Name)
	case err != nil:
		return fmt.Errorf("read revision %s past the cache: %w", r.Name, err)
	case o.GetUID() != r.UID || o.GetResourceVersion() != r.ResourceVersion:
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) // the next pass waits until the cache shows it
		return fmt.Errorf("%w: revision %s has changed, and the cache does not show it", ErrStale, r.Name)
	}
	return nil
}

// confirmParent checks past every cache that parent, as read, is still what the API server has.
func (l *Log) confirmParent(ctx context.Context, parent client.Object) error {
	fresh, err := ownership.Reread(ctx, l.opts.Live, parent)
	if errors.Is(err, ownership.ErrGone) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	if err != nil {
		return err
	}
	if l.opts.Reread != nil {
		l.opts.Reread(fresh)
	}
	if fresh.GetGeneration() != parent.GetGeneration() {
		return fmt.Errorf("%w: it is at generation %d, not %d", ErrStale, fresh.GetGeneration(), parent.GetGeneration())
	}
	if l.tracksGeneration(parent) || fresh.GetResourceVersion() == parent.GetResourceVersion() {
		return nil
	}
	was, err := l.snapshot(parent)
	if err != nil {
		return err
	}
	now, err := l.Snapshot(fresh)
	if err != nil {
		return fmt.Errorf("take a snapshot of %s past the cache: %w", l.describe(parent), err)
	}
	if revision.Compare(was, now) == revision.RuleNone {
		return fmt.Errorf("%w: %s has changed since it was read", ErrStale, l.describe(parent))
	}
	return nil
}
