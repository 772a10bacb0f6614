package fakeserver

import (
	"context"
	"slices"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file delivers events.

// Queue is what handlers put requests into.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// Woken delivers an event to a handler and returns, sorted, the parents that it enqueues at once. A nil before is a new
// object, a nil after a deleted one.
func Woken(ctx context.Context, h handler.EventHandler, before, after client.Object) []string {
	return Sent(func(q Queue) {
		switch {
		case before == nil:
			h.Create(ctx, event.CreateEvent{Object: after}, q)
		case after == nil:
			h.Delete(ctx, event.DeleteEvent{Object: before}, q)
		default:
			h.Update(ctx, event.UpdateEvent{ObjectOld: before, ObjectNew: after}, q)
		}
	})
}

// Sent returns, sorted, the parents that are in a queue at once after send has run.
func Sent(send func(Queue)) []string {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	send(q)
	out := []string{}
	for q.Len() > 0 {
		request, _ := q.Get()
		out = append(out, request.String())
		q.Done(request)
	}
	slices.Sort(out)
	return out
}
