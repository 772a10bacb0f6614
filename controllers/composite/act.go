package composite

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

	"github.com/cairn-dev/cairn/ownership"
)

// This file holds all writes to children.

// act carries a plan out: what is to go goes, at once, and what is to be is made, slowly at first. One of the errors it
// returns may be [ownership.Superseded]: then the plan rests on an old read.
func (r *reconciler) act(ctx context.Context, o *observed, d *decision) error {
	p := d.plan
	err := errors.Join(
		ownership.Each(p.deletes, func(d deletion) error { return r.replace(ctx, o, d) }),
		ownership.Each(p.updates, func(u update) error { return r.update(ctx, o, u) }),
		ownership.SlowStart(p.creates, ownership.Unedited(ctx, r.cache, o.parent), func(c creation) error { return r.create(ctx, o, c) }),
	)
	if apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause) {
		return nil // nothing can be made here any more, and nobody wants to read so
	}
	return err
}

// create makes one child. It never takes over one that is there (T5): that is for the adoption rules to say.
func (r *reconciler) create(ctx context.Context, o *observed, c creation) error {
	made, err := r.newChild(o.parent, c.object)
	if err != nil {
		return err
	}
	// One of ours that is alive was made by an earlier request whose response was lost. The next pass looks at it.
	how, err := r.writers[c.key.GroupKind].Create(ctx, o.parent, made, func(client.Object) bool { return true })
	switch {
	case err != nil:
		return fmt.Errorf("create %s: %w", c.key, err)
	case how == ownership.Taken:
		return r.names(o.parent).Refused(ctx, r.live, made)
	case how == ownership.Created:
		log.FromContext(ctx).V(1).Info("Created", "child", c.key.String(), "revision", c.revision, "reason", c.reason)
		return r.learn(ctx, o, made, c.object)
	}
	return nil
}

// learn keeps what the answer to a creation tells.
func (r *reconciler) learn(ctx context.Context, o *observed, made, desired *unstructured.Unstructured) error {
	if r.applier == nil {
		r.remember(made, desired)
		return nil
	}
	err := r.applier.Migrate(ctx, made)
	r.ledger.Wrote(o.parent.GetUID(), r.resourceOf(made.GroupVersionKind().GroupKind()), made)
	return err
}

// replace deletes the child that the plan was made from, unless it changed since. One that goes at once is made again
// with it: the hook has said what it is to be.
func (r *reconciler) replace(ctx context.Context, o *observed, d deletion) error {
	deleted, err := r.writers[d.key.GroupKind].Delete(ctx, o.parent, d.observed, client.PropagationPolicy(metav1.DeletePropagationBackground))
	if err != nil {
		return fmt.Errorf("delete %s: %w", d.key, err)
	}
	if !deleted {
		return fmt.Errorf("%w: %s changed or went before it could be deleted", ownership.ErrStale, d.key)
	}
	log.FromContext(ctx).V(1).Info("Deleted", "child", d.key.String(), "reason", d.reason)
	if d.instead == nil || !goesAtOnce(d.observed) {
		return nil
	}
	return r.create(ctx, o, creation{d.key, d.instead, d.revision, d.reason})
}

// goesAtOnce reports whether a child is gone as soon as it is deleted: nothing holds it, and no kubelet has to stop it.
func goesAtOnce(child *unstructured.Unstructured) bool {
	if len(child.GetFinalizers()) > 0 {
		return false
	}
	if child.GroupVersionKind().GroupKind() != corev1.SchemeGroupVersion.WithKind("Pod").GroupKind() {
		return true
	}
	node, _, _ := unstructured.NestedString(child.Object, "spec", "nodeName")
	return node == ""
}

// update changes exactly the child that the plan was made from. A conflict says that somebody was faster.
func (r *reconciler) update(ctx context.Context, o *observed, u update) error {
	if r.applier != nil {
		out, err := r.applier.Apply(ctx, u.observed, r.owned(o.parent, u.object))
		if err != nil {
			return err
		}
		r.ledger.Wrote(o.parent.GetUID(), r.resourceOf(u.key.GroupKind), out)
		return nil
	}
	result, _, err := r.applied(u.newest, u.observed, u.object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.key, err)
	}
	if !result.Changed {
		return nil
	}
	body, err := result.Patch(u.observed.Object)
	if err != nil {
		return fmt.Errorf("encode %s: %w", u.key, err)
	}
	out := ownership.Blank(u.observed)
	err = r.client.Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s changed before it could be updated", ownership.ErrStale, u.key)
	case err != nil:
		return fmt.Errorf("update %s: %w", u.key, err)
	}
	r.ledger.Wrote(o.parent.GetUID(), r.resourceOf(u.key.GroupKind), out)
	log.FromContext(ctx).V(1).Info("Updated", "child", u.key.String(), "reason", u.reason)
	return nil
}
