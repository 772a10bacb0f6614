package decorator

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/ownership"
)

// This file holds all writes to objects, and carries plans out. The writes to attachments are in package children.

// setFinalizer gives an object our finalizer, or removes it if the finalize hook is no longer declared, and returns the
// object as stored. It runs before the hook is called for the first time: what a hook does outside of the cluster is
// cleaned up as well. A terminating object gets none.
func (r *Reconciler) setFinalizer(ctx context.Context, d *decorated, o *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	has := r.finalized(o)
	if has == r.finalizes || !has && o.GetDeletionTimestamp() != nil {
		return o, nil
	}
	e := editOf(o)
	e.finalizers = without(e.finalizers, r.finalizer)
	if !has {
		e.finalizers = append(e.finalizers, r.finalizer)
	}
	return r.decorate(ctx, d, o, e)
}

// act carries a plan out. An object that loses our finalizer is written last: until then its attachments are looked
// after, whatever happens in between.
func (r *Reconciler) act(ctx context.Context, o *observed, p *plan) error {
	object := o.object
	var err error
	if p.object != nil && !p.done {
		if object, err = r.decorate(ctx, o.resource, object, p.object); err != nil {
			return err
		}
	}
	if p.restate {
		if object, err = r.restate(ctx, o.resource, object, p.status); err != nil {
			return err
		}
	}
	if err := r.attach(ctx, o, p); err != nil {
		return err
	}
	if p.done {
		_, err = r.decorate(ctx, o.resource, object, p.object)
	}
	return err
}

// decorate writes an edit to an object, and returns it as stored.
func (r *Reconciler) decorate(
	ctx context.Context, d *decorated, o *unstructured.Unstructured, e *edit,
) (*unstructured.Unstructured, error) {
	written, err := r.patch(ctx, d, o, e, r.Client)
	if err != nil {
		return nil, gone(o, err)
	}
	if e.restate {
		r.stated.Store(o.GetUID(), stated{e.status, written.Object["status"]})
	}
	return written, nil
}

// restate writes the status of an object that has a status subresource.
func (r *Reconciler) restate(
	ctx context.Context, d *decorated, o *unstructured.Unstructured, status map[string]any,
) (*unstructured.Unstructured, error) {
	e := editOf(o)
	e.restate, e.status = true, status
	written, err := r.patch(ctx, d, o, e, statusWriter{r.Client.Status()})
	if err != nil {
		// If the object itself was not found, the cache will show it. Or its kind has no status subresource any more.
		return nil, fmt.Errorf("write the status of %s: %w", anyobject.Describe(o), err)
	}
	r.stated.Store(o.GetUID(), stated{status, written.Object["status"]})
	return written, nil
}

// patcher is the part of a client that writes objects, or their status.
type patcher interface {
	Patch(ctx context.Context, o client.Object, p client.Patch, opts ...client.PatchOption) error
}

// statusWriter makes a patcher of what writes statuses.
type statusWriter struct{ client.SubResourceWriter }

func (w statusWriter) Patch(ctx context.Context, o client.Object, p client.Patch, _ ...client.PatchOption) error {
	return w.SubResourceWriter.Patch(ctx, o, p)
}

// patch sends an edit. The error wraps ownership.ErrStale if the object has changed since it was read.
func (r *Reconciler) patch(
	ctx context.Context, d *decorated, o *unstructured.Unstructured, e *edit, w patcher,
) (*unstructured.Unstructured, error) {
	body, err := e.patch(o)
	if err != nil {
		return nil, err
	}
	written := anyobject.Blank(o).(*unstructured.Unstructured)
	err = w.Patch(ctx, written, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %s has changed", ownership.ErrStale, anyobject.Describe(o))
	case err != nil:
		return nil, err
	}
	written.SetManagedFields(nil) // as in the cache: the hook must not see this as a change
	r.Consistency.WroteAt(o.GetUID(), d.Resource.Resource.GroupResource(), written)
	return written, nil
}

// attach writes the attachments. If all writes succeed, the error says why a missing one could not be created, or why
// one stays as it is.
func (r *Reconciler) attach(ctx context.Context, o *observed, p *plan) error {
	var w children.Work
	for _, d := range p.deletes {
		w.Deletes = append(w.Deletes, children.Deletion{Observed: d.attachment, Instead: d.instead, Reason: d.reason})
	}
	for _, u := range p.updates {
		wish := children.Pair{Observed: u.attachment, Desired: u.desired}
		w.Updates = append(w.Updates, children.Update{Pair: wish, Reason: u.reason})
	}
	for _, c := range p.creates {
		w.Creates = append(w.Creates, children.Creation{Desired: c.attachment, Reason: "the hook asks for it"})
	}
	if err := r.attachmentsOf(o).Act(ctx, w); err != nil {
		return err
	}
	return p.blocked
}
