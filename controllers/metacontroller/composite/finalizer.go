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

// This file writes the finalizer of parents: it is there as long as a finalize hook is to be asked before one may go.

// finalizers writes those of parents.
type finalizers struct {
	*settings

	client client.Client
	ledger *ownership.Ledger
}

// set brings the finalizer of a parent to what the controller declares. It reports whether the pass is over: the
// finalizer was written, and the parent as it is now wakes us; or there is nothing left to do for it.
func (r *finalizers) set(ctx context.Context, parent *unstructured.Unstructured) (done bool, err error) {
	has, going := r.finalized(parent), parent.GetDeletionTimestamp() != nil
	switch {
	case has && !r.finalizes:
		return true, r.remove(ctx, parent)
	case !has && going && r.finalizes:
		return true, nil // its hook has said that it is done; what it leaves behind is the garbage collector's
	case !has && r.finalizes:
		return true, r.write(ctx, parent, append(slices.Clone(parent.GetFinalizers()), r.finalizer))
	}
	return false, nil
}

// remove lets a parent go.
func (r *finalizers) remove(ctx context.Context, parent *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(slices.Clone(parent.GetFinalizers()), func(f string) bool { return f == r.finalizer })
	return r.write(ctx, parent, rest)
}

// write replaces the finalizers of exactly the parent that was read, so that nobody else's is lost.
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
	r.ledger.Wrote(parent.GetUID(), r.parent.Resource.GroupResource(), out)
	return nil
}
