package related

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/watching"
)

// This file watches the kinds of related objects, from when a parent first asks for one until the controller stops. A
// kind that no parent asks for any more is still watched: parents change the kinds that they ask for, a new informer
// lists everything again, and each pass would have to find out which parents still need it. The number of kinds is
// bounded by what a hook ever names, and the cache drops all of them when the controller stops.

const (
	// listing is how long a kind may take to be listed, whatever goes wrong meanwhile, before that is an error.
	listing = 10 * time.Second
	// unserved is for how long it is remembered that a resource is not served: to ask again costs a discovery request.
	unserved = 5 * time.Second
)

// namespaces is the resource whose labels namespaceSelector is about.
var namespaces = watching.Resource{
	Kind:     corev1.SchemeGroupVersion.WithKind("Namespace"),
	Resource: corev1.SchemeGroupVersion.WithResource("namespaces"),
}

// kinds are those that one hosted controller watches for related objects.
type kinds struct {
	server    *watching.Server
	interests *interests

	mu sync.Mutex
	// life ends with the controller, queue is its own. Both are set by begin.
	life  context.Context //nolint:containedctx // a watch outlives the pass that first asks for it
	queue watching.Queue
	kinds map[schema.GroupVersionKind]*kind
	// missing are resources that are not served.
	missing map[schema.GroupVersionResource]missing
}

// kind is one that is watched.
type kind struct {
	informer toolscache.SharedIndexInformer
	since    time.Time
}

type missing struct {
	err   error
	until time.Time
}

func newKinds(s *watching.Server, i *interests) *kinds {
	return &kinds{
		server: s, interests: i,
		kinds: map[schema.GroupVersionKind]*kind{}, missing: map[schema.GroupVersionResource]missing{},
	}
}

// begin sets the queue for the parents to enqueue, until ctx ends.
func (k *kinds) begin(ctx context.Context, q watching.Queue) {
	k.mu.Lock()
	defer k.mu.Unlock()
	// A kind that one parent asks for, and that cannot be watched any more, is no reason to end the controller.
	k.life, k.queue = watching.WithLoss(ctx, nil), q
}

// resource is [watching.Server.Resource], for parents that ask for a missing resource again and again.
func (k *kinds) resource(apiVersion, resource string) (watching.Resource, error) {
	version, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return watching.Resource{}, err
	}
	wanted := version.WithResource(resource)
	k.mu.Lock()
	known, there := k.missing[wanted]
	k.mu.Unlock()
	now := k.server.Clock.Now()
	if there && now.Before(known.until) {
		return watching.Resource{}, known.err
	}
	found, err := k.server.Resource(apiVersion, resource)
	k.mu.Lock()
	defer k.mu.Unlock()
	maps.DeleteFunc(k.missing, func(_ schema.GroupVersionResource, m missing) bool { return !now.Before(m.until) })
	if meta.IsNoMatchError(err) {
		k.missing[wanted] = missing{err, now.Add(unserved)}
	}
	return found, err
}

// store returns all objects of a resource. It does not wait: for errors see [Objects.GatherFor].
func (k *kinds) store(r watching.Resource) (toolscache.Indexer, error) {
	of, err := k.watch(r)
	if err != nil {
		return nil, fmt.Errorf("related objects: %w", err)
	}
	why := watching.Failure(k.server.Cache, r.New())
	lost := errors.As(why, new(*watching.LostError)) // it cannot be watched any more
	if of.informer.HasSynced() && !lost {
		return of.informer.GetIndexer(), nil
	}
	switch {
	case lost:
		return nil, fmt.Errorf("related objects: %w", why)
	case apierrors.IsForbidden(why):
		return nil, fmt.Errorf("related objects: %w; the role needs get, list and watch", why)
	case apierrors.IsNotFound(why):
		return nil, fmt.Errorf("related objects: %s of %s is not served any more: %w", r.Resource.Resource, r.Kind.GroupVersion(), why)
	case k.server.Clock.Since(of.since) < listing:
		return nil, fmt.Errorf("related objects: %s: %w", r, watching.ErrNotSynced)
	case why != nil:
		return nil, fmt.Errorf("related objects: list %s: %w", r, why)
	default:
		return nil, fmt.Errorf("related objects: the API server has not listed %s for %s", r, k.server.Clock.Since(of.since).Round(time.Second))
	}
}

// watch returns a kind, whose watch is started if it is new.
func (k *kinds) watch(r watching.Resource) (*kind, error) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if of := k.kinds[r.Kind]; of != nil && !of.informer.IsStopped() { // stopped if its CRD was deleted
		return of, nil
	}
	if k.queue == nil {
		return nil, fmt.Errorf("%s: %w: the source was not started", r, watching.ErrNotSynced)
	}
	got, err := k.server.Cache.GetInformer(k.life, r.New(), cache.BlockUntilSynced(false))
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", r, err)
	}
	informer, ok := got.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache of %s is a %T, which has no store", r, got)
	}
	events := &watching.Events{Cache: k.server.Cache, Object: r.New(), Handler: k.handler(r.Kind)}
	if err := events.Start(k.life, k.queue); err != nil {
		return nil, err
	}
	of := &kind{informer: informer, since: k.server.Clock.Now()}
	k.kinds[r.Kind] = of
	return of, nil
}

// labelsOf returns the labels of a namespace, as far as namespaces are watched.
func (k *kinds) labelsOf(namespace string) (labels.Set, bool) {
	k.mu.Lock()
	of := k.kinds[namespaces.Kind]
	k.mu.Unlock()
	if of == nil {
		return nil, false
	}
	item, there, err := of.informer.GetIndexer().GetByKey(namespace)
	o, ok := item.(metav1.Object)
	if err != nil || !there || !ok {
		return nil, false
	}
	return o.GetLabels(), true
}

// handler enqueues the parents to which objects of the kind are related. The first list of a kind enqueues nothing:
// parents that asked before it retry, and those that ask after it get the objects.
func (k *kinds) handler(of schema.GroupVersionKind) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, q watching.Queue) {
			if !e.IsInInitialList {
				k.changed(q, of, nil, e.Object)
			}
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, q watching.Queue) {
			if e.ObjectOld.GetResourceVersion() != e.ObjectNew.GetResourceVersion() {
				k.changed(q, of, e.ObjectOld, e.ObjectNew)
			}
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, q watching.Queue) { k.changed(q, of, e.Object, nil) },
	}
}

// changed enqueues parents. before is nil for a new object, after for a deleted one.
func (k *kinds) changed(q watching.Queue, of schema.GroupVersionKind, before, after metav1.Object) {
	woken := map[types.NamespacedName]struct{}{}
	for _, o := range []metav1.Object{before, after} {
		if o != nil {
			k.interests.wanting(woken, of, o, k.labelsOf)
		}
	}
	if of == namespaces.Kind {
		k.interests.moved(woken, before, after)
	}
	for parent := range woken {
		q.Add(reconcile.Request{NamespacedName: parent})
	}
}
