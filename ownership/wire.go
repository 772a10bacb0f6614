package ownership

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file prepares a manager's cache for a controller that claims and reads its own writes.

// Cached is what [NewConsistencyStoreFor] needs of a controller-runtime manager.
type Cached interface {
	GetFieldIndexer() client.FieldIndexer
	GetCache() cache.Cache
}

// NewConsistencyStoreFor indexes the cached children by [ControllerIndex], and returns a consistency store over the
// stores of children and others. Keys are the resources under which writes are entered into the consistency store;
// values are empty objects of their kinds. Several controllers of one manager may wire the same kinds. Call it before
// the manager starts.
//
// It returns an error if the cache cannot watch a kind, or has no single store for it (a cache of several namespaces):
// the controller cannot be set up then.
func NewConsistencyStoreFor(
	ctx context.Context, mgr Cached, children, others map[schema.GroupResource]client.Object,
) (*ConsistencyStore, error) {
	stores := map[schema.GroupResource]Store{}
	for resource, o := range children {
		store, err := storeOf(ctx, mgr, resource, o)
		if err != nil {
			return nil, err
		}
		if _, there := store.GetIndexers()[indexName]; !there { // a second registration would be refused
			if err := mgr.GetFieldIndexer().IndexField(ctx, o, ControllerIndex, IndexController); err != nil {
				return nil, fmt.Errorf("index %s by controller: %w", resource, err)
			}
		}
		store.indexed = store.hasIndex()
		stores[resource] = store
	}
	for resource, o := range others {
		store, err := storeOf(ctx, mgr, resource, o)
		if err != nil {
			return nil, err
		}
		stores[resource] = store
	}
	return NewConsistencyStore(stores), nil
}

func storeOf(ctx context.Context, mgr Cached, resource schema.GroupResource, o client.Object) (*shared, error) {
	informer, err := mgr.GetCache().GetInformer(ctx, o)
	if err != nil {
		return nil, fmt.Errorf("watch %s: %w", resource, err)
	}
	indexed, ok := informer.(toolscache.SharedIndexInformer)
	if !ok {
		return nil, fmt.Errorf("the cache of %s is a %T, which has no store to read our own writes from", resource, informer)
	}
	return &shared{Indexer: indexed.GetIndexer(), synced: indexed.HasSynced}, nil
}
