package ownership

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file reads a parent past the cache, for the checks that a cached read cannot make.

// ErrGone says that the object that was read before is not there any more: deleted, being deleted, or replaced by
// another one of the same name. The caller drops what it was about to do for it.
var ErrGone = errors.New("it is gone")

// ErrStale says that a decision rests on an old read. The caller drops the pass, and makes it again soon.
var ErrStale = errors.New("the cache is behind")

// Reread reads o again through live, which must not be a cache. It returns an error that wraps [ErrGone] if the object
// is deleted, being deleted, or has another UID by now, and an API error if it could not be read (retry).
func Reread(ctx context.Context, live client.Reader, o client.Object) (client.Object, error) {
	fresh := Blank(o)
	err := live.Get(ctx, client.ObjectKeyFromObject(o), fresh)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: %w", Describe(o), ErrGone)
	case err != nil:
		return nil, fmt.Errorf("read %s past the cache: %w", Describe(o), err)
	case fresh.GetUID() != o.GetUID():
		return nil, fmt.Errorf("%s: %w: its UID is %s now, not %s", Describe(o), ErrGone, fresh.GetUID(), o.GetUID())
	case fresh.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s: %w: it is being deleted", Describe(o), ErrGone)
	}
	return fresh, nil
}

// Blank returns an empty object of the type of o, with its name, namespace and kind: something to decode an answer into.
// Decoding over a populated object would keep fields that the answer does not have.
func Blank(o client.Object) client.Object {
	blank := reflect.New(reflect.TypeOf(o).Elem()).Interface().(client.Object) //nolint:forcetypeassert // same type as o
	blank.GetObjectKind().SetGroupVersionKind(o.GetObjectKind().GroupVersionKind())
	blank.SetNamespace(o.GetNamespace())
	blank.SetName(o.GetName())
	return blank
}
