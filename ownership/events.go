package ownership

import (
	"context"
	"slices"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file routes the events of a child type to parents (ControllerRef proposal, "Watches").

// Route says which parents an event about a child enqueues.
type Route struct {
	// Owners are the ControllerRefs whose parents are enqueued, if their UIDs still match.
	Owners []metav1.OwnerReference
	// Orphan is true if every parent whose selector matches is enqueued, because one of them may adopt.
	Orphan bool
	// Lost is true if every parent whose selector matched the object before is enqueued, because one of them may have
	// adopted it since.
	Lost bool
}

// RouteEvent is the routing table as a pure function. before is nil for an add, after is nil for a delete.
//
//   - An object with a ControllerRef enqueues only that parent.
//   - An update that changes the ControllerRef enqueues the old parent too; one that removes it enqueues every match.
//   - An orphan that is created, or whose labels change, enqueues every match.
//   - An orphan that is deleted enqueues no parent, and neither does a periodic resync. But see [RouteLost].
//   - An update to another UID is a delete that a broken watch has missed, and an add.
func RouteEvent(before, after client.Object) Route {
	switch {
	case after == nil && before == nil:
		return Route{}
	case after == nil:
		return Route{Owners: refs(metav1.GetControllerOfNoCopy(before))}
	case before == nil:
		ref := metav1.GetControllerOfNoCopy(after)
		return Route{Owners: refs(ref), Orphan: ref == nil && after.GetDeletionTimestamp() == nil}
	case before.GetUID() != after.GetUID():
		gone, came := RouteLost(before), RouteEvent(nil, after)
		return Route{Owners: append(came.Owners, gone.Owners...), Orphan: came.Orphan, Lost: gone.Lost}
	case before.GetResourceVersion() == after.GetResourceVersion():
		return Route{}
	}
	was, is := metav1.GetControllerOfNoCopy(before), metav1.GetControllerOfNoCopy(after)
	moved := !apiequality.Semantic.DeepEqual(was, is)
	route := Route{Owners: refs(is)}
	if moved {
		route.Owners = append(route.Owners, refs(was)...)
	}
	relabelled := !apiequality.Semantic.DeepEqual(before.GetLabels(), after.GetLabels())
	route.Orphan = is == nil && (moved || relabelled)
	return route
}

// RouteLost is the route of an object whose deletion a broken watch has missed. last is its last state in the cache,
// and it may have been adopted or released after that. A parent that adopted and then deleted it would get an event for
// neither. So the parents that may have adopted it are enqueued too, whether it was an orphan or not.
func RouteLost(last client.Object) Route {
	return Route{Owners: refs(metav1.GetControllerOfNoCopy(last)), Lost: true}
}

func refs(ref *metav1.OwnerReference) []metav1.OwnerReference {
	if ref == nil {
		return nil
	}
	return []metav1.OwnerReference{*ref}
}

// Router finds the parents of one kind for the events of one child type.
type Router struct {
	// Parent is the kind of the parents.
	Parent schema.GroupKind
	// ClusterScoped says that parents are in no namespace.
	ClusterScoped bool
	// UID returns the UID of the parent of that name, from a cache; ok is false if there is none.
	UID func(ctx context.Context, key types.NamespacedName) (uid types.UID, ok bool)
	// Matching returns the parents, in the child's namespace or in none, whose selector matches an orphan.
	Matching func(ctx context.Context, orphan client.Object) []types.NamespacedName
}

// Requests returns the parents that a change from before to after concerns. A reference of another kind, or with a UID
// that is not that of the parent of that name, concerns no parent. No parent is returned twice: a worker may take the
// first request at once, and the second would then cause another pass.
func (r Router) Requests(ctx context.Context, before, after client.Object) []reconcile.Request {
	return r.follow(ctx, RouteEvent(before, after), before, after)
}

// Lost returns the parents to enqueue for an object whose deletion a broken watch has missed; see [RouteLost].
func (r Router) Lost(ctx context.Context, last client.Object) []reconcile.Request {
	return r.follow(ctx, RouteLost(last), last, nil)
}

// follow returns the parents that a route leads to.
func (r Router) follow(ctx context.Context, route Route, before, after client.Object) []reconcile.Request {
	child := after
	if child == nil {
		child = before
	}
	var out []reconcile.Request
	add := func(key types.NamespacedName) {
		if request := (reconcile.Request{NamespacedName: key}); !slices.Contains(out, request) {
			out = append(out, request)
		}
	}
	for _, ref := range route.Owners {
		if ownerIn(&ref).GroupKind != r.Parent {
			continue
		}
		key := types.NamespacedName{Namespace: child.GetNamespace(), Name: ref.Name}
		if r.ClusterScoped {
			key.Namespace = ""
		}
		if uid, ok := r.UID(ctx, key); ok && uid == ref.UID {
			add(key)
		}
	}
	matching := func(orphan client.Object) {
		for _, key := range r.Matching(ctx, orphan) {
			add(key)
		}
	}
	if route.Orphan {
		matching(after)
	}
	if route.Lost {
		matching(before)
	}
	return out
}

// Handler returns r as a controller-runtime event handler.
func (r Router) Handler() handler.EventHandler {
	enqueue := func(q workqueue.TypedRateLimitingInterface[reconcile.Request], all []reconcile.Request) {
		for _, req := range all {
			q.Add(req)
		}
	}
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(q, r.Requests(ctx, nil, e.Object))
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			enqueue(q, r.Requests(ctx, e.ObjectOld, e.ObjectNew))
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, q workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if e.DeleteStateUnknown {
				enqueue(q, r.Lost(ctx, e.Object))
			} else {
				enqueue(q, r.Requests(ctx, e.Object, nil))
			}
		},
	}
}
