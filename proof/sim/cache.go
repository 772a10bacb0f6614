package sim

import (
	"cmp"
	"context"
	"fmt"
	"hash/fnv"
	"reflect"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	toolscache "k8s.io/client-go/tools/cache"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"
)

// This file is one manager's cache: the informers, and reads from them as controller-runtime does them without copies.
// A real store lists in the order of a Go map; here the order is as wild, but decided by the seed.

// caches implements [cache.Cache].
type caches struct {
	// The rest of the interface is nil, as in informer.
	cache.Cache

	scheme    *runtime.Scheme
	informers map[schema.GroupVersionKind]*informer
	// order has the informers in the order of their resources.
	order []*informer
}

func newCaches(scheme *runtime.Scheme, seed uint64, kinds map[schema.GroupVersionResource]schema.GroupVersionKind) *caches {
	c := &caches{scheme: scheme, informers: map[schema.GroupVersionKind]*informer{}}
	for resource, kind := range kinds {
		i := newInformer(resource, kind, seed)
		c.informers[kind] = i
		c.order = append(c.order, i)
	}
	slices.SortFunc(c.order, func(a, b *informer) int { return compareResources(a.resource, b.resource) })
	return c
}

func compareResources(a, b schema.GroupVersionResource) int {
	return cmp.Or(cmp.Compare(a.Group, b.Group), cmp.Compare(a.Version, b.Version), cmp.Compare(a.Resource, b.Resource))
}

// informer returns the informer of an object, or of a list of such objects.
func (c *caches) informer(o runtime.Object) (*informer, error) {
	kind, err := apiutil.GVKForObject(o, c.scheme)
	if err != nil {
		return nil, err
	}
	return c.informerFor(kind)
}

func (c *caches) informerFor(kind schema.GroupVersionKind) (*informer, error) {
	i, ok := c.informers[kind]
	if !ok {
		return nil, fmt.Errorf("sim: nobody watches %s; add its resource to the description of the kind", kind)
	}
	return i, nil
}

// GetInformer returns the informer of a type. All are there, and full, before the first controller is set up.
func (c *caches) GetInformer(_ context.Context, o client.Object, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informer(o)
}

// GetInformerForKind is GetInformer by kind.
func (c *caches) GetInformerForKind(_ context.Context, kind schema.GroupVersionKind, _ ...cache.InformerGetOption) (cache.Informer, error) {
	return c.informerFor(kind)
}

// WaitForCacheSync is true.
func (c *caches) WaitForCacheSync(context.Context) bool { return true }

// IndexField adds an index.
func (c *caches) IndexField(ctx context.Context, o client.Object, field string, extract client.IndexerFunc) error {
	i, err := c.informer(o)
	if err != nil {
		return err
	}
	return i.indexBy(ctx, field, extract)
}

// Get reads one object. What it returns shares everything below its top with the cache.
func (c *caches) Get(_ context.Context, key client.ObjectKey, out client.Object, _ ...client.GetOption) error {
	i, err := c.informer(out)
	if err != nil {
		return err
	}
	item, exists, err := i.store.GetByKey(storeKey(key))
	if err != nil {
		return err
	}
	if !exists {
		return apierrors.NewNotFound(i.resource.GroupResource(), key.Name)
	}
	target, source := reflect.ValueOf(out), reflect.ValueOf(item)
	if target.Type() != source.Type() {
		return fmt.Errorf("sim: the cache of %s holds %T, not %T", i.resource.Resource, item, out)
	}
	target.Elem().Set(source.Elem())
	return nil
}

// List reads the objects of one namespace, or of all, by labels and by at most one index.
func (c *caches) List(_ context.Context, out client.ObjectList, opts ...client.ListOption) error {
	kind, err := apiutil.GVKForObject(out, c.scheme)
	if err != nil {
		return err
	}
	kind.Kind = strings.TrimSuffix(kind.Kind, "List")
	i, err := c.informerFor(kind)
	if err != nil {
		return err
	}
	options := client.ListOptions{}
	options.ApplyOptions(opts)
	found, err := c.find(i, options)
	if err != nil {
		return err
	}
	return meta.SetList(out, found)
}

func (c *caches) find(i *informer, options client.ListOptions) ([]runtime.Object, error) {
	items := i.store.List()
	if options.FieldSelector != nil && !options.FieldSelector.Empty() {
		wanted := options.FieldSelector.Requirements()
		if len(wanted) != 1 {
			return nil, fmt.Errorf("sim: the cache lists by one field, and %s are more", options.FieldSelector)
		}
		var err error
		items, err = i.store.ByIndex(indexName(wanted[0].Field), indexKey(options.Namespace, wanted[0].Value))
		if err != nil {
			return nil, err
		}
	}
	var found []runtime.Object
	for _, item := range items {
		o := item.(client.Object)
		if options.Namespace != "" && o.GetNamespace() != options.Namespace {
			continue
		}
		if options.LabelSelector != nil && !options.LabelSelector.Matches(labels.Set(o.GetLabels())) {
			continue
		}
		found = append(found, o)
	}
	return found, nil
}

// shuffled is a store whose lists are in an order that depends on the seed and on what is in them, and on nothing that
// another goroutine does: client-go's are in none.
type shuffled struct {
	toolscache.Indexer

	seed uint64
}

func (s shuffled) List() []any { return s.shuffle(s.Indexer.List()) }

func (s shuffled) ByIndex(name, key string) ([]any, error) {
	found, err := s.Indexer.ByIndex(name, key)
	return s.shuffle(found), err
}

func (s shuffled) shuffle(items []any) []any {
	type placed struct {
		item  any
		place uint64
	}
	all := make([]placed, len(items))
	for n, item := range items {
		h := fnv.New64a()
		o := item.(client.Object)
		_, _ = h.Write([]byte(o.GetUID()))
		_, _ = h.Write([]byte(o.GetResourceVersion()))
		all[n] = placed{item, mix(h.Sum64() ^ s.seed)}
	}
	slices.SortFunc(all, func(a, b placed) int { return cmp.Compare(a.place, b.place) })
	for n := range all {
		items[n] = all[n].item
	}
	return items
}

// mix spreads the bits of a number (the finaliser of splitmix64).
func mix(x uint64) uint64 {
	x ^= x >> 30
	x *= 0xbf58476d1ce4e5b9
	x ^= x >> 27
	x *= 0x94d049bb133111eb
	return x ^ x>>31
}
