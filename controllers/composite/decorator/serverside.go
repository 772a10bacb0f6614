package decorator

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

// This file keeps attachments by server-side apply, where the manager is told to (Metacontroller's
// --apply-strategy=server-side-apply): the API server merges, and says beforehand what would become of an attachment. They
// are still made by a plain create, which takes over nobody's object; what that sets is handed over to the applier of the
// same name at once, because an apply would never remove it otherwise.

// trial is what applying desired to a version of an attachment would come to.
type trial struct {
	version string
	desired map[string]any
	result  apply.Result
}

// try says what applying desired to an attachment comes to, as the API server sees it. What it refuses to apply takes
// another attachment.
func (r *Reconciler) try(ctx context.Context, o *observed, attachment, desired *unstructured.Unstructured) (apply.Result, error) {
	if v, ok := r.trials.Get(attachment.GetUID()); ok {
		t := v.(trial) //nolint:forcetypeassert // only this method adds
		if t.version == attachment.GetResourceVersion() && apply.Equal(t.desired, desired.Object) {
			return t.result, nil
		}
	}
	t := trial{version: attachment.GetResourceVersion(), desired: desired.Object}
	out, err := r.applyTo(ctx, o, attachment, desired, client.DryRunAll)
	switch {
	case apierrors.IsInvalid(err), apierrors.IsForbidden(err), apierrors.IsBadRequest(err):
		t.result = apply.Result{Object: content(desired), Changed: true, Content: true}
	case err != nil:
		return apply.Result{}, err
	case r.unmigrated(out):
		return apply.Result{}, r.migrateLive(ctx, attachment)
	default:
		t.result = apply.Result{Object: content(out)}
		t.result.Content = !apply.Equal(t.result.Object, content(attachment))
		t.result.Changed = t.result.Content
	}
	r.trials.Add(attachment.GetUID(), t)
	return t.result, nil
}

// applyTo applies desired to exactly the attachment that was read, and returns what the API server makes of it.
func (r *Reconciler) applyTo(
	ctx context.Context, o *observed, attachment, desired *unstructured.Unstructured, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	out := applied(o, desired)
	out.SetUID(attachment.GetUID())
	out.SetResourceVersion(attachment.GetResourceVersion())
	opts = append(opts, client.ForceOwnership, client.FieldOwner(r.fieldManager))
	err := r.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(out), opts...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		err = fmt.Errorf("%w: %s changed before it could be applied", errStale, describe(attachment))
	}
	return out, err
}

// applied is what is applied of a desired attachment: what the hook said, and the reference to the object, which would be
// gone otherwise.
func applied(o *observed, desired *unstructured.Unstructured) *unstructured.Unstructured {
	out := desired.DeepCopy()
	annotations := out.GetAnnotations()
	delete(annotations, apply.LastApplied)
	out.SetAnnotations(annotations)
	out.SetOwnerReferences(append(out.GetOwnerReferences(), *metav1.NewControllerRef(o.object, o.resource.Kind)))
	return out
}

// content is the part of an attachment that an apply is about.
func content(o *unstructured.Unstructured) map[string]any {
	out := maps.Clone(o.Object)
	delete(out, "status")
	metadata, _ := out["metadata"].(map[string]any)
	metadata = maps.Clone(metadata)
	for _, field := range volatile {
		delete(metadata, field)
	}
	if annotations, _ := metadata["annotations"].(map[string]any); annotations[apply.LastApplied] != nil {
		annotations = maps.Clone(annotations)
		delete(annotations, apply.LastApplied)
		metadata["annotations"] = annotations
	}
	out["metadata"] = metadata
	return out
}

// unmigrated reports whether our name owns fields of an attachment that an apply would not remove.
func (r *Reconciler) unmigrated(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == r.fieldManager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	})
}

// migrateLive hands over the fields of an attachment whose handover was cut off. The next pass compares what it is then.
func (r *Reconciler) migrateLive(ctx context.Context, attachment *unstructured.Unstructured) error {
	live := ownership.Blank(attachment).(*unstructured.Unstructured) //nolint:forcetypeassert // of the same type
	if err := r.live.Get(ctx, client.ObjectKeyFromObject(attachment), live); err != nil {
		return client.IgnoreNotFound(err)
	}
	if live.GetUID() == attachment.GetUID() {
		if err := r.migrate(ctx, live); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the fields of %s have changed hands", errStale, describe(attachment))
}

// migrate hands over what our name owns of an attachment by an update to our name as an applier.
func (r *Reconciler) migrate(ctx context.Context, made *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(made, utilsets.New(r.fieldManager), r.fieldManager)
	if err != nil || patch == nil {
		return err
	}
	out := ownership.Blank(made)
	err = r.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil // somebody was faster, and the comparison finds out
	case err != nil:
		return fmt.Errorf("hand over the fields of %s: %w", describe(made), err)
	}
	made.SetResourceVersion(out.GetResourceVersion())
	return nil
}
