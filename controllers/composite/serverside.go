package composite

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	utilsets "k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/controllers/composite/apply"
	"github.com/cairn-dev/cairn/ownership"
)

// This file applies children by server-side apply, where the manager is told to (Metacontroller's
// --apply-strategy=server-side-apply). The API server merges and says what a child would become, so that nothing is guessed
// here; what it says is remembered for each version of a child.
//
// Children are still created by a plain create, which takes over nobody's object. What that sets belongs to our name as an
// update, and an apply would never remove it; so that it is handed over to our name as an applier at once (migrate).

// trial is what the API server says of applying a desired child.
type trial struct {
	version string
	desired map[string]any
	same    bool
}

type trialKey struct {
	uid    types.UID
	newest bool
}

// sameServerSide reports whether applying desired to a child would change nothing, as far as the API server was asked.
func (c *comparison) sameServerSide(newest bool, observed, desired *unstructured.Unstructured) bool {
	v, ok := c.trials.Get(trialKey{observed.GetUID(), newest})
	if ok {
		t := v.(trial) //nolint:forcetypeassert // try adds them
		if t.version == observed.GetResourceVersion() && apply.Equal(t.desired, desired.Object) {
			return t.same
		}
	}
	c.doubts = append(c.doubts, doubt{observed, desired, newest})
	return false
}

// try asks the API server what applying desired would make of a child. What it refuses to apply takes another child.
func (c *comparison) try(ctx context.Context, d doubt) error {
	t := trial{version: d.observed.GetResourceVersion(), desired: d.desired.Object}
	o, err := c.applyTo(ctx, c.parent, d.observed, d.desired, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
	case err != nil:
		return err
	case c.unmigrated(o):
		return c.migrateLive(ctx, d.observed)
	default:
		t.same = apply.Equal(content(o), content(d.observed))
	}
	c.trials.Add(trialKey{d.observed.GetUID(), d.newest}, t)
	return nil
}

// applyTo applies desired to exactly the child that was read, and returns what the API server makes of it.
func (r *reconciler) applyTo(
	ctx context.Context, parent, observed, desired *unstructured.Unstructured, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	o := r.appliedChild(parent, desired)
	o.SetUID(observed.GetUID())
	o.SetResourceVersion(observed.GetResourceVersion())
	opts = append(opts, client.ForceOwnership, client.FieldOwner(r.fieldManager))
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), opts...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %s changed before it could be applied", errStale, child(parent, observed))
	}
	return o, err
}

// appliedChild is what is applied of a desired child: what the hook said, and our reference, which would be gone otherwise.
func (r *reconciler) appliedChild(parent, desired *unstructured.Unstructured) *unstructured.Unstructured {
	o := desired.DeepCopy()
	withoutSystemFields(o)
	annotations := o.GetAnnotations()
	if delete(annotations, apply.LastApplied); len(annotations) == 0 {
		annotations = nil
	}
	o.SetAnnotations(annotations)
	o.SetOwnerReferences(append(otherOwners(o), *metav1.NewControllerRef(parent, r.parent.Kind)))
	return o
}

// content is the part of a child that an apply is about.
func content(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "status")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range []string{"managedFields", "resourceVersion", "generation"} {
		delete(metadata, field)
	}
	if annotations, _ := metadata["annotations"].(map[string]any); annotations[apply.LastApplied] != nil {
		annotations = maps.Clone(annotations)
		if delete(annotations, apply.LastApplied); len(annotations) == 0 {
			delete(metadata, "annotations")
		} else {
			metadata["annotations"] = annotations
		}
	}
	out["metadata"] = metadata
	return out
}

// unmigrated reports whether our name owns fields of a child that an apply would not remove.
func (r *reconciler) unmigrated(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == r.fieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	})
}

// migrateLive hands over what our name owns of a child that somebody else made, or whose handover was cut off. The child as
// it is then is compared in the next pass.
func (r *reconciler) migrateLive(ctx context.Context, observed *unstructured.Unstructured) error {
	live := ownership.Blank(observed)
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(observed), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() != observed.GetUID() {
		return fmt.Errorf("%w: %s was replaced", errStale, observed.GetName())
	}
	if err := r.migrate(ctx, live.(*unstructured.Unstructured)); err != nil { //nolint:forcetypeassert // Blank's type
		return err
	}
	return fmt.Errorf("%w: the fields of %s have changed hands", errStale, observed.GetName())
}

// migrate hands over what our name owns of a child by an update to our name as an applier.
func (r *reconciler) migrate(ctx context.Context, made *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(made, utilsets.New(r.fieldManager), r.fieldManager)
	if err != nil || patch == nil {
		return err
	}
	out := ownership.Blank(made)
	err = r.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch))
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil // somebody was faster; it is found out when the child is compared
	}
	if err != nil {
		return fmt.Errorf("hand over the fields of %s %s: %w", made.GetKind(), made.GetName(), err)
	}
	made.SetResourceVersion(out.GetResourceVersion())
	return nil
}
