package composite

import (
	"context"
	"errors"
	"fmt"

	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file feeds a controller from an informer that others use as well, and lets go of it when the controller ends.
// controller-runtime's own source keeps its handler for as long as the informer lives: a controller that is stopped and
// started again with each edit of its CompositeController would be woken many times over.

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// events is a source of the events of one kind. Use it for one controller.
type events struct {
	cache   cache.Informers
	object  client.Object
	handler handler.EventHandler

	synced toolscache.InformerSynced
}

// String names the source in logs.
func (e *events) String() string {
	return fmt.Sprintf("events of %s", e.object.GetObjectKind().GroupVersionKind())
}

// Start adds the handler to the kind's informer, until ctx ends.
func (e *events) Start(ctx context.Context, q queue) error {
	informer, err := e.cache.GetInformer(ctx, e.object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.object.GetObjectKind().GroupVersionKind(), err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if object, ok := o.(client.Object); ok {
				e.handler.Create(ctx, event.CreateEvent{Object: object, IsInInitialList: initial}, q)
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(client.Object)
			if object, ok := after.(client.Object); ok && old != nil {
				e.handler.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: object}, q)
			}
		},
		DeleteFunc: func(o any) {
			last, unseen := o.(toolscache.DeletedFinalStateUnknown)
			if unseen {
				o = last.Obj
			}
			if object, ok := o.(client.Object); ok {
				e.handler.Delete(ctx, event.DeleteEvent{Object: object, DeleteStateUnknown: unseen}, q)
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", e.object.GetObjectKind().GroupVersionKind(), err)
	}
	e.synced = registration.HasSynced
	context.AfterFunc(ctx, func() {
		_ = informer.RemoveEventHandler(registration) // fails only for what it does not know
	})
	return nil
}

// errNotSynced says that a kind could not be listed in time.
var errNotSynced = errors.New("its objects could not be listed")

// WaitForSync waits until the handler has been told of everything that is there.
func (e *events) WaitForSync(ctx context.Context) error {
	if !toolscache.WaitForCacheSync(ctx.Done(), e.synced) {
		return fmt.Errorf("%s: %w", e, errNotSynced)
	}
	return nil
}
