package decorator

import (
	"context"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

// This file names objects of several kinds in one queue. A DecoratorController is one controller with one queue and one
// set of workers, as in Metacontroller: with one for each kind, the same controller would have its metrics under
// several names, its workers many times over, and no order between a Service that changed and thousands of Pods that
// are only resynced. So a request carries the kind, in its name: <resource>.<group>/<name>. No name of an object has a
// slash.

type queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// requestFor returns the request for the object of that name.
func requestFor(d *decorated, name types.NamespacedName) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Namespace: name.Namespace, Name: d.String() + "/" + name.Name}}
}

func request(d *decorated, o client.Object) reconcile.Request {
	return requestFor(d, client.ObjectKeyFromObject(o))
}

// resolve returns what a request is about, nil if its kind is not decorated.
func (s *settings) resolve(req reconcile.Request) (*decorated, types.NamespacedName) {
	resource, name, _ := strings.Cut(req.Name, "/")
	for _, d := range s.resources {
		if d.String() == resource {
			return d, types.NamespacedName{Namespace: req.Namespace, Name: name}
		}
	}
	return nil, types.NamespacedName{}
}

// ofKind is a source that enqueues objects of one kind without naming it; the kind is added here.
type ofKind struct {
	source.Source

	resource *decorated
}

// Start starts the source with a queue that completes its requests.
func (s ofKind) Start(ctx context.Context, q queue) error {
	complete := func(req reconcile.Request) reconcile.Request { return requestFor(s.resource, req.NamespacedName) }
	if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		return s.Source.Start(ctx, byPriority{p, complete})
	}
	return s.Source.Start(ctx, inOrder{q, complete})
}

// WaitForSync waits for the source if it can be waited for.
func (s ofKind) WaitForSync(ctx context.Context) error {
	if syncing, ok := s.Source.(source.SyncingSource); ok {
		return syncing.WaitForSync(ctx)
	}
	return nil
}
