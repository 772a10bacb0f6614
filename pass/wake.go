package pass

import (
	"context"
	"maps"
	"slices"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/ownership"
)

// This file says which events enqueue a parent, and how soon.

// statusMemory is what is remembered of the writes of a parent's status. All but statusAt is guarded by the
// controller's lock.
type statusMemory struct {
	// statusVersion is the resourceVersion that our last write of the status made, and statusAt when that was.
	statusVersion string
	statusAt      time.Time
	// waiting is true if the last pass waits for a cache, writing while a status write is under way. wake then enqueues
	// the parent for the last change of nothing but a status. That change made the version woken.
	waiting, writing bool
	wake             func()
	woken            string
}

type requests = workqueue.TypedRateLimitingInterface[reconcile.Request]

// ParentEvents immediately enqueues a parent for its own changes and for each resync of the cache, and forgets a
// deleted parent. The update that the last status write caused enqueues nothing: that pass has read everything else. A
// status whose text differs each time would have the parent reconciled indefinitely.
func (c *Controller) ParentEvents() handler.EventHandler {
	own := &handler.EnqueueRequestForObject{}
	return handler.Funcs{
		CreateFunc: own.Create,
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) {
			if e.ObjectOld.GetUID() != e.ObjectNew.GetUID() {
				c.Forget(e.ObjectOld.GetUID())
			} else if c.OwnStatus(e, func() { own.Update(ctx, e, q) }) {
				return
			}
			own.Update(ctx, e, q)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ requests) { c.Forget(e.Object.GetUID()) },
	}
}

// OwnStatus reports whether an update shows exactly the parent that our last status write made, so that no pass is to
// be made, unless the last pass waits for the cache to show that write. While a write is under way it cannot be known
// whose update it is: then wake is called later, if it is another writer's.
func (c *Controller) OwnStatus(e event.UpdateEvent, wake func()) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	m := c.memories[e.ObjectNew.GetUID()]
	switch version := e.ObjectNew.GetResourceVersion(); {
	case m == nil || m.waiting || resynced(e):
		return false
	case m.writing && StatusOnly(e) && slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers()):
		m.wake, m.woken = wake, version
		return true
	default:
		return m.statusVersion != "" && m.statusVersion == version
	}
}

// StatusOnly reports whether an update changed nothing that Metacontroller's ignoreStatusChanges looks at: neither
// generation, labels and annotations, nor whether the object is being deleted. It does not look at finalizers. It
// returns false for a resync of the cache.
func StatusOnly(e event.UpdateEvent) bool {
	before, after := e.ObjectOld, e.ObjectNew
	return before.GetUID() == after.GetUID() && !resynced(e) &&
		before.GetGeneration() == after.GetGeneration() &&
		maps.Equal(before.GetLabels(), after.GetLabels()) &&
		maps.Equal(before.GetAnnotations(), after.GetAnnotations()) &&
		before.GetDeletionTimestamp().Equal(after.GetDeletionTimestamp())
}

// resynced reports whether an update is a resync: the cache shows the same version again. A child that is created and
// deleted in one gap of a watch has no event, so its parent learns of it by a resync only.
func resynced(e event.UpdateEvent) bool {
	return e.ObjectOld.GetResourceVersion() == e.ObjectNew.GetResourceVersion()
}

// ChildEvents enqueues the parents of a child, as router finds them. In a burst of events they are delayed after the
// last pass, as startCooldown says. A child that is deleted may make room for another one, in a quota or on a
// node, a moment later: the back-off of its parent begins anew, unless children are runs ([Config.Runs]).
func (c *Controller) ChildEvents(router ownership.Router) handler.EventHandler {
	all := router.Handler()
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q requests) { all.Create(ctx, e, c.throttled(q)) },
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q requests) { all.Update(ctx, e, c.throttled(q)) },
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q requests) {
			all.Delete(ctx, e, throttledQueue{q, c, !c.Runs})
		},
	}
}

func (c *Controller) throttled(q requests) requests { return throttledQueue{q, c, false} }

// throttledQueue is a queue that delays requests after the last pass over the same parent.
type throttledQueue struct {
	requests

	controller *Controller
	// ended says that a child is gone.
	ended bool
}

// Add adds a request, now or later.
func (p throttledQueue) Add(req reconcile.Request) {
	if p.ended {
		p.controller.resetBackoff(req)
	}
	if left := p.controller.cooldown(req); left > 0 {
		p.AddAfter(req, left)
		return
	}
	p.requests.Add(req)
}
