package ownership

import (
	"context"
	"errors"
	"fmt"
	"reflect"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file looks at a parent again: past the cache, for the checks that a cached read cannot make, and in the cache, while a
// pass goes on.

// ErrGone says that the object that was read before is not there any more: deleted, being deleted, or replaced by
// another one of the same name. The caller drops what it was about to do for it.
var ErrGone = errors.New("it is gone")

// ErrStale says that a decision rests on an old read. The caller drops the pass, and makes it again soon. It is the only
// sentinel for that: every package of this module wraps it.
var ErrStale = errors.New("the cache is stale")

// Superseded reports whether err, the error of a pass or of a part of it, wraps [ErrStale] or [ErrGone]: what the pass was
// decided on is over.
func Superseded(err error) bool { return errors.Is(err, ErrStale) || errors.Is(err, ErrGone) }

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

// Unedited returns a question for [SlowStart]: whether the cache still shows parent as the pass has read it. It costs no
// request. The error wraps [ErrStale] if the cache shows a newer generation, and [ErrGone] if parent is being deleted since,
// is gone, or is another one: the caller drops the pass. If the cache cannot be read, the pass goes on.
func Unedited(ctx context.Context, cache client.Reader, parent client.Object) func() error {
	return func() error {
		shown := Blank(parent)
		err := cache.Get(ctx, client.ObjectKeyFromObject(parent), shown)
		switch {
		case apierrors.IsNotFound(err), err == nil && shown.GetUID() != parent.GetUID():
			return fmt.Errorf("%s: %w", Describe(parent), ErrGone)
		case err != nil:
			return nil //nolint:nilerr // a pass that began may go on
		case shown.GetDeletionTimestamp() != nil && parent.GetDeletionTimestamp() == nil:
			return fmt.Errorf("%s: %w: it is being deleted", Describe(parent), ErrGone)
		case shown.GetGeneration() > parent.GetGeneration():
			return fmt.Errorf("%w: %s is at generation %d by now, and the pass is about %d",
				ErrStale, Describe(parent), shown.GetGeneration(), parent.GetGeneration())
		}
		return nil
	}
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
