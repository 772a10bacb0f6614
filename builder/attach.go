package builder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file gives a history to a reconciler that somebody has already: no children, no rollout, only the log.

// History is the revision log of the parents of one kind. [Attach] makes one; it is safe for concurrent use on different parents.
type History[P client.Object] struct {
	parentKind[P]

	controller *pass.Controller
	log        *history.Log
}

// Attach prepares mgr, before it starts, for a history of parents of one kind, for a reconciler that is there already. parent is an
// empty parent, in a namespace; versions are the field paths that revisions hold, as for [Controller.Versions].
//
// The reconciler calls [History.Record] before it acts and [Recorded.Truncate] when it is done. Let it own ControllerRevisions as
// well, Owns(&appsv1.ControllerRevision{}), so that one that somebody deletes is made again. cairn history, diff and undo then know
// the kind.
//
// The error joins all that is wrong with the arguments, or says what the API server does not serve; it is for the author. What the
// manager's role has to grant: get, list, watch on parents, update on parents/finalizers where
// OwnerReferencesPermissionEnforcement is on; get, list, watch, create, patch, delete on controllerrevisions.apps; create and patch
// on events.events.k8s.io.
func Attach[P client.Object](ctx context.Context, mgr ctrl.Manager, parent P, versions ...string) (*History[P], error) {
	if isNil(parent) {
		return nil, errors.New("attach a history: the parent is nil: it has to be an empty one, for instance &v1.Site{}")
	}
	kind, errs := describeParent(mgr.GetScheme(), mgr.GetRESTMapper(), parent, versions, nil)
	if err := errors.Join(errs...); err != nil {
		return nil, fmt.Errorf("attach a history to %T: %w", parent, err)
	}
	if err := kind.inServedSchema(mgr); err != nil {
		return nil, fmt.Errorf("attach a history to %s: %w", kind.gvk.Kind, err)
	}
	ledger, err := ownership.Wire(ctx, mgr,
		map[schema.GroupResource]client.Object{history.AppsResource: &appsv1.ControllerRevision{}},
		map[schema.GroupResource]client.Object{kind.resource: parent})
	if err != nil {
		return nil, err
	}
	h := &History[P]{parentKind: kind}
	h.controller = pass.New(pass.Config{
		Kind: kind.gvk, Resource: kind.resource, New: h.empty,
		Client: mgr.GetClient(), Live: mgr.GetAPIReader(), Cache: mgr.GetCache(), Ledger: ledger,
		Recorder: mgr.GetEventRecorder(strings.ToLower(kind.gvk.Kind) + "-history"), Clock: clock.RealClock{},
	})
	h.log = pass.NewLog(h.controller, h.format(schema.GroupVersionKind{}), false)
	if err := h.forgets(ctx, mgr); err != nil {
		return nil, err
	}
	return h, nil
}

// forgets drops what is remembered of parents that are deleted.
func (h *History[P]) forgets(ctx context.Context, mgr ctrl.Manager) error {
	parents, err := mgr.GetCache().GetInformer(ctx, h.example)
	if err != nil {
		return fmt.Errorf("watch %s: %w", h.resource, err)
	}
	_, err = parents.AddEventHandler(toolscache.ResourceEventHandlerFuncs{DeleteFunc: func(o any) {
		if last, ok := o.(toolscache.DeletedFinalStateUnknown); ok {
			o = last.Obj
		}
		if parent, ok := o.(client.Object); ok {
			h.controller.Forget(parent.GetUID())
		}
	}})
	return err
}

// Recorded is the history of one parent after [History.Record].
type Recorded[P client.Object] struct {
	// Revisions are those that are there, oldest first. What they hold is not to be changed.
	Revisions []revision.Revision
	// Update is the one that the parent asks for. It is nil for a parent that is being deleted: nothing is recorded for it.
	Update *revision.Revision

	history *History[P]
	parent  P
	done    *pass.Recorded
}

// NotRecordedError says that the revision that a parent asks for could not be stored. Err is the API server's answer, or says that the
// fields are too large or that there is no number left. Nothing should be made from what the parent asks for then: nobody could go
// back to it. What is there already may be kept as it is.
type NotRecordedError struct{ Err error }

func (e *NotRecordedError) Error() string {
	return "the revision that the spec asks for is not recorded: " + e.Err.Error()
}

// Unwrap returns Err.
func (e *NotRecordedError) Unwrap() error { return e.Err }

// Record finds the revision that parent asks for among its own, and records it if there is none: a parent that goes back to an older
// one gives that one the highest number (Controller History proposal, "Rollback"). Call it before anything is made from parent, with
// parent as it was read from the manager's client. Orphaned revisions of its labels are adopted.
//
// Errors, all of which the reconciler returns: [ownership.ErrStale], if the cache does not show all yet (retried with back-off);
// [ownership.ErrGone], if the parent is deleted meanwhile; [*NotRecordedError], which is a [reconcile.TerminalError] where only an edit
// helps; other errors are the API server's.
func (h *History[P]) Record(ctx context.Context, parent P) (*Recorded[P], error) {
	out := &Recorded[P]{history: h, parent: parent}
	if parent.GetDeletionTimestamp() != nil {
		return out, nil
	}
	if unseen := h.controller.Ledger.Unseen(parent.GetUID()); unseen != "" {
		return nil, fmt.Errorf("%w: %s", ownership.ErrStale, unseen)
	}
	selector, err := h.selector(parent)
	if err != nil {
		return nil, reconcile.TerminalError(err)
	}
	entries, err := h.log.Claim(ctx, parent, selector)
	if err != nil {
		return nil, err
	}
	p := h.controller.NewPass(parent)
	if out.done, err = pass.Record(ctx, p, h.log, entries, nil, noChildren); err != nil {
		return nil, err
	}
	if failed := out.done.Failed; failed != nil {
		err = &NotRecordedError{failed}
		if out.done.Retry() == nil {
			err = reconcile.TerminalError(err)
		}
		return nil, err
	}
	out.Update = out.done.Update
	others := slices.DeleteFunc(slices.Clone(out.done.Entries), func(r revision.Revision) bool { return r.UID == out.Update.UID })
	out.Revisions = revision.Sorted(append(others, *out.Update))
	return out, nil
}

// noChildren is there for duplicates of a revision: whatever carries the label of one is the reconciler's own.
func noChildren(_ context.Context, _, _ revision.Revision) error { return nil }

// Label is the value by which something that is made from the update revision can say so, under the key [HashLabel]. It is empty for
// a parent that is being deleted.
func (r *Recorded[P]) Label() string {
	if r.Update == nil {
		return ""
	}
	return r.Update.Hash
}

// At returns the parent with its versioned fields taken from one of [Recorded.Revisions]. The error says why that one cannot be read;
// look at another one.
func (r *Recorded[P]) At(from revision.Revision) (P, error) {
	if from.Snapshot == nil {
		return r.history.blank(), fmt.Errorf("restore the revision %s: %w", from.Name, from.Err)
	}
	out, err := r.history.restore(r.parent, from.Snapshot)
	if err != nil {
		return out, fmt.Errorf("restore the revision %s: %w", from.Name, err)
	}
	return out, nil
}

// Truncate deletes the oldest revisions beyond limit that nothing depends on. live are the values of [Recorded.Label] or the names of
// those that something still depends on; the update revision always is one. Errors are the API server's (retry).
func (r *Recorded[P]) Truncate(ctx context.Context, limit int32, live ...string) error {
	if r.done == nil {
		return nil
	}
	sure := func(context.Context) error { return nil } // the reconciler says what is live
	return r.done.Truncate(ctx, r.history.controller.NewPass(r.parent), r.history.log, revision.NewLive(live...), &limit, sure)
}
