package children

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
)

// This file is the kinds that the children of one controller's parents may have.

// Owned are the children of one kind.
type Owned = pass.Children[*unstructured.Unstructured]

// Kinds are the kinds of children, in the order of the controller's spec. Make them with [NewKinds].
type Kinds struct {
	resources []watching.Resource
	owned     map[schema.GroupKind]*Owned
}

// NewKinds returns the kinds of a controller's children. adoptable is as in [pass.Children], and may be nil.
func NewKinds(
	c *pass.Controller, resources []watching.Resource, adoptable func(parent client.Object, orphan *unstructured.Unstructured) error,
) *Kinds {
	k := &Kinds{resources: resources, owned: map[schema.GroupKind]*Owned{}}
	for _, r := range resources {
		of := pass.NewChildren[*unstructured.Unstructured](c, r.Kind, r.Resource.GroupResource(), r.NewList)
		of.Adoptable = adoptable
		k.owned[r.Kind.GroupKind()] = of
	}
	return k
}

// Of returns the children of a kind.
func (k *Kinds) Of(kind schema.GroupKind) *Owned { return k.owned[kind] }

// Read returns a group for each kind, as hooks get them, of the children that read returns. A parent in a namespace has
// no children outside of it, even if they refer to it. It ends with the first error.
func (k *Kinds) Read(parent client.Object, read func(*Owned) ([]*unstructured.Unstructured, error)) ([]hook.Group, error) {
	groups := make([]hook.Group, 0, len(k.resources))
	for _, r := range k.resources {
		group := hook.Group{GroupVersionKind: r.Kind}
		if parent.GetNamespace() == "" || r.Namespaced {
			var err error
			if group.Objects, err = read(k.owned[r.Kind.GroupKind()]); err != nil {
				return nil, err
			}
		}
		groups = append(groups, group)
	}
	return groups, nil
}
