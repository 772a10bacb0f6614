package ownership

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file reads objects from an informer's index without copying them into a list first, which for the thousand pods
// of one parent costs a pass more than its plan. What it hands out is the cache's: nobody may change it.

// indexName is under what name controller-runtime keeps the index of a field.
const indexName = "field:" + ControllerIndex

// indexKey is under what key it keeps the objects of a namespace that have a value.
func indexKey(namespace, value string) string { return namespace + "/" + value }

// shared is an informer's store. Before the informer has synced nothing is read from it: what is not shown yet would be
// taken for missing.
type shared struct {
	toolscache.Indexer

	synced func() bool
	// indexed says that it has the index by controller: see [shared.hasIndex].
	indexed bool
}

// hasIndex reports whether the store has an index by controller with the name and keys that are known here. They are
// controller-runtime's own, so that they are tried on an object: another release may have others.
func (s *shared) hasIndex() bool {
	index, ok := s.GetIndexers()[indexName]
	if !ok {
		return false
	}
	probe := &metav1.PartialObjectMetadata{ObjectMeta: metav1.ObjectMeta{Namespace: "namespace"}}
	keys, err := index(probe)
	return err == nil && slices.Contains(keys, indexKey(probe.Namespace, Orphan))
}

// shown returns the store of a resource if it is an informer's that has synced.
func (s *ConsistencyStore) shown(resource schema.GroupResource) (*shared, bool) {
	store, ok := s.stores[resource].(*shared)
	return store, ok && store.synced()
}

// Candidates is the function [Candidates] for a resource whose cache [NewConsistencyStoreFor] has indexed; ok is false
// where it has not, has not synced yet, or where namespace is empty. Objects are the cache's own.
func (s *ConsistencyStore) Candidates(
	resource schema.GroupResource, namespace string, owner Owner, selector labels.Selector, visit func(client.Object) error,
) (ok bool, err error) {
	store, ok := s.shown(resource)
	if !ok || !store.indexed || namespace == "" {
		return false, nil
	}
	values := []string{owner.Value()}
	if _, some := selector.Requirements(); some { // labels.Nothing matches no orphan
		values = append(values, Orphan)
	}
	for _, value := range values {
		items, err := store.ByIndex(indexName, indexKey(namespace, value))
		if err != nil {
			return true, err
		}
		for _, item := range items {
			if o, ok := item.(client.Object); ok && (value != Orphan || selector.Matches(labels.Set(o.GetLabels()))) {
				if err := visit(o); err != nil {
					return true, err
				}
			}
		}
	}
	return true, nil
}

// Shown returns all objects of a resource that its cache shows; ok is false if that is not a manager's, or has not
// synced yet. Objects are the cache's own.
func (s *ConsistencyStore) Shown(resource schema.GroupResource) (objects []any, ok bool) {
	store, ok := s.shown(resource)
	if !ok {
		return nil, false
	}
	return store.List(), true
}

// Object returns an object as its cache shows it, nil if it shows none; ok is that of [ConsistencyStore.Shown]. It is
// the cache's own.
func (s *ConsistencyStore) Object(resource schema.GroupResource, key types.NamespacedName) (o client.Object, ok bool) {
	store, ok := s.shown(resource)
	if !ok {
		return nil, false
	}
	item, _, err := store.GetByKey(toolscache.NewObjectName(key.Namespace, key.Name).String())
	o, _ = item.(client.Object)
	return o, err == nil
}
