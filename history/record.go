package history

import (
	"context"
	"errors"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
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
	// Unlabelled is the [*LabelError] of a revision that could not be given its hash label, nil if there is none: report
	// it, and try again. Nothing waits for it.
	Unlabelled error
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
	var err error
	if out.Unlabelled, err = l.label(ctx, parent, v); err != nil {
		return nil, err
	}
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
	if v.Update == nil || out.Update.ResourceVersion != v.Update.ResourceVersion {
		out.Update = identified(parent, v.Entries, out.Update)
	}
	return out, nil
}

// identified returns one revision, as it is stored, with the hash that it has among all.
func identified(parent client.Object, all []revision.Revision, one revision.Revision) revision.Revision {
	all = append(Without(all, []revision.Revision{one}), one)
	return revision.Identified(namedWith(parent), all)[len(all)-1]
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

// label writes missing hash labels, and ends the pass if it wrote any: these writes outdate the versions in the
// verdict, and the next pass does the rest. unlabelled is the error of a write that was refused or reverted. Nothing
// waits for that write, because [revision.Identified] does not depend on it.
func (l *Log) label(ctx context.Context, parent client.Object, v *Verdict) (unlabelled, err error) {
	written := 0
	for _, r := range v.Relabel {
		want := l.HashLabels(r)
		if len(want) == 0 {
			continue
		}
		is, err := l.Change(ctx, parent, r, Change{Labels: want})
		switch {
		case apierrors.IsConflict(err), apierrors.IsNotFound(err):
			return nil, err
		case err != nil:
			unlabelled = &LabelError{Revision: r.Name, Label: r.Hash, Err: err}
		case is.Hash != r.Hash:
			unlabelled = &LabelError{Revision: r.Name, Label: r.Hash}
		default:
			written++
		}
	}
	if written > 0 {
		return nil, fmt.Errorf("%w: %d of its revisions were labelled just now", ErrStale, written)
	}
	return unlabelled, nil
}

// LabelError means that a revision does not have its hash as a label. Its children have that label. Only commands that
// look for a revision by the label of a child are affected.
type LabelError struct {
	// Revision is its name, and Label the value.
	Revision, Label string
	// Err is the API server's answer. It is nil if admission has changed the label again.
	Err error
}

// Error names the revision, the label and the cause.
func (e *LabelError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("revision %s does not keep its hash label %q: an admission webhook or policy changes it", e.Revision, e.Label)
	}
	return fmt.Sprintf("revision %s could not be given its hash label %q: %v", e.Revision, e.Label, e.Err)
}

// Unwrap returns the API server's answer.
func (e *LabelError) Unwrap() error { return e.Err }
