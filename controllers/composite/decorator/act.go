package decorator

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/cairn-dev/cairn/controllers/composite/apply"
	"github.com/cairn-dev/cairn/ownership"
)

// This file holds all writes.

// setFinalizer gives an object our finalizer, or takes it away if no hook is there for it any more, and returns the object
// as it is then. It comes before the hook is asked for the first time: what a hook does outside of the cluster is cleaned
// up as well. Whoever is being deleted already gets none.
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

// act carries a plan out. An object that loses our finalizer is written last: until then somebody looks after what is
// attached to it, whatever happens in between.
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

// decorate writes an edit to an object, and returns it as it is then.
func (r *Reconciler) decorate(
	ctx context.Context, d *decorated, o *unstructured.Unstructured, e *edit,
) (*unstructured.Unstructured, error) {
	written, err := r.patch(ctx, d, o, e, r.client)
	if err != nil {
		return nil, gone(o, err)
	}
	if e.restate {
		r.stated.Store(o.GetUID(), stated{e.status, written.Object["status"]})
	}
	return written, nil
}

// restate writes the status of an object, where that is a resource of its own.
func (r *Reconciler) restate(
	ctx context.Context, d *decorated, o *unstructured.Unstructured, status map[string]any,
) (*unstructured.Unstructured, error) {
	e := editOf(o)
	e.restate, e.status = true, status
	written, err := r.patch(ctx, d, o, e, statusWriter{r.client.Status()})
	if err != nil {
		// If it is the object that is not there, the cache will show it. It may also be that its kind has no status any more.
		return nil, fmt.Errorf("write the status of %s: %w", ownership.Describe(o), err)
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
	written := ownership.Blank(o).(*unstructured.Unstructured) //nolint:forcetypeassert // of the type of o
	err = w.Patch(ctx, written, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err):
		return nil, fmt.Errorf("%w: %s has changed", ownership.ErrStale, ownership.Describe(o))
	case err != nil:
		return nil, err
	}
	written.SetManagedFields(nil) // as in the cache: a hook must not be told twice of the same object
	r.ledger.Wrote(o.GetUID(), d.Resource.Resource.GroupResource(), written)
	return written, nil
}

// attach writes the attachments: first what goes, then what changes, then what is new. If all went well, the error says why
// one that is missing could not be made.
func (r *Reconciler) attach(ctx context.Context, o *observed, p *plan) error {
	err := errors.Join(
		ownership.Each(p.deletes, func(d deletion) error { return r.delete(ctx, o, d) }),
		ownership.Each(p.updates, func(u update) error { return r.update(ctx, o, u) }),
		ownership.SlowStart(p.creates, ownership.Unedited(ctx, r.cache, o.object), func(c creation) error { return r.create(ctx, o, c) }),
	)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // nothing can be made here any more, and nobody wants to read so
	}
	if err != nil {
		return err
	}
	return p.blocked
}

// delete removes the attachment that the plan was made from, unless it changed since.
func (r *Reconciler) delete(ctx context.Context, o *observed, d deletion) error {
	log.FromContext(ctx).V(1).Info("Deleting an attachment", "attachment", ownership.Describe(d.attachment), "reason", d.reason)
	writer := r.writers[keyOf(d.attachment).GroupKind]
	_, err := writer.Delete(ctx, o.object, d.attachment, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return fmt.Errorf("delete %s (%s): %w", ownership.Describe(d.attachment), d.reason, err)
	}
	return nil
}

// update changes an attachment in place, unless it changed since.
func (r *Reconciler) update(ctx context.Context, o *observed, u update) error {
	log.FromContext(ctx).V(1).Info("Changing an attachment", "attachment", ownership.Describe(u.attachment), "reason", u.reason)
	if r.applier != nil {
		written, err := r.applier.Apply(ctx, u.attachment, owned(o, u.desired))
		if err != nil {
			return fmt.Errorf("apply %s (%s): %w", ownership.Describe(u.attachment), u.reason, err)
		}
		r.wrote(o, written)
		return nil
	}
	body, err := u.result.Patch(u.attachment.Object)
	if err != nil {
		return fmt.Errorf("change %s: %w", ownership.Describe(u.attachment), err)
	}
	written := ownership.Blank(u.attachment).(*unstructured.Unstructured) //nolint:forcetypeassert // of the same type
	err = r.client.Patch(ctx, written, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return nil // the cache will show what it is by now, and that wakes us
	case err != nil:
		return fmt.Errorf("change %s (%s): %w", ownership.Describe(u.attachment), u.reason, err)
	}
	r.served.put(u.attachment, u.desired, written.Object)
	r.wrote(o, written)
	return nil
}

// wrote makes the next pass wait until the cache shows an attachment as the API server returned it.
func (r *Reconciler) wrote(o *observed, attachment *unstructured.Unstructured) {
	r.ledger.Wrote(o.object.GetUID(), r.writers[keyOf(attachment).GroupKind].Resource, attachment)
}

// create makes an attachment. What has its name and was not made by us is left alone, whoever wants it.
func (r *Reconciler) create(ctx context.Context, o *observed, c creation) error {
	attachment, err := r.newAttachment(o, c.attachment)
	if err != nil {
		return fmt.Errorf("make %s: %w", ownership.Describe(c.attachment), err)
	}
	how, err := r.writers[keyOf(attachment).GroupKind].Create(ctx, o.object, attachment, r.made)
	switch {
	case err != nil:
		return fmt.Errorf("make %s: %w", ownership.Describe(c.attachment), err)
	case how == ownership.Taken:
		return r.names(o.object).Refused(ctx, r.live, attachment)
	case how == ownership.Created && r.applier != nil:
		err = r.applier.Migrate(ctx, attachment)
		r.wrote(o, attachment)
	case how == ownership.Created:
		r.served.put(attachment, c.attachment, attachment.Object)
	}
	return err
}

// newAttachment returns an attachment as it is created: with what was applied to it, and the object as its controller.
func (r *Reconciler) newAttachment(o *observed, desired *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	if r.applier != nil {
		return owned(o, desired), nil
	}
	content, err := apply.New(desired.Object)
	if err != nil {
		return nil, err
	}
	attachment := (&unstructured.Unstructured{Object: content}).DeepCopy()
	ref := *metav1.NewControllerRef(o.object, o.resource.Kind)
	attachment.SetOwnerReferences(append(attachment.GetOwnerReferences(), ref))
	return attachment, nil
}
