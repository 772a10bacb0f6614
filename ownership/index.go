package ownership

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file finds the objects that a claim has to look at: those the parent owns, and the orphans that match. The rest
// of the namespace is never visited.

// ControllerIndex is the name of the cache index that [IndexController] feeds.
const ControllerIndex = "metadata.controller"

// Orphan is the index value of objects without a ControllerRef.
const Orphan = "none"

// IndexController is the index function for [ControllerIndex]; register it with a cache's field indexer for every child
// type. It returns [Owner.Value] of the object's controller.
func IndexController(o client.Object) []string {
	return []string{ControllerOf(o).Value()}
}

// Candidates lists the objects of namespace that owner controls, whatever their labels, and the orphans that selector
// matches. list is an empty list of the child type; each call of visit gets one item of it.
//
// indexed says that reader is a cache with [ControllerIndex]. Without it the whole namespace is listed and filtered,
// which is right for tools and wrong for a controller.
func Candidates(ctx context.Context, reader client.Reader, list client.ObjectList, namespace string, owner Owner,
	selector labels.Selector, indexed bool, visit func(client.Object) error,
) error {
	queries := [][]client.ListOption{{client.InNamespace(namespace)}}
	if indexed {
		queries[0] = append(queries[0], client.MatchingFields{ControllerIndex: owner.Value()})
		if _, some := selector.Requirements(); some { // labels.Nothing matches no orphan
			queries = append(queries, []client.ListOption{
				client.InNamespace(namespace), client.MatchingFields{ControllerIndex: Orphan}, client.MatchingLabelsSelector{Selector: selector},
			})
		}
	}
	for _, query := range queries {
		page := list.DeepCopyObject().(client.ObjectList)
		if err := reader.List(ctx, page, query...); err != nil {
			return fmt.Errorf("list %s in namespace %s: %w", anyobject.KindOf(list), namespace, err)
		}
		err := meta.EachListItem(page, func(item runtime.Object) error {
			o := item.(client.Object)
			if of := ControllerOf(o); of != owner && (of != (Owner{}) || !selector.Matches(labels.Set(o.GetLabels()))) {
				return nil
			}
			return visit(o)
		})
		if err != nil {
			return err
		}
	}
	return nil
}
