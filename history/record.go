package history

import (
	"context"
	"errors"
	"fmt"
	"maps"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file makes a verdict durable, before any child is touched.

// Recorded is the log after a verdict has been made durable.
type Recorded struct {
	// Update is the revision that is equivalent to the parent, as it is stored now. Children are built from it.
	Update revision.Revision
	// Deleted are the duplicates that were deleted.
	Deleted []revision.Revision
	// Kept says why a duplicate could not be deleted, nil if all were: report it, and try again. No child has its label
	// any more, and nothing else waits for it.
	Kept error
	// CollisionCount is the count under which the revision got its name. It differs from the one given only if names
	// had to be skipped; the caller then writes it to the parent's status.
	CollisionCount *int32
}

// Relabel points the children that carry the label of one revision at another. It is called before a duplicate is
// deleted; an error keeps the duplicate.
type Relabel func(ctx context.Context, from, to revision.Revision) error

// Record carries a verdict out: it labels revisions that have no hash label, removes duplicates, and creates, renumbers
// or stamps the update revision. It makes no request if nothing is to be written. collisionCount is that of the
// parent's status, nil if it has none.
//
// It may be repeated after any error: a write whose response was lost is found again and not repeated. Errors:
// [ErrStale] (drop the pass), [*TooLargeError] (report it; there is no point in retrying before the parent changes), a
// [*revision.NumberError] that [Log.Resolve] gave already, or an API error (retry). After an error no child may be
// written.
func (l *Log) Record(ctx context.Context, parent client.Object, v *Verdict, collisionCount *int32, relabel Relabel) (*Recorded, error) {
	if v.Update == nil && v.Full != nil {
		return nil, v.Full // there is no number to record it under
	}
	out := &Recorded{CollisionCount: collisionCount}
	hidden := ""
	if v.Update == nil || v.Renumber() {
		var err error
		if hidden, err = l.Fence(ctx, parent, v, collisionCount); err != nil {
			return nil, err
		}
	}
	if err := l.label(ctx, parent, v); err != nil {
		return nil, err
	}
	var err error
	if out.Deleted, out.Kept, err = l.merge(ctx, parent, v, relabel); err != nil {
		return nil, err
	}
	switch {
	case v.Update == nil:
		out.Update, out.CollisionCount, err = l.create(ctx, parent, v, collisionCount, hidden)
	case v.Renumber() || v.Restamp():
		change := Change{Number: v.Number, Stamp: v.Stamp, Annotations: v.Annotations()}
		if f, has := l.Format.(interface {
			again(parent client.Object) map[string]any
		}); has && v.Renumber() {
			maps.Copy(change.Annotations, f.again(parent))
		}
		out.Update, err = l.Change(ctx, parent, *v.Update, change)
	default:
		out.Update = *v.Update
	}
	if err != nil {
		return nil, err
	}
	return out, nil
}

// create stores the revision that a verdict asks for. One that an earlier request stored may have a lower number by
// now.
func (l *Log) create(
	ctx context.Context, parent client.Object, v *Verdict, count *int32, hidden string,
) (revision.Revision, *int32, error) {
	created, err := l.Create(ctx, parent, v, count, hidden, nil)
	if err != nil {
		return revision.Revision{}, nil, err
	}
	update := created.Revision
	if created.Existed && created.Number < v.Number {
		update, err = l.Change(ctx, parent, created.Revision, Change{Number: v.Number, Stamp: v.Stamp})
	}
	return update, created.CollisionCount, err
}

// merge relabels the children of duplicates to the revisions that they equal, deletes the duplicates and returns them.
// kept says why one could not be deleted: a policy against it must not stop the recording of edits.
func (l *Log) merge(
	ctx context.Context, parent client.Object, v *Verdict, relabel Relabel,
) (deleted []revision.Revision, kept, err error) {
	for _, d := range v.Duplicates {
		if err := l.Stays(ctx, parent, d.Of); err != nil {
			return nil, nil, err
		}
		if err := relabel(ctx, d.Revision, d.Of); err != nil {
			return nil, nil, fmt.Errorf("point the children of revision %s at its equal %s: %w", d.Revision.Name, d.Of.Name, err)
		}
		switch _, err := l.Delete(ctx, parent, d.Revision); {
		case errors.Is(err, ErrStale):
			return nil, nil, err
		case err != nil:
			kept = err
		default:
			deleted = append(deleted, d.Revision)
		}
	}
	return deleted, kept, nil
}

// label gives a hash label to revisions that have none, and ends the pass if there were any: these writes outdate the
// versions that the verdict knows, and the next pass does the rest. If another revision has the label, children could
// not tell the two apart, so the UID makes it unique.
func (l *Log) label(ctx context.Context, parent client.Object, v *Verdict) error {
	taken := map[string]bool{}
	for _, r := range v.Entries {
		taken[r.Hash] = true
	}
	for _, r := range v.Relabel {
		named := r
		if taken[revision.LabelValue(r.Name)] {
			named.Name += "-" + string(r.UID)
		}
		taken[revision.LabelValue(named.Name)] = true
		if _, err := l.Change(ctx, parent, r, Change{Labels: l.HashLabels(named)}); err != nil {
			return err
		}
	}
	if n := len(v.Relabel); n > 0 {
		return fmt.Errorf("%w: %d of its revisions were labelled just now", ErrStale, n)
	}
	return nil
}
