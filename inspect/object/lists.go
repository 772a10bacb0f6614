package object

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
)

// This file asks for as little as will do: there may be thousands of revisions in a namespace, and a few of one parent.

// Indexed is a client whose lists can be asked for what one object controls, by [ownership.ControllerIndex].
type Indexed interface {
	client.Client
	// Controlled does nothing.
	Controlled()
}

func indexed(c client.Client) bool {
	_, is := c.(Indexed)
	return is
}

// narrowed lists what may be parent's: by index, or what the selector of its spec matches. If parent controls none of
// that, all of the namespace is listed, because not every kind gives its labels to what it makes. The caller keeps the
// objects of the owner that it returns.
func narrowed(ctx context.Context, c client.Client, parent client.Object, list client.ObjectList) (ownership.Owner, error) {
	gvk, err := c.GroupVersionKindFor(parent)
	if err != nil {
		return ownership.Owner{}, err
	}
	owner, in := ownership.OwnerOf(parent, gvk.GroupKind()), client.InNamespace(parent.GetNamespace())
	if indexed(c) {
		return owner, c.List(ctx, list, in, client.MatchingFields{ownership.ControllerIndex: owner.Value()})
	}
	if by := selectorOf(parent); by != nil {
		if err := c.List(ctx, list, in, by); err != nil || controlsAny(owner, list) {
			return owner, err
		}
	}
	return owner, c.List(ctx, list, in)
}

func controlsAny(owner ownership.Owner, list client.ObjectList) bool {
	found := false
	err := meta.EachListItem(list, func(item runtime.Object) error {
		o, err := meta.Accessor(item)
		found = found || err == nil && owner.Controls(o)
		return err
	})
	return err == nil && found
}

// selectorOf returns the selector of a parent's spec, nil if it has none.
func selectorOf(parent client.Object) client.ListOption {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(parent)
	if err != nil {
		return nil
	}
	fields, found, err := unstructured.NestedMap(tree, "spec", "selector")
	if err != nil || !found || len(fields) == 0 {
		return nil
	}
	var said metav1.LabelSelector
	if runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(fields, &said, true) != nil {
		return nil
	}
	selector, err := metav1.LabelSelectorAsSelector(&said)
	if err != nil || selector.Empty() {
		return nil
	}
	return client.MatchingLabelsSelector{Selector: selector}
}
