package fakeserver

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Hiding is a cache that does not show the object of one name in its lists.
type Hiding struct {
	client.Reader

	// Name is that of the object.
	Name string
}

// List implements [client.Reader].
func (h Hiding) List(ctx context.Context, list client.ObjectList, opts ...client.ListOption) error {
	if err := h.Reader.List(ctx, list, opts...); err != nil {
		return err
	}
	items, err := meta.ExtractList(list)
	if err != nil {
		return err
	}
	return meta.SetList(list, slices.DeleteFunc(items, func(o runtime.Object) bool {
		return o.(client.Object).GetName() == h.Name
	}))
}
