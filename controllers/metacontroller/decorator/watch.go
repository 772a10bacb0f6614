package decorator

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file says which event enqueues which object.

// objectEvents enqueues objects of a kind for their own changes, as far as the controller has to do with them, and
// forgets deleted ones.
func (r *Reconciler) objectEvents(d *decorated) handler.EventHandler {
	own := handler.EnqueueRequestsFromMapFunc(func(_ context.Context, o client.Object) []reconcile.Request {
		if object, ok := o.(*unstructured.Unstructured); !ok || !r.concerns(d, object) {
			return nil
		}
		return []reconcile.Request{request(d, o)}
	})
	return handler.Funcs{
		CreateFunc: own.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				r.forget(d, e.ObjectOld)
			} else if r.OwnStatus(e, func() { own.Update(ctx, e, q) }) || d.ignoreStatus && pass.StatusOnly(e) {
				return
			}
			own.Update(ctx, e, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ queue) { r.forget(d, e.Object) },
	}
}

// attachmentEvents enqueues the objects that attachments of this controller belong to.
func (r *Reconciler) attachmentEvents() handler.EventHandler {
	wake := func(ctx context.Context, q queue, before, after client.Object) {
		for _, req := range r.owners(ctx, before, after) {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q queue) { wake(ctx, q, nil, e.Object) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q queue) { wake(ctx, q, e.ObjectOld, e.ObjectNew) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q queue) { wake(ctx, q, e.Object, nil) },
	}
}

// owners returns the objects that a change of an attachment concerns. before is nil for a new one, after for a deleted
// one. An attachment of another controller concerns none of them; one that lost our annotation does.
func (r *Reconciler) owners(ctx context.Context, before, after client.Object) []reconcile.Request {
	if !r.made(before) && !r.made(after) {
		return nil
	}
	attachment := after
	if attachment == nil {
		attachment = before
	}
	var out []reconcile.Request
	for _, ref := range ownership.RouteEvent(before, after).Owners {
		d := r.of(schema.FromAPIVersionAndKind(ref.APIVersion, ref.Kind).GroupKind())
		if d == nil {
			continue
		}
		name := types.NamespacedName{Name: ref.Name}
		if d.Namespaced {
			name.Namespace = attachment.GetNamespace()
		}
		if req := requestFor(d, name); r.owns(ctx, d, name, ref.UID) && !slices.Contains(out, req) {
			out = append(out, req)
		}
	}
	return out
}

// owns reports whether the object of that name has that UID, and the controller has to do with it.
func (r *Reconciler) owns(ctx context.Context, d *decorated, name types.NamespacedName, uid types.UID) bool {
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(d.Kind)
	err := r.Cache.Get(ctx, name, object)
	return err == nil && object.GetUID() == uid && r.concerns(d, object)
}

// everything returns all objects that the controller has to do with, as requests name them.
func (r *Reconciler) everything(ctx context.Context) []types.NamespacedName {
	var out []types.NamespacedName
	for _, d := range r.resources {
		list := &unstructured.UnstructuredList{}
		list.SetGroupVersionKind(d.Kind.GroupVersion().WithKind(d.Kind.Kind + "List"))
		if err := r.Cache.List(ctx, list); err != nil {
			continue // its first list enqueues them all
		}
		for i := range list.Items {
			if o := &list.Items[i]; r.concerns(d, o) {
				out = append(out, request(d, o).NamespacedName)
			}
		}
	}
	return out
}
