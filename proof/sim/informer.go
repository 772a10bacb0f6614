package sim

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/sim/model"
)

// This file is one informer of one manager: client-go's store, filled by the scheduler instead of by a reflector. As in
// client-go, the store takes an event in first, and handlers hear of it later.

// informer implements [toolscache.SharedIndexInformer].
type informer struct {
	// The rest of the interface is nil: no controller calls it, and one that does is told by a panic in its Setup.
	toolscache.SharedIndexInformer

	resource schema.GroupVersionResource
	kind     schema.GroupVersionKind
	store    shuffled
	// next is the first event of the resource that the store has not taken in.
	next int
	// empty is true while the store is as it was before the first write. No store says that it is of version 0, which
	// would mean any, so that it says 1.
	empty bool
	// held keeps everything from the store until somebody releases it.
	held bool

	// mu guards handlers: sources of a controller register theirs at once.
	mu       sync.Mutex
	handlers []*registration
}

// registration is one handler, and what it has not heard yet.
type registration struct {
	handler toolscache.ResourceEventHandler
	name    string
	queue   []notice
	// initial is how many of the first notices are those of the first list.
	initial int

	mu     sync.Mutex
	synced bool
	// known is closed once synced is set.
	known chan struct{}
}

// notice is one call of a handler: an add without old, a delete without now.
type notice struct {
	old, now client.Object
	// unknown marks a delete that nobody saw: old is what the store had.
	unknown bool
	initial bool
}

func newInformer(resource schema.GroupVersionResource, kind schema.GroupVersionKind, seed uint64) *informer {
	return &informer{
		resource: resource,
		kind:     kind,
		store:    shuffled{toolscache.NewIndexer(toolscache.DeletionHandlingMetaNamespaceKeyFunc, toolscache.Indexers{}), seed},
	}
}

// list fills the store with a list as of rv, and says what is left to watch. A list that is not the first one comes
// after a gap: several changes of an object are one update, and a delete is known by its absence.
func (i *informer) list(objects []client.Object, rv uint64, events []model.Event) {
	before := i.objects()
	now := map[types.NamespacedName]client.Object{}
	items := make([]any, 0, len(objects))
	for _, o := range objects {
		now[client.ObjectKeyFromObject(o)] = o
		items = append(items, o)
	}
	i.empty = rv == 0
	_ = i.store.Replace(items, strconv.FormatUint(max(rv, 1), 10)) // it fails for objects without metadata only
	for _, key := range sortedKeys(before) {
		if now[key] == nil {
			i.tell(notice{old: before[key], unknown: true})
		}
	}
	for _, o := range objects {
		i.tell(notice{old: before[client.ObjectKeyFromObject(o)], now: o})
	}
	i.next, _ = slices.BinarySearchFunc(events, rv+1, func(e model.Event, rv uint64) int {
		if e.RV < rv {
			return -1
		}
		return 1
	})
}

// objects are what the store holds, by name.
func (i *informer) objects() map[types.NamespacedName]client.Object {
	out := map[types.NamespacedName]client.Object{}
	for _, item := range i.store.Indexer.List() {
		o := item.(client.Object)
		out[client.ObjectKeyFromObject(o)] = o
	}
	return out
}

// take lets the store take in the next events: one, or several in one transaction, as client-go does with what has
// piled up, if they are about different objects. It returns how many it took.
func (i *informer) take(events []model.Event) int {
	i.empty = false
	seen := map[types.NamespacedName]bool{}
	for n, e := range events {
		key := client.ObjectKeyFromObject(e.Object)
		if seen[key] {
			return n
		}
		seen[key] = true
		i.next++
		old, exists, _ := i.store.GetByKey(storeKey(key)) // this store never fails
		was, _ := old.(client.Object)
		switch {
		case e.Type == deletedEvent:
			_ = i.store.Delete(e.Object)
			i.tell(notice{old: e.Object})
		case exists:
			_ = i.store.Update(e.Object)
			i.tell(notice{old: was, now: e.Object})
		default:
			_ = i.store.Add(e.Object)
			i.tell(notice{now: e.Object})
		}
	}
	return len(events)
}

// bookmark tells the store how new it is.
func (i *informer) bookmark(rv uint64) {
	i.empty = i.empty && rv <= 1
	i.store.Bookmark(strconv.FormatUint(max(rv, 1), 10))
}

// version is up to where the store knows everything.
func (i *informer) version() uint64 {
	if i.empty {
		return 0
	}
	rv, _ := strconv.ParseUint(i.store.LastStoreSyncResourceVersion(), 10, 64) // a store that never listed knows nothing
	return rv
}

// resync tells every handler of every object again.
func (i *informer) resync() {
	objects := i.objects()
	for _, key := range sortedKeys(objects) {
		i.tell(notice{old: objects[key], now: objects[key]})
	}
}

func (i *informer) tell(n notice) {
	for _, h := range i.handlers {
		h.queue = append(h.queue, n)
	}
}

// notify gives a handler its next notice. A handler runs on the scheduler's goroutine; it must not ask the server.
func (h *registration) notify() {
	n := h.queue[0]
	h.queue = h.queue[1:]
	switch {
	case n.now == nil && n.unknown:
		h.handler.OnDelete(toolscache.DeletedFinalStateUnknown{Key: storeKey(client.ObjectKeyFromObject(n.old)), Obj: n.old})
	case n.now == nil:
		h.handler.OnDelete(n.old)
	case n.old == nil:
		h.handler.OnAdd(n.now, n.initial)
	default:
		h.handler.OnUpdate(n.old, n.now)
	}
	if n.initial {
		h.initial--
		h.settle()
	}
}

// settle says so once the handler knows the first list.
func (h *registration) settle() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.synced && h.initial == 0 {
		h.synced = true
		close(h.known)
	}
}

func (n notice) String() string {
	switch {
	case n.now == nil:
		return "delete " + n.old.GetName()
	case n.old == nil:
		return "add " + n.now.GetName()
	default:
		return fmt.Sprintf("update %s %s to %s", n.now.GetName(), n.old.GetResourceVersion(), n.now.GetResourceVersion())
	}
}

// AddEventHandler registers a handler. It hears of everything that the store holds, then of every change.
func (i *informer) AddEventHandler(handler toolscache.ResourceEventHandler) (toolscache.ResourceEventHandlerRegistration, error) {
	h := &registration{handler: handler, name: i.resource.Resource, known: make(chan struct{})}
	objects := i.objects()
	for _, key := range sortedKeys(objects) {
		h.queue = append(h.queue, notice{now: objects[key], initial: true})
	}
	h.initial = len(h.queue)
	h.settle()
	i.mu.Lock()
	defer i.mu.Unlock()
	i.handlers = append(i.handlers, h)
	return h, nil
}

// AddEventHandlerWithResyncPeriod is AddEventHandler: when to resync is the scheduler's choice.
func (i *informer) AddEventHandlerWithResyncPeriod(handler toolscache.ResourceEventHandler, _ time.Duration,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// AddEventHandlerWithOptions is AddEventHandler.
func (i *informer) AddEventHandlerWithOptions(handler toolscache.ResourceEventHandler, _ toolscache.HandlerOptions,
) (toolscache.ResourceEventHandlerRegistration, error) {
	return i.AddEventHandler(handler)
}

// RemoveEventHandler fails: a manager that ends takes its informers with it.
func (i *informer) RemoveEventHandler(toolscache.ResourceEventHandlerRegistration) error {
	return errors.New("the simulation's informers keep their handlers")
}

// AddIndexers adds indexes to the store.
func (i *informer) AddIndexers(indexers toolscache.Indexers) error {
	return i.store.AddIndexers(indexers)
}

// GetIndexer returns the store.
func (i *informer) GetIndexer() toolscache.Indexer { return i.store }

// GetStore returns the store.
func (i *informer) GetStore() toolscache.Store { return i.store }

// HasSynced is true: a manager starts with full stores.
func (i *informer) HasSynced() bool { return true }

// HasSyncedChecker is done, as HasSynced.
func (i *informer) HasSyncedChecker() toolscache.DoneChecker { return closed(i.resource.Resource) }

// IsStopped is false.
func (i *informer) IsStopped() bool { return false }

// HasSynced reports whether the handler has heard of the first list.
func (h *registration) HasSynced() bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.synced
}

// HasSyncedChecker is done when HasSynced is.
func (h *registration) HasSyncedChecker() toolscache.DoneChecker { return done{h.name, h.known} }

// done is a [toolscache.DoneChecker] of something that is over.
type done struct {
	name string
	c    chan struct{}
}

func closed(name string) done {
	d := done{name, make(chan struct{})}
	close(d.c)
	return d
}

func (d done) Name() string          { return d.name }
func (d done) Done() <-chan struct{} { return d.c }

// storeKey is the key of an object in a client-go store.
func storeKey(key types.NamespacedName) string {
	if key.Namespace == "" {
		return key.Name
	}
	return key.String()
}

func sortedKeys(objects map[types.NamespacedName]client.Object) []types.NamespacedName {
	return slices.SortedFunc(maps.Keys(objects), func(a, b types.NamespacedName) int {
		if a.Namespace != b.Namespace {
			return compare(a.Namespace, b.Namespace)
		}
		return compare(a.Name, b.Name)
	})
}

// indexBy adds an index as controller-runtime's field indexer does.
func (i *informer) indexBy(_ context.Context, field string, extract client.IndexerFunc) error {
	return i.AddIndexers(toolscache.Indexers{indexName(field): func(item any) ([]string, error) {
		o, ok := item.(client.Object)
		if !ok {
			return nil, fmt.Errorf("index %s by %s: a %T is no object", i.resource.Resource, field, item)
		}
		var keys []string
		for _, value := range extract(o) {
			keys = append(keys, indexKey("", value))
			if o.GetNamespace() != "" {
				keys = append(keys, indexKey(o.GetNamespace(), value))
			}
		}
		return keys, nil
	}})
}

func indexName(field string) string           { return "field:" + field }
func indexKey(namespace, value string) string { return namespace + "/" + value }
