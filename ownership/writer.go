package ownership

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
)

// This file creates and deletes children so that a lost response makes no second child, and so that only the object
// that was looked at is ever deleted.

// Writer creates and deletes children of one kind on behalf of their parents, and enters both into a consistency store.
// It is safe for concurrent use.
type Writer struct {
	// Client writes. Live reads past every cache.
	Client client.Writer
	Live   client.Reader
	// Consistency remembers the writes, under Resource.
	Consistency *ConsistencyStore
	Resource    schema.GroupResource
}

// Creation is how the creation of a child ended.
type Creation int

// The ways in which it ends without an error.
const (
	// Created: it exists now, and we made it.
	Created Creation = iota + 1
	// Existed: an object of this name is ours, not terminating, and as wanted. An earlier request created it whose
	// response was lost, or another manager did.
	Existed
	// Taken: another object has this name.
	Taken
)

// Create creates child, which must carry parent's ControllerRef and a name that follows from what it is for. If it was
// [Created], child is filled with the object as the server has it.
//
// A name that is taken is read back, past the cache. wanted is asked about an object that parent
// controls and that is not being deleted; anything else is [Taken]. An error is the API server's, wrapped only if the
// read back failed: the caller retries the pass, and decides by apierrors whether the rest of a batch is worth trying.
func (w Writer) Create(ctx context.Context, parent, child client.Object, wanted func(found client.Object) bool) (Creation, error) {
	found := anyobject.Blank(child)
	err := w.Client.Create(ctx, child)
	if err == nil {
		w.Consistency.WroteAt(parent.GetUID(), w.Resource, child)
		return Created, nil
	}
	if !apierrors.IsAlreadyExists(err) {
		return 0, err
	}
	err = w.Live.Get(ctx, client.ObjectKeyFromObject(child), found)
	if apierrors.IsNotFound(err) {
		return 0, fmt.Errorf("create %s: it existed and was deleted meanwhile: %w", anyobject.Describe(child), err)
	}
	if err != nil {
		return 0, fmt.Errorf("read back %s: %w", anyobject.Describe(child), err)
	}
	if !ControllerOf(child).Controls(found) || found.GetDeletionTimestamp() != nil || !wanted(found) {
		return Taken, nil
	}
	w.Consistency.WroteAt(parent.GetUID(), w.Resource, found) // the cache has not shown it yet
	return Existed, nil
}

// Delete deletes exactly the version of child that the caller decided about: if it changed since, it may be the one
// that is ready by now. It reports whether it did; a child that is deleted, changed, or replaced is left to the next
// pass and is no error. Any other error is the API server's (retry). So is a conflict about a child that, past the
// cache, did not change: an admission webhook can refuse a delete with that code, and then no event would come.
//
// What the child owns goes after it, in the background: the default of some kinds, of Jobs for one, is to leave that
// running.
func (w Writer) Delete(ctx context.Context, parent, child client.Object) (bool, error) {
	uid, version := child.GetUID(), child.GetResourceVersion()
	opts := []client.DeleteOption{
		client.Preconditions{UID: &uid, ResourceVersion: &version}, client.PropagationPolicy(metav1.DeletePropagationBackground),
	}
	err := w.Client.Delete(ctx, anyobject.Blank(child), opts...)
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		found, changed, readErr := Changed(ctx, w.Live, child)
		if readErr != nil {
			return false, readErr
		}
		if !changed {
			return false, err
		}
		if found != nil {
			w.Consistency.WroteAt(parent.GetUID(), w.Resource, found) // until the cache shows it there is no point in asking again
		}
		return false, nil
	case err != nil:
		return false, err
	}
	w.Consistency.Deleted(parent.GetUID(), w.Resource, child)
	return true, nil
}

// Changed reports, after a conflict about an object that was read, whether the object changed past the cache, and
// returns what the API server has under its name now, nil for nothing. If it did not change, the conflict was no
// conflict: admission refused the write with that code. The error is the API server's (retry).
func Changed(ctx context.Context, live client.Reader, read client.Object) (found client.Object, changed bool, err error) {
	found = anyobject.Blank(read)
	err = live.Get(ctx, client.ObjectKeyFromObject(read), found)
	switch {
	case apierrors.IsNotFound(err):
		return nil, true, nil
	case err != nil:
		return nil, false, fmt.Errorf("read back %s: %w", anyobject.Describe(read), err)
	default:
		return found, found.GetUID() != read.GetUID() || found.GetResourceVersion() != read.GetResourceVersion(), nil
	}
}
