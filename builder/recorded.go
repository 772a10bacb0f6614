package builder

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file records one parent of a [History], and is what can be done with the log then.

// Recorded is the log of one parent after [History.Record]: the revision that the parent asks for is stored. Its fields
// are for reading.
type Recorded[P client.Object] struct {
	// Number, Name and Label are those of the revision that the parent asks for. The number is the highest, as a rule;
	// Name is that of the ControllerRevision, and Label is the value for labels and annotations of what is made from it:
	// see [HashLabel].
	Number      int64
	Name, Label string
	// Change says what the parent did since it was recorded last: [revision.NoChange], [revision.RollForward] for an edit,
	// [revision.Rollback] for an undo. Reason says so in a sentence, for an event.
	Change revision.Change
	Reason string
	// Revisions are all revisions of the parent, oldest first, the one that it asks for included.
	Revisions []revision.Revision
	// Warnings are problems of the log that stop nothing. A revision cannot be decoded, deleted or labelled, or the API
	// server refused a dry run. They are for an event.
	Warnings []error

	history *History[P]
	parent  P
	update  revision.Revision
}

// Record finds the revision that parent asks for, and stores it if there is none: it claims the parent's revisions (the
// three laws), compares, checks past the cache what a new number rests on, and writes. It makes no request if nothing
// has changed. parent is the parent as it was read; it is not changed. One whose type has a cache is best read from it.
//
// Errors, each of which a reconciler returns as it is, without making anything of the parent:
//
//   - one that wraps [history.ErrStale]: the parent or its log, as read, is older than what the API server has, or
//     another writer was first. controller-runtime retries with back-off, and the cache will have caught up.
//   - a [reconcile.TerminalError], which is not retried: parent was not read from the API server, is of another kind,
//     or is terminating (return before Record then); its versioned fields are too large to be stored
//     ([*history.TooLargeError]); or a revision has the highest number there is ([*revision.NumberError] says which one
//     to delete). An edit of the parent, or of that revision, enqueues it.
//   - an API error, or that of Relabel: controller-runtime retries with back-off. Record may be repeated after any of
//     them; a write whose response was lost is found again.
func (h *History[P]) Record(ctx context.Context, parent P) (*Recorded[P], error) {
	h.started.Do(func() { upgrades(h.stored, h.Upgrade) })
	if err := h.sound(parent); err != nil {
		return nil, reconcile.TerminalError(fmt.Errorf("record a revision: %w", err))
	}
	if err := h.caughtUp(ctx, parent); err != nil {
		return nil, err
	}
	selector, err := h.log.Selector(parent)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	entries, err := h.log.Claim(ctx, parent, selector)
	if err != nil {
		return nil, h.failed(err)
	}
	verdict, err := h.log.Resolve(ctx, parent, entries)
	if err != nil {
		return nil, h.failed(err)
	}
	stored, err := h.log.Record(ctx, parent, verdict, nil, func(ctx context.Context, from, to revision.Revision) error {
		if h.Relabel == nil {
			return nil
		}
		return h.Relabel(ctx, parent, from, to)
	})
	if err != nil {
		return nil, h.failed(err)
	}
	if verdict.Change != revision.NoChange {
		log.FromContext(ctx).Info("Recorded", "revision", stored.Update.Number, "name", stored.Update.Name, "reason", verdict.Reason)
	}
	return h.recorded(parent, verdict, stored), nil
}

// sound reports why nothing can be recorded of a parent.
func (h *History[P]) sound(parent P) error {
	if isNil(parent) {
		return errors.New("the parent is nil")
	}
	name := fmt.Sprintf("%s %s/%s", h.parent.Kind, parent.GetNamespace(), parent.GetName())
	switch kind := parent.GetObjectKind().GroupVersionKind(); {
	case !kind.Empty() && kind != h.parent:
		return fmt.Errorf("%s/%s is a %s, and the history is attached to %s", parent.GetNamespace(), parent.GetName(), kind, h.parent)
	case parent.GetUID() == "":
		return fmt.Errorf("%s was not read from the API server: it has no UID", name)
	case parent.GetDeletionTimestamp() != nil:
		return fmt.Errorf("%s: %w: it is terminating, and nothing is recorded of it any more", name, ownership.ErrGone)
	}
	return nil
}

// failed says what an error means for the reconciler.
func (h *History[P]) failed(err error) error {
	if apierrors.IsConflict(err) && !pass.IsStale(err) {
		return fmt.Errorf("%w: %w", ownership.ErrStale, err)
	}
	if err = pass.AsNamespaceTerminating(err); pass.IsStale(err) {
		return err
	}
	_, large := errors.AsType[*history.TooLargeError](err)
	_, full := errors.AsType[*revision.NumberError](err)
	if large || full {
		return reconcile.TerminalError(err)
	}
	return err
}

func (h *History[P]) recorded(parent P, verdict *history.Verdict, stored *history.Recorded) *Recorded[P] {
	update := stored.Update
	r := &Recorded[P]{
		Number: update.Number, Name: update.Name, Label: update.Hash,
		Change: verdict.Change, Reason: verdict.Reason, Warnings: verdict.Refused,
		history: h, parent: parent, update: update,
	}
	rest := history.Without(verdict.Entries, append(stored.Deleted, update))
	r.Revisions = revision.Sorted(append(rest, update))
	for _, unreadable := range verdict.Undecodable {
		r.Warnings = append(r.Warnings, unreadable.Err)
	}
	if verdict.Full != nil {
		r.Warnings = append(r.Warnings, verdict.Full)
	}
	for _, err := range []error{stored.Kept, stored.Unlabelled} {
		if err != nil {
			r.Warnings = append(r.Warnings, err)
		}
	}
	return r
}

// At returns the parent with its versioned fields restored to one of Revisions, and everything else as it is: what to
// make again that comes from that revision, or what to update the parent to for an undo. The result is a copy.
//
// The error is a [*revision.UndecodableError] for a revision that cannot be read (show it; the revision is kept), or
// says that the parent has something else where the field should be.
func (r *Recorded[P]) At(which revision.Revision) (P, error) {
	var none P
	if which.Snapshot == nil {
		return none, fmt.Errorf("restore the revision %s: %w", which.Name, which.Err)
	}
	out, err := r.history.restore(r.parent, which.Snapshot)
	if err != nil {
		return none, fmt.Errorf("restore the revision %s: %w", which.Name, err)
	}
	return out.(P), nil
}

// Truncate deletes the oldest revisions beyond limit that nothing depends on (proposal, "History Maintenance"). The one
// that the parent asks for is neither counted nor deleted, nor are those that live names, by name or label: give it the
// revisions that objects of yours carry, terminating ones included, and none if there are no such objects. A negative
// limit keeps all.
//
// An error leaves the log longer than asked: return it, and the next reconcile truncates. It wraps [history.ErrStale]
// if another writer was first, and is the API server's otherwise.
func (r *Recorded[P]) Truncate(ctx context.Context, limit int, live ...string) error {
	if limit < 0 {
		return nil
	}
	if err := r.history.log.Truncate(ctx, r.parent, r.Revisions, r.update, revision.NewInUse(live...), limit); err != nil {
		return r.history.failed(err)
	}
	return nil
}
