package host

import (
	"fmt"

	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file checks the resources that a controller declares.

const (
	// NoStatus is the reason of [hosting.Ready] for a controller whose parents have no status subresource.
	NoStatus = "NoStatusSubresource"
	// SyncError is the reason of an event: it cannot be run as it is (Metacontroller).
	SyncError = "SyncError"
)

// Declared finds a resource that a controller names as that of its parents or children. It is an error to name the
// revisions of composite parents: they are the manager's own, and their events would enqueue nothing. Other errors are
// those of [watching.Server.Resource].
func Declared(r watching.Resources, apiVersion, resource string) (watching.Resource, error) {
	found, err := r.Resource(apiVersion, resource)
	if err == nil && found.Kind == watching.Revisions.Kind {
		return watching.Resource{}, fmt.Errorf(
			"%s are what this manager records of parents; they cannot be parents, children or attachments", found)
	}
	return found, err
}

// DeclaredParent is [Declared] for the resource of the parents of a CompositeController, which have to have a status.
func DeclaredParent(r watching.Resources, apiVersion, resource string) (watching.Resource, error) {
	found, err := Declared(r, apiVersion, resource)
	if err != nil {
		return watching.Resource{}, err
	}
	of, ok := r.(interface {
		HasStatus(r watching.Resource) (bool, error)
	})
	if !ok {
		return found, nil
	}
	has, err := of.HasStatus(found)
	switch {
	case err != nil:
		return watching.Resource{}, err
	case !has:
		return watching.Resource{}, &hosting.Error{Reason: NoStatus, Event: SyncError, Err: fmt.Errorf(
			"parent resource %s of %s does not have subresource 'Status' enabled, so the state of its "+
				"parents cannot be reported: set subresources.status in its CRD", found, found.Resource.GroupVersion())}
	}
	return found, nil
}
