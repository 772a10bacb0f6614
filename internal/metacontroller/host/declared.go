package host

import (
	"fmt"

	"github.com/cairn-dev/cairn/internal/metacontroller/watch"
)

// This file checks the resources that a controller declares.

// Declared finds a resource that a controller names as that of its parents or children. It is an error to name the revisions
// of composite parents: they are the manager's own, and their events would enqueue nothing. Other errors are those of
// [watch.Server.Resource].
func Declared(r watch.Resources, apiVersion, resource string) (watch.Resource, error) {
	found, err := r.Resource(apiVersion, resource)
	if err == nil && found.Kind == watch.Revisions.Kind {
		return watch.Resource{}, fmt.Errorf("%s are what this manager records of parents; they cannot be parents, children or attachments", found)
	}
	return found, err
}

// DeclaredParent is [Declared] for the resource of the parents of a CompositeController, which have to have a status.
func DeclaredParent(r watch.Resources, apiVersion, resource string) (watch.Resource, error) {
	found, err := Declared(r, apiVersion, resource)
	if err != nil {
		return watch.Resource{}, err
	}
	of, ok := r.(interface {
		HasStatus(r watch.Resource) (bool, error)
	})
	if !ok {
		return found, nil
	}
	has, err := of.HasStatus(found)
	switch {
	case err != nil:
		return watch.Resource{}, err
	case !has:
		return watch.Resource{}, &Error{Reason: NoStatus, Event: SyncError, Err: fmt.Errorf(
			"parent resource %s of %s does not have subresource 'Status' enabled, so that nobody could see what became of its "+
				"parents: set subresources.status in its CRD", found, found.Resource.GroupVersion())}
	}
	return found, nil
}
