package children

import (
	"context"
	"fmt"
	"maps"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"k8s.io/utils/lru"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/ownership"
)

// This file applies children by server-side apply, if the manager is configured to (Metacontroller's
// --apply-strategy=server-side-apply). The API server merges and says what a child would become, so that nothing is
// guessed here; its answer is remembered for each version of a child.
//
// Children are still created by a plain create, which never takes over an existing object. The fields that it sets
// belong to our field manager as an update, and an apply would never remove them; so they are handed over to our field
// manager as an apply at once, with [applier.migrate].

// applier applies children under one name. It is safe for concurrent use. Make one with [newApplier].
type applier struct {
	client  client.Client
	live    client.Reader
	manager string
	trials  *lru.Cache
}

// newApplier returns an applier that writes with c, reads past every cache with live, and remembers what the API server
// said of as many as size children. fieldManager is its name.
func newApplier(c client.Client, live client.Reader, fieldManager string, size int) *applier {
	return &applier{client: c, live: live, manager: fieldManager, trials: lru.New(size)}
}

// creator returns a client whose creates are by the applier's name, as [applier.migrate] asks for.
func (a *applier) creator() client.Client { return client.WithFieldOwner(a.client, a.manager) }

// ownedBy returns what is applied of a desired child: what a hook may set ([apply.Own], which leaves out the annotation
// of the other strategy as well), with these owners: without them its parent's reference would be removed.
func ownedBy(desired *unstructured.Unstructured, owners []metav1.OwnerReference) *unstructured.Unstructured {
	o := (&unstructured.Unstructured{Object: apply.Own(desired.Object)}).DeepCopy()
	o.SetOwnerReferences(owners)
	return o
}

// trial is what the API server says of applying a desired child.
type trial struct {
	version string
	desired map[string]any
	same    bool
}

type trialKey struct {
	uid     types.UID
	variant string
}

// known reports whether applying owned would change nothing of a child, and whether that is known without a request.
// variant tells apart the desired states that one child is compared with in the same pass.
func (a *applier) known(variant string, observed, owned *unstructured.Unstructured) (same, known bool) {
	v, ok := a.trials.Get(trialKey{observed.GetUID(), variant})
	if !ok {
		return false, false
	}
	t := v.(trial)
	known = t.version == observed.GetResourceVersion() && apply.Equal(t.desired, owned.Object)
	return known && t.same, known
}

// try asks the API server what applying owned would make of a child, by a dry run, unless that is known. It is not the
// same if the rules of the kind refuse the change ([refusedByKind]): then a field differs that cannot be changed, or
// the desired child could not be created either. An error that wraps [ownership.ErrStale] says that the child has
// changed since it was read, or that its fields were handed over, which is a write. Any other is the API server's, and
// says nothing about the child: it is not remembered.
func (a *applier) try(ctx context.Context, variant string, observed, owned *unstructured.Unstructured) (same bool, err error) {
	if same, known := a.known(variant, observed, owned); known {
		return same, nil
	}
	t := trial{version: observed.GetResourceVersion(), desired: owned.Object}
	would, err := a.apply(ctx, observed, owned, client.DryRunAll)
	switch {
	case refusedByKind(err):
	case err != nil:
		return false, err
	case a.unmigrated(would):
		return false, a.migrateLive(ctx, observed)
	default:
		t.same = apply.Equal(content(would), content(observed))
	}
	a.trials.Add(trialKey{observed.GetUID(), variant}, t)
	return t.same, nil
}

// apply applies owned to exactly the child that was read, and returns what the API server makes of it. An error that
// wraps [ownership.ErrStale] says that the child has changed since; any other is the API server's.
func (a *applier) apply(
	ctx context.Context, observed, owned *unstructured.Unstructured, opts ...client.ApplyOption,
) (*unstructured.Unstructured, error) {
	o := owned.DeepCopy() // the answer is decoded over it
	o.SetUID(observed.GetUID())
	o.SetResourceVersion(observed.GetResourceVersion())
	opts = append(opts, client.ForceOwnership, client.FieldOwner(a.manager))
	err := a.client.Apply(ctx, client.ApplyConfigurationFromUnstructured(o), opts...)
	if apierrors.IsConflict(err) || apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("%w: %s changed before it could be applied", ownership.ErrStale, anyobject.Describe(observed))
	}
	return o, err
}

// migrate hands over the fields that our field manager owns by an update, as the response to the creation of made says,
// to an apply, and sets the new resourceVersion of made. If another writer is first, that is noticed when the child is
// compared.
func (a *applier) migrate(ctx context.Context, made *unstructured.Unstructured) error {
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(made, sets.New(a.manager), a.manager)
	if err != nil || patch == nil {
		return err
	}
	out := anyobject.Blank(made)
	err = a.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil
	case err != nil:
		return fmt.Errorf("hand over the fields of %s: %w", anyobject.Describe(made), err)
	}
	made.SetResourceVersion(out.GetResourceVersion())
	return nil
}

// unmigrated reports whether our name owns fields of a child that an apply would not remove.
func (a *applier) unmigrated(o *unstructured.Unstructured) bool {
	return slices.ContainsFunc(o.GetManagedFields(), func(e metav1.ManagedFieldsEntry) bool {
		return e.Manager == a.manager && e.Operation == metav1.ManagedFieldsOperationUpdate && e.Subresource == ""
	})
}

// migrateLive hands over the fields of a child that another client set under our name, or whose handover was
// interrupted. The next pass compares the child as it is then.
func (a *applier) migrateLive(ctx context.Context, observed *unstructured.Unstructured) error {
	live := anyobject.Blank(observed).(*unstructured.Unstructured)
	err := a.live.Get(ctx, client.ObjectKeyFromObject(observed), live)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: %s was deleted", ownership.ErrStale, anyobject.Describe(observed))
	case err != nil:
		return fmt.Errorf("read %s: %w", anyobject.Describe(observed), err)
	}
	if live.GetUID() == observed.GetUID() {
		if err := a.migrate(ctx, live); err != nil {
			return err
		}
	}
	return fmt.Errorf("%w: the fields of %s have changed hands", ownership.ErrStale, anyobject.Describe(observed))
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
