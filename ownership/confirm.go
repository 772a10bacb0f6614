package ownership

import (
	"context"
	"fmt"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/resourceversion"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file keeps a process that just started from acting on a stale cache.

// Confirmer checks, once for each parent and process, that the cached children are those that the API server has. An
// API server that lags may have filled the cache of a manager that just started with children that are deleted already
// (kubernetes#59848); after that a [ConsistencyStore] keeps the cache honest. It is safe for
// concurrent use.
type Confirmer struct {
	// Live lists past every cache; it needs list on the child kind.
	Live client.Reader
	// Owner returns the identity by which children name a parent. Children is their kind.
	Owner    func(parent client.Object) Owner
	Children schema.GroupVersionKind
	// Consistency, if set, learns what the cache does not show, or still shows, under Resource, that of the child
	// kind. The next pass then waits for that instead of listing again, five times a second, for as long as the watch
	// lags.
	Consistency *ConsistencyStore
	Resource    schema.GroupResource

	done sync.Map // of types.UID
	// listed are the lists of whole namespaces that this process has asked for: parents without a selector share them.
	listed listed
}

// Confirm compares cached, the children that parent controls, with the API server, before the first destructive step
// for parent. It says in one clause how they differ. It returns an empty string if they do not, and then never asks
// again for this parent. The caller drops the pass if there is a difference, and retries it after an error.
func (c *Confirmer) Confirm(ctx context.Context, parent client.Object, selector labels.Selector, cached []client.Object) (string, error) {
	return c.ConfirmIn(ctx, parent.GetNamespace(), parent, selector, cached)
}

// ConfirmIn is [Confirmer.Confirm] for children in a given namespace: for parents that are in no namespace. An empty
// namespace means all.
func (c *Confirmer) ConfirmIn(
	ctx context.Context, namespace string, parent client.Object, selector labels.Selector, cached []client.Object,
) (string, error) {
	if _, done := c.done.Load(parent.GetUID()); done {
		return "", nil
	}
	owner, whole := c.Owner(parent), selector.Empty()
	if whole && c.listed.agrees(namespace, owner, cached) {
		c.done.Store(parent.GetUID(), struct{}{})
		return "", nil
	}
	live := &metav1.PartialObjectMetadataList{}
	live.SetGroupVersionKind(c.Children.GroupVersion().WithKind(c.Children.Kind + "List"))
	err := c.Live.List(ctx, live, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return "", fmt.Errorf("list the children of %s past the cache: %w", anyobject.Describe(parent), err)
	}
	if whole {
		c.listed.put(namespace, live)
	}
	shown := map[types.UID]client.Object{}
	for _, child := range cached {
		shown[child.GetUID()] = child
	}
	for i := range live.Items {
		item := &live.Items[i]
		if !owner.Controls(item) {
			continue
		}
		child, known := shown[item.UID]
		delete(shown, item.UID)
		if !known || older(child, item) {
			if c.Consistency != nil {
				c.Consistency.WroteAt(parent.GetUID(), c.Resource, item)
			}
			return fmt.Sprintf("the cache does not show %s %s as it is", c.Children.Kind, item.Name), nil
		}
	}
	if len(shown) > 0 {
		for _, child := range shown {
			if c.Consistency != nil {
				c.Consistency.Outdated(parent.GetUID(), c.Resource, child)
			}
		}
		return fmt.Sprintf("the cache shows %d children that were deleted", len(shown)), nil
	}
	c.done.Store(parent.GetUID(), struct{}{})
	return "", nil
}

// older reports whether a was written before b, two versions of one object.
func older(a, b client.Object) bool {
	cmp, err := resourceversion.CompareResourceVersion(a.GetResourceVersion(), b.GetResourceVersion())
	return err == nil && cmp < 0
}

// Forget drops what is known of a deleted parent, or of one of which a request had no response: what was listed before
// that is no proof.
func (c *Confirmer) Forget(parent types.UID) {
	c.done.Delete(parent)
	c.listed.drop()
}

// listed is which children the API server had of each parent, by namespace.
type listed struct {
	mu sync.Mutex
	in map[string]map[Owner]map[types.UID]client.Object
}

// put keeps a list of all children of a namespace.
func (l *listed) put(namespace string, live *metav1.PartialObjectMetadataList) {
	owned := map[Owner]map[types.UID]client.Object{}
	for i := range live.Items {
		item := &live.Items[i]
		owner := ControllerOf(item)
		if owned[owner] == nil {
			owned[owner] = map[types.UID]client.Object{}
		}
		version := &metav1.PartialObjectMetadata{}
		version.ResourceVersion = item.ResourceVersion
		owned[owner][item.UID] = version
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.in == nil {
		l.in = map[string]map[Owner]map[types.UID]client.Object{}
	}
	l.in[namespace] = owned
}

// agrees reports whether a list proves that cached is not older than this process. If it differs, one of the two is
// older than the other, and it takes another list to tell.
func (l *listed) agrees(namespace string, owner Owner, cached []client.Object) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	all, known := l.in[namespace]
	live := all[owner]
	if !known || len(live) != len(cached) {
		return false
	}
	for _, child := range cached {
		if item, there := live[child.GetUID()]; !there || older(child, item) {
			return false
		}
	}
	delete(all, owner) // it is asked for once
	return true
}

// drop forgets all lists.
func (l *listed) drop() {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.in = nil
}
