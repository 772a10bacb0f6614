package recorder

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// This file is one pass, from the request to its end. setup.go wires it to a host; package pass begins and ends it.

// Reconciler records the objects of one policy. [Setup] makes them.
type Reconciler struct {
	*settings
	*pass.Controller

	factory *factory
	log     *history.Log
	counts  *counts
	authors authors
}

// Reconcile makes one pass over one object, if the policy selects it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := r.newParent()
	unseen, err := r.Consistency.Read(ctx, r.Cache, req.NamespacedName, parent)
	if client.IgnoreNotFound(err) != nil {
		return reconcile.Result{}, err
	}
	if err != nil || parent.GetDeletionTimestamp() != nil {
		r.counts.forget(req.NamespacedName)
		return reconcile.Result{}, nil //nolint:nilerr // there is nothing to record any more
	}
	labels, err := r.namespaceOf(ctx, parent)
	if err != nil {
		return reconcile.Result{}, err
	}
	if !r.selects(parent, labels) {
		r.counts.forget(req.NamespacedName) // its revisions stay
		return reconcile.Result{}, nil
	}
	return r.ReconcileParent(ctx, req, parent, r.resource.Resource.GroupResource(), unseen)
}

// namespaceOf returns the labels of an object's namespace, if anybody asks for them.
func (r *Reconciler) namespaceOf(ctx context.Context, o client.Object) (map[string]string, error) {
	if r.namespaces == nil || o.GetNamespace() == "" {
		return nil, nil
	}
	namespace := &unstructured.Unstructured{}
	namespace.SetGroupVersionKind(corev1.SchemeGroupVersion.WithKind("Namespace"))
	if err := r.Cache.Get(ctx, client.ObjectKey{Name: o.GetNamespace()}, namespace); err != nil {
		return nil, client.IgnoreNotFound(err) // its event enqueues the object
	}
	return namespace.GetLabels(), nil
}

// pass is one pass over an object: claim, record, truncate. It makes no request if nothing that is recorded has
// changed.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass) error {
	name := client.ObjectKeyFromObject(p.Parent)
	selector, err := r.log.Selector(p.Parent)
	if err != nil {
		return err
	}
	others, err := r.log.Others(ctx, p.Parent)
	if err != nil {
		return err
	}
	if len(others) > 0 { // a second history beside it would have numbers of its own
		why := fmt.Errorf("its controller keeps its history itself: revision %s and others are not the recorder's", others[0].GetName())
		if r.counts.set(name, 0, why) {
			p.Warn(nil, HasHistory, "Record", "Not recorded: %v", why)
		}
		return nil
	}
	entries, err := r.log.Claim(ctx, p.Parent, selector)
	if err != nil {
		return pass.AsNamespaceTerminating(err)
	}
	recorded, err := pass.Record(ctx, p, r.log, entries, nil, func(context.Context, revision.Revision, revision.Revision) error {
		return nil // nothing points at a revision
	})
	if err != nil {
		return err
	}
	r.counts.set(name, len(entries), recorded.Failed)
	limit := r.keeps(recorded.Entries, recorded.Update)
	nothing := func(context.Context) error { return nil }
	truncated := recorded.Truncate(ctx, p, r.log, revision.NewInUse(), &limit, nothing) // a full quota may be why nothing was recorded
	return errors.Join(recorded.Retry(), truncated)
}

// parentEvents enqueues objects for their own changes, but not for those of nothing but a status, where that can be
// told.
func (r *Reconciler) parentEvents() handler.EventHandler {
	own := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: own.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q watching.Queue) {
			switch {
			case e.ObjectOld.GetUID() != e.ObjectNew.GetUID():
				r.Forget(e.ObjectOld.GetUID())
			case e.ObjectNew.GetGeneration() > 0 && pass.StatusOnly(e):
				return
			}
			own.Update(ctx, e, q)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q watching.Queue) {
			r.Forget(e.Object.GetUID())
			own.Delete(ctx, e, q) // it is counted no more
		},
	}
}
