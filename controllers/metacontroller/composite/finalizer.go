package composite

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file writes the finalizer of parents: they have it while a finalize hook is to be called before their deletion.

// finalizers adds and removes the finalizers of parents.
type finalizers struct {
	*settings

	client      client.Client
	consistency *ownership.ConsistencyStore
}

// set adds or removes the finalizer of a parent as the controller declares. It reports whether the pass is over: the
// finalizer was written, and that event enqueues the parent; or there is nothing left to do for it.
func (r *finalizers) set(ctx context.Context, parent *unstructured.Unstructured) (done bool, err error) {
	has, going := r.finalized(parent), parent.GetDeletionTimestamp() != nil
	switch {
	case has && !r.finalizes:
		return true, r.remove(ctx, parent)
	case !has && going && r.finalizes:
		return true, nil // its hook is done; the garbage collector deletes what is left
	case !has && r.finalizes:
		return true, r.write(ctx, parent, append(slices.Clone(parent.GetFinalizers()), r.finalizer))
	}
	return false, nil
}

// remove removes the finalizer, so that the parent can be deleted.
func (r *finalizers) remove(ctx context.Context, parent *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(slices.Clone(parent.GetFinalizers()), func(f string) bool { return f == r.finalizer })
	return r.write(ctx, parent, rest)
}

// write replaces the finalizers of exactly the parent that was read, so that no other writer's is lost.
func (r *finalizers) write(ctx context.Context, parent *unstructured.Unstructured, finalizers []string) error {
	if finalizers == nil {
		finalizers = []string{}
	}
	body, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": parent.GetUID(), "resourceVersion": parent.GetResourceVersion(), "finalizers": finalizers,
	}})
	if err != nil {
		return err
	}
	out := anyobject.Blank(parent)
	err = r.client.Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", anyobject.Describe(parent), ownership.ErrGone)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ownership.ErrStale, err)
	case err != nil:
		return fmt.Errorf("write the finalizer of %s: %w", anyobject.Describe(parent), err)
	}
	r.consistency.WroteAt(parent.GetUID(), r.parent.Resource.GroupResource(), out)
	return nil
}
