package ownership

import (
	"context"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file makes a controller read its own writes. After a write it remembers what the cache has to show; a pass over
// the parent waits until it does. Unlike counted expectations this covers updates, deletes, revisions and the parent
// itself, needs no timeout, and cannot leak when a broken watch misses both the creation and the deletion of an object.

// Store is what the consistency store needs of an informer's store; every client-go store has it.
type Store interface {
	// LastStoreSyncResourceVersion is the newest resource version that the store has taken in, empty if unknown.
	LastStoreSyncResourceVersion() string
	// GetByKey returns the object under namespace/name.
	GetByKey(key string) (item any, exists bool, err error)
}

// ConsistencyStore remembers, for each parent, the writes that the caches have not shown yet. The zero value is not
// usable; make one with [NewConsistencyStore]. It is safe for concurrent use.
type ConsistencyStore struct {
	stores map[schema.GroupResource]Store

	mu      sync.Mutex
	pending map[types.UID]*debts
}

// debts are one parent's unseen writes.
type debts struct {
	versions map[schema.GroupResource]string
	old      map[old]struct{}
}

// old is the state of a deleted or changed object that the cache may still show: if version is empty, any state without
// a deletion timestamp, else that version.
type old struct {
	resource schema.GroupResource
	key      string
	uid      types.UID
	version  string
}

// NewConsistencyStore returns a consistency store over the stores of the resources that the controller writes. Writes
// to other resources are not waited for.
func NewConsistencyStore(stores map[schema.GroupResource]Store) *ConsistencyStore {
	return &ConsistencyStore{stores: stores, pending: map[types.UID]*debts{}}
}

// WroteAt remembers that o, as the server returned it from a create, update or patch, was written on behalf of parent.
func (s *ConsistencyStore) WroteAt(parent types.UID, resource schema.GroupResource, o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.of(parent)
	if cmp, err := resourceversion.CompareResourceVersion(o.GetResourceVersion(), orOne(d.versions[resource])); err == nil && cmp > 0 {
		d.versions[resource] = o.GetResourceVersion()
	}
}

// Deleted remembers that a delete of o, as it was read, was accepted on behalf of parent. It counts as seen once the
// cache shows the object terminating, deleted, or replaced.
func (s *ConsistencyStore) Deleted(parent types.UID, resource schema.GroupResource, o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(parent).old[old{resource, client.ObjectKeyFromObject(o).String(), o.GetUID(), ""}] = struct{}{}
}

// Outdated remembers, on behalf of parent, that o is not as the cache showed it when it was read: a read through the
// API reader found it changed or deleted. It counts as seen once the cache shows another version, nothing, or another
// object.
func (s *ConsistencyStore) Outdated(parent types.UID, resource schema.GroupResource, o client.Object) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.of(parent).old[old{resource, client.ObjectKeyFromObject(o).String(), o.GetUID(), o.GetResourceVersion()}] = struct{}{}
}

// Clear drops what is remembered of a deleted parent.
func (s *ConsistencyStore) Clear(parent types.UID) {
	s.mu.Lock()
	defer s.mu.Unlock()
	delete(s.pending, parent)
}

// Unseen says in one clause which write on behalf of parent the caches do not show yet, and returns an empty string if
// they show all of them. If there is one, the pass must not act on what it reads; the event of the write enqueues the
// parent again, but an object that is created and at once deleted may have no event, so the caller also requeues it. An
// empty answer holds for reads after the call; [ConsistencyStore.Read] does both for the parent itself.
func (s *ConsistencyStore) Unseen(parent types.UID) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	d, ok := s.pending[parent]
	if !ok {
		return ""
	}
	for resource, wrote := range d.versions {
		if !seen(s.stores[resource], wrote) {
			return fmt.Sprintf("the cache of %s has not reached resource version %s", resource, wrote)
		}
		delete(d.versions, resource)
	}
	for o := range d.old {
		if !replaced(s.stores[o.resource], o) {
			return fmt.Sprintf("the cache of %s still shows %s, which was %s", o.resource, o.key, o.fate())
		}
		delete(d.old, o)
	}
	delete(s.pending, parent)
	return ""
}

// Read reads the parent of a pass into parent, from the cache, such that it shows what was written to it: it asks
// [ConsistencyStore.Unseen], and then reads again. A parent that was read before that call may be older than the cache
// that Unseen looked at, and the pass would then decide on a status that it has replaced itself.
//
// It returns the answer of Unseen; unless that is empty, the caller does not act on what was read, and requeues the
// parent soon. cache must be a cache, which replaces all of what it reads into. The error is the cache's: if the parent
// does not exist apierrors.IsNotFound is true, and there is nothing to do.
func (s *ConsistencyStore) Read(
	ctx context.Context, cache client.Reader, key client.ObjectKey, parent client.Object,
) (unseen string, err error) {
	if err := cache.Get(ctx, key, parent); err != nil {
		return "", err
	}
	for {
		asked := parent.GetUID()
		if unseen = s.Unseen(asked); unseen != "" {
			return unseen, nil
		}
		if err := cache.Get(ctx, key, parent); err != nil {
			return "", err
		}
		if parent.GetUID() == asked { // otherwise it is another one, which was not asked about
			return "", nil
		}
	}
}

func (s *ConsistencyStore) of(parent types.UID) *debts {
	d, ok := s.pending[parent]
	if !ok {
		d = &debts{versions: map[schema.GroupResource]string{}, old: map[old]struct{}{}}
		s.pending[parent] = d
	}
	return d
}

// seen reports whether store has reached version. If that cannot be known, the answer is yes: a controller that waits
// for ever is worse than one that reads a little late and is stopped by a precondition.
func seen(store Store, version string) bool {
	if store == nil {
		return true
	}
	at := store.LastStoreSyncResourceVersion()
	cmp, err := resourceversion.CompareResourceVersion(at, version)
	return err != nil || cmp >= 0
}

// replaced reports whether store shows a state other than old, or no object.
func replaced(store Store, o old) bool {
	if store == nil {
		return true
	}
	item, exists, err := store.GetByKey(o.key)
	if err != nil || !exists {
		return true
	}
	shown, err := meta.Accessor(item)
	if err != nil || shown.GetUID() != o.uid {
		return true
	}
	if o.version == "" {
		return shown.GetDeletionTimestamp() != nil
	}
	return shown.GetResourceVersion() != o.version
}

func (o old) fate() string {
	if o.version == "" {
		return "deleted"
	}
	return "changed or deleted"
}

// orOne turns "nothing written yet" into the oldest version there can be.
func orOne(version string) string {
	if version == "" {
		return "1"
	}
	return version
}
