package decorator

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/metacontroller/children"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the request to its end. setup.go wires it to a host.

// relatedObjects are the objects that a customize hook wants sync and finalize to get.
type relatedObjects interface {
	Gather(ctx context.Context, object *unstructured.Unstructured) ([]hook.Group, error)
	Forget(object types.UID)
}

// Reconciler runs passes over the objects of one DecoratorController. [Setup] makes them.
type Reconciler struct {
	*settings
	*pass.Controller

	// sync and finalize are nil if they are not declared.
	sync, finalize hook.Asker
	// related has an entry for every kind that is decorated.
	related map[schema.GroupKind]relatedObjects
	resync  watching.Resyncs
	// forgotten is called with the UIDs of deleted objects.
	forgotten func(object types.UID)
	// keeper compares and writes attachments, and kinds reads and confirms the cached ones.
	keeper *children.Keeper
	kinds  *children.Kinds
	// confirmed are the UIDs of objects that were read past the cache, stated what became of their statuses. Losing an
	// entry costs a request.
	confirmed, stated sync.Map
	// waiting is what an event last said that objects wait for, by UID, so that it is sent once.
	waiting sync.Map
}

// Reconcile makes one pass over one object: gather, ask, plan, act. An error is retried with a growing delay.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	d, name := r.resolve(req)
	if d == nil {
		return reconcile.Result{}, nil // of an earlier spec
	}
	object := &unstructured.Unstructured{}
	object.SetGroupVersionKind(d.Kind)
	unseen, err := r.Consistency.Read(ctx, r.Cache, name, object)
	if err != nil {
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if !r.concerns(d, object) {
		r.related[d.Kind.GroupKind()].Forget(object.GetUID()) // its related objects enqueue nothing any more
		return reconcile.Result{}, nil
	}
	return r.ReconcileParent(ctx, req, object, d.Resource.Resource.GroupResource(), unseen)
}

// run is one pass over an object that the controller has to do with.
func (r *Reconciler) run(ctx context.Context, p *pass.Pass) error {
	object := p.Parent.(*unstructured.Unstructured)
	d := r.of(object.GroupVersionKind().GroupKind())
	key := request(d, object).NamespacedName
	resync := r.resync.Take(key)
	err := r.pass(ctx, p, d, resync)
	if _, waiting := children.OnlyTaken(err); err != nil && resync && !waiting { // a pass that waits for a name has called the hook
		r.resync.Put(key)
	}
	return r.outcome(ctx, p, err)
}

// pass is one pass over an object that the controller has to do with.
func (r *Reconciler) pass(ctx context.Context, p *pass.Pass, d *decorated, resync bool) error {
	object, err := r.setFinalizer(ctx, d, p.Parent.(*unstructured.Unstructured))
	if err != nil {
		return err
	}
	if !r.concerns(d, object) {
		return nil // only our finalizer was left to remove
	}
	if r.finalizes && object.GetDeletionTimestamp() != nil && !r.finalized(object) {
		return nil // it was finalized, or is terminating before anything was done for it
	}
	o, err := r.gather(ctx, p, d, object)
	if err != nil {
		return err
	}
	answer, err := r.ask(ctx, o, resync)
	if err != nil || answer == nil {
		return err
	}
	r.resync.After(request(d, object).NamespacedName, answer.ResyncAfter)
	f, err := r.facts(ctx, o, answer)
	if err != nil {
		return err
	}
	todo := makePlan(f)
	names := r.names(object)
	todo.creates, todo.blocked = children.Free(todo.creates, func(c creation) error { return names.Check(ctx, r.Cache, c.attachment) })
	if todo.compareErr != nil && !todo.done {
		todo.blocked = errors.Join(todo.compareErr, todo.blocked)
	}
	if err := r.confirm(ctx, p, o, todo); err != nil {
		return err
	}
	err = r.act(ctx, o, todo)
	if err != todo.blocked { //nolint:errorlint // a blocked attachment is no failed write
		p.NoteUnknownOutcome(err)
	}
	return err
}

// outcome says what follows from the error of a pass, if there was one.
func (r *Reconciler) outcome(ctx context.Context, p *pass.Pass, err error) error {
	uid := p.Parent.GetUID()
	switch {
	case err == nil:
		r.waiting.Delete(uid)
		return nil
	case pass.IsStale(err), errors.Is(err, watching.ErrNotSynced):
		return err
	}
	logger := log.FromContext(ctx).V(1)
	if busy, ok := errors.AsType[*hook.TooManyRequestsError](err); ok {
		logger.Info("The hook is busy", "reason", err.Error())
		if busy.After == 0 {
			return err // it does not say for how long, so that it is asked as after a failure
		}
		p.RequeueAfter(busy.After)
		return nil
	}
	note := fmt.Sprintf("Sync error: %v", err)
	waits, waiting := children.OnlyTaken(err)
	if said, _ := r.waiting.Swap(uid, note); !waiting || said != note {
		p.Warn(nil, "SyncError", "Sync", "%s", note)
	}
	if waiting {
		logger.Info("Waiting for another writer", "reason", err.Error())
		p.RequeueAfter(waits.Again)
		return nil
	}
	return err
}

// forget drops what is remembered of a deleted object.
func (r *Reconciler) forget(d *decorated, object client.Object) {
	uid := object.GetUID()
	r.Forget(uid)
	r.related[d.Kind.GroupKind()].Forget(uid)
	r.stated.Delete(uid)
	r.waiting.Delete(uid)
	r.forgotten(uid)
	r.resync.Forget(requestFor(d, client.ObjectKeyFromObject(object)).NamespacedName)
}
