package composite

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file writes the finalizer of parents: it is there as long as a finalize hook is to be asked before one may go.

// setFinalizer brings the finalizer of a parent to what the controller declares. It reports whether the pass is over: the
// finalizer was written, and the parent as it is now wakes us; or there is nothing left to do for it.
func (r *reconciler) setFinalizer(ctx context.Context, parent *unstructured.Unstructured) (done bool, err error) {
	has, going := r.finalized(parent), parent.GetDeletionTimestamp() != nil
	switch {
	case has && !r.finalizes:
		return true, r.removeFinalizer(ctx, parent)
	case !has && going && r.finalizes:
		return true, nil // its hook has said that it is done; what it leaves behind is the garbage collector's
	case !has && r.finalizes:
		return true, r.writeFinalizers(ctx, parent, append(slices.Clone(parent.GetFinalizers()), r.finalizer))
	}
	return false, nil
}

// letGo lets go of a parent whose finalize hook is done. What that said of its status is written before: who else has a
// finalizer on it looks there. A status that the API server does not take is no reason to keep the parent.
func (r *reconciler) letGo(ctx context.Context, o *observed, d *decision) error {
	parent, status := o.parent, r.statusFor(o.parent, o.memory, d.answer.Status, o.parent.GetGeneration(), false, "", "", "")
	if o.statusDiffers(status) {
		written, err := r.writeStatus(ctx, parent, o.memory, status)
		_, fault := errors.AsType[*faultError](err)
		switch {
		case err == nil:
			parent = written
		case fault, apierrors.IsInvalid(err), apierrors.IsBadRequest(err), apierrors.IsForbidden(err),
			apierrors.IsRequestEntityTooLargeError(err):
			o.memory.pass.Warn(nil, "SyncError", "Sync", "Sync error: %s", pass.FirstLine(err))
		default:
			return err
		}
	}
	return r.removeFinalizer(ctx, parent)
}

// removeFinalizer lets a parent go.
func (r *reconciler) removeFinalizer(ctx context.Context, parent *unstructured.Unstructured) error {
	rest := slices.DeleteFunc(slices.Clone(parent.GetFinalizers()), func(f string) bool { return f == r.finalizer })
	return r.writeFinalizers(ctx, parent, rest)
}

// writeFinalizers replaces the finalizers of exactly the parent that was read, so that nobody else's is lost.
func (r *reconciler) writeFinalizers(ctx context.Context, parent *unstructured.Unstructured, finalizers []string) error {
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
	err = r.Client.Patch(ctx, out, client.RawPatch(types.MergePatchType, body))
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%s: %w", anyobject.Describe(parent), ownership.ErrGone)
	case apierrors.IsConflict(err):
		return fmt.Errorf("%w: %w", ownership.ErrStale, err)
	case err != nil:
		return fmt.Errorf("write the finalizer of %s: %w", anyobject.Describe(parent), err)
	}
	r.Ledger.Wrote(parent.GetUID(), r.parent.Resource.GroupResource(), out)
	return nil
}
