package watching

import (
	"context"
	"errors"
	"fmt"

	utilruntime "k8s.io/apimachinery/pkg/util/runtime"
	toolscache "k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file feeds a controller from a shared informer, and removes its handler when the controller ends.
// controller-runtime's own source keeps its handler for as long as the informer lives: a controller that is stopped and
// started again with each edit of its CompositeController would get each event many times.

// Queue is the work queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ErrNotSynced says that the objects of a kind could not be listed yet. Try again soon.
var ErrNotSynced = errors.New("its objects could not be listed yet")

// Events is a source of the events of one kind. Use it for one controller. A panic in its handler is logged, and that
// event enqueues nothing.
type Events struct {
	// Cache has the informer.
	Cache cache.Informers
	// Object is an empty object of the kind; see [Resource.New].
	Object  client.Object
	Handler handler.EventHandler

	synced <-chan struct{}
}

// String names the source in logs.
func (e *Events) String() string { return "events of " + kindOf(e.Object) }

// kindOf names the kind of an object in a sentence.
func kindOf(o client.Object) string {
	if kind := o.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		version, name := kind.ToAPIVersionAndKind()
		return name + " of " + version
	}
	return fmt.Sprintf("%T", o)
}

// Start adds the handler to the kind's informer, until ctx ends. It does not wait until the kind is listed. An error
// means that the kind cannot be watched.
func (e *Events) Start(ctx context.Context, q Queue) error {
	informer, err := e.Cache.GetInformer(ctx, e.Object, cache.BlockUntilSynced(false))
	if err != nil {
		return fmt.Errorf("watch %s: %w", kindOf(e.Object), err)
	}
	registration, err := informer.AddEventHandler(toolscache.ResourceEventHandlerDetailedFuncs{
		AddFunc: func(o any, initial bool) {
			if object, ok := o.(client.Object); ok {
				e.safely(ctx, func() { e.Handler.Create(ctx, event.CreateEvent{Object: object, IsInInitialList: initial}, q) })
			}
		},
		UpdateFunc: func(before, after any) {
			old, _ := before.(client.Object)
			if object, ok := after.(client.Object); ok && old != nil {
				e.safely(ctx, func() { e.Handler.Update(ctx, event.UpdateEvent{ObjectOld: old, ObjectNew: object}, q) })
			}
		},
		DeleteFunc: func(o any) {
			last, unseen := o.(toolscache.DeletedFinalStateUnknown)
			if unseen {
				o = last.Obj
			}
			if object, ok := o.(client.Object); ok {
				e.safely(ctx, func() { e.Handler.Delete(ctx, event.DeleteEvent{Object: object, DeleteStateUnknown: unseen}, q) })
			}
		},
	})
	if err != nil {
		return fmt.Errorf("watch %s: %w", kindOf(e.Object), err)
	}
	e.synced = registration.HasSyncedChecker().Done()
	context.AfterFunc(ctx, func() {
		_ = informer.RemoveEventHandler(registration) // fails only for what it does not know
	})
	return nil
}

// safely calls the handler. In an informer's goroutine a panic would end the process.
func (e *Events) safely(ctx context.Context, handle func()) {
	if err := Guarded(ctx, func() error { handle(); return nil }); err != nil {
		log.FromContext(ctx).Error(err, "An event was lost", "source", e.String())
	}
}

// Guarded calls f. A panic is logged with its stack, and is an error.
func Guarded(ctx context.Context, f func() error) (err error) {
	defer func() {
		if r := recover(); r != nil {
			for _, observe := range utilruntime.PanicHandlers {
				observe(ctx, r)
			}
			err = fmt.Errorf("panic: %v", r)
		}
	}()
	return f()
}

// Failure returns why the last list or watch of a kind failed, nil if a cache does not know. It is a [*LostError] once
// the kind cannot be watched any more. o is an empty object of the kind.
func Failure(c cache.Informers, o client.Object) error {
	if c, ok := c.(interface{ Failure(o client.Object) error }); ok {
		return c.Failure(o)
	}
	return nil
}

// WaitForSync waits until the handler has got every existing object. If ctx ends first, the error is that of
// [Events.Waiting].
func (e *Events) WaitForSync(ctx context.Context) error {
	select {
	case <-e.synced:
		return nil
	case <-ctx.Done():
		return e.Waiting()
	}
}

// Waiting returns nil once the handler has got every object that existed when the source started, and until then an
// error that wraps [ErrNotSynced] and says why, if that is known.
func (e *Events) Waiting() error {
	select {
	case <-e.synced:
		return nil
	default:
	}
	if why := Failure(e.Cache, e.Object); why != nil {
		return fmt.Errorf("%s: %w: %w", kindOf(e.Object), ErrNotSynced, why)
	}
	return fmt.Errorf("%s: %w", kindOf(e.Object), ErrNotSynced)
}
