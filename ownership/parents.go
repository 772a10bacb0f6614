package ownership

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file finds parents in a cache.

// Parents finds the parents of one kind. Build it once; nothing changes it.
type Parents struct {
	// Reader reads parents, from a cache.
	Reader client.Reader
	// Kind is their kind.
	Kind schema.GroupKind
	// New and NewList return empty objects of that kind, and empty lists.
	New     func() client.Object
	NewList func() client.ObjectList
	// ClusterScoped says that parents are in no namespace. Their children may be in any.
	ClusterScoped bool
	// Selector returns the selector of a parent. A parent without a usable one, or with an empty one, matches nothing.
	Selector func(parent client.Object) (labels.Selector, error)
}

// Router returns the router for the events of any child type of these parents.
func (p Parents) Router() Router {
	return Router{
		Parent:        p.Kind,
		ClusterScoped: p.ClusterScoped,
		UID: func(ctx context.Context, key types.NamespacedName) (types.UID, bool) {
			parent := p.New()
			if err := p.Reader.Get(ctx, key, parent); err != nil {
				return "", false
			}
			return parent.GetUID(), true
		},
		Matching: func(ctx context.Context, orphan client.Object) []types.NamespacedName {
			namespace := orphan.GetNamespace()
			if p.ClusterScoped {
				namespace = ""
			}
			return p.Select(ctx, namespace, func(parent client.Object) bool { return p.Matches(parent, orphan) })
		},
	}
}

// Matches reports whether the selector of parent matches the labels of o.
func (p Parents) Matches(parent, o client.Object) bool {
	selector, err := p.Selector(parent)
	return err == nil && !selector.Empty() && selector.Matches(labels.Set(o.GetLabels()))
}

// Select returns the parents of a namespace, or of all if it is empty, that pass a test, which must not change them. If
// the cache cannot be read yet, there are none: its first list enqueues every parent anyway.
func (p Parents) Select(ctx context.Context, namespace string, test func(parent client.Object) bool) []types.NamespacedName {
	list := p.NewList()
	if err := p.Reader.List(ctx, list, client.InNamespace(namespace)); err != nil {
		return nil
	}
	var out []types.NamespacedName
	_ = meta.EachListItem(list, func(item runtime.Object) error { // fails on what is no list
		if parent, ok := item.(client.Object); ok && test(parent) {
			out = append(out, client.ObjectKeyFromObject(parent))
		}
		return nil
	})
	return out
}
