package host

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// This file holds what passes of both kinds of controllers ask of their surroundings.

// Asker is a sync or finalize hook: see [hook.Hook.Ask].
type Asker interface {
	Ask(ctx context.Context, q *hook.Question) (*hook.Answer, error)
}

// Resources finds resources by the name that the API server serves them under: see [Environment.Resource].
type Resources interface {
	Resource(apiVersion, resource string) (Resource, error)
}

// Declared finds a resource that a controller names as that of its parents or children. It is an error to name the revisions
// of composite parents: they are the manager's own, and no event of one would wake anybody. Other errors are those of
// [Environment.Resource].
func Declared(r Resources, apiVersion, resource string) (Resource, error) {
	found, err := r.Resource(apiVersion, resource)
	if err == nil && found.Kind == Revisions.Kind {
		return Resource{}, fmt.Errorf("%s are what this manager records of parents; nothing can be made of them, or attached to them", found)
	}
	return found, err
}

// DeclaredParent is [Declared] for the resource of the parents of a CompositeController, which have to have a status.
func DeclaredParent(r Resources, apiVersion, resource string) (Resource, error) {
	found, err := Declared(r, apiVersion, resource)
	if err != nil {
		return Resource{}, err
	}
	of, ok := r.(interface {
		HasStatus(r Resource) (bool, error)
	})
	if !ok {
		return found, nil
	}
	has, err := of.HasStatus(found)
	switch {
	case err != nil:
		return Resource{}, err
	case !has:
		return Resource{}, &Error{Reason: NoStatus, Event: SyncError, Err: fmt.Errorf(
			"parent resource %s of %s does not have subresource 'Status' enabled, so that nobody could see what became of its "+
				"parents: set subresources.status in its CRD", found, found.Resource.GroupVersion())}
	}
	return found, nil
}

// Resyncs wake parents although nothing happened: see [Resync].
type Resyncs interface {
	After(key types.NamespacedName, d time.Duration)
	Take(key types.NamespacedName) bool
	Put(key types.NamespacedName)
	Forget(key types.NamespacedName)
}
