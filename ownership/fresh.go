package ownership

import (
	"context"
	"errors"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file looks at a parent again, past the cache, for the checks that a cached read cannot make.

// ErrGone says that the object that was read before does not exist any more: it is deleted, terminating, or replaced by
// another one of the same name. The caller drops the pass.
var ErrGone = errors.New("it was deleted")

// ErrStale says that a decision rests on an old read. The caller drops the pass, and makes it again soon. It is the
// only sentinel for that: every package of this module wraps it.
var ErrStale = errors.New("the cache is stale")

// Reread reads o again through live, which must not be a cache. It returns an error that wraps [ErrGone] if the object
// is deleted, being deleted, or has another UID by now, and an API error if it could not be read (retry).
func Reread(ctx context.Context, live client.Reader, o client.Object) (client.Object, error) {
	fresh := anyobject.Blank(o)
	err := live.Get(ctx, client.ObjectKeyFromObject(o), fresh)
	switch {
	case apierrors.IsNotFound(err):
		return nil, fmt.Errorf("%s: %w", anyobject.Describe(o), ErrGone)
	case err != nil:
		return nil, fmt.Errorf("read %s past the cache: %w", anyobject.Describe(o), err)
	case fresh.GetUID() != o.GetUID():
		return nil, fmt.Errorf("%s: %w: its UID is %s now, not %s", anyobject.Describe(o), ErrGone, fresh.GetUID(), o.GetUID())
	case fresh.GetDeletionTimestamp() != nil:
		return nil, fmt.Errorf("%s: %w: it is being deleted", anyobject.Describe(o), ErrGone)
	}
	return fresh, nil
}
