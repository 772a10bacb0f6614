package builder

import (
	"context"
	"encoding/json"
	"fmt"
	"reflect"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file applies children that belong to no revision, by server-side apply. What was applied is remembered with the
// version that it made, so that a child which nobody has touched costs no request; a process that has just started
// applies each once, which changes nothing.

// applier applies children under one name. It is safe for concurrent use.
type applier struct {
	client client.Client
	name   string

	mu   sync.Mutex
	last map[types.UID]applied
}

// applied is what was applied last to a child.
type applied struct {
	parent  types.UID
	version string
	desired map[string]any
}

// same reports whether desired was applied to just this version of a child.
func (a *applier) same(child, desired client.Object) bool {
	a.mu.Lock()
	was, ok := a.last[child.GetUID()]
	a.mu.Unlock()
	if !ok || was.version != child.GetResourceVersion() {
		return false
	}
	now, err := configuration(desired)
	return err == nil && reflect.DeepEqual(was.desired, now)
}

// forget drops what is remembered of a parent's children.
func (a *applier) forget(parent types.UID) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for uid, was := range a.last {
		if was.parent == parent {
			delete(a.last, uid)
		}
	}
}

// apply brings one child to what is wanted.
func (r *reconciler[P]) apply(ctx context.Context, p *pass.Pass, a application) error {
	name := describe(r.kinds[a.rule], a.desired)
	stored, err := r.applied.apply(ctx, a.child.object, a.desired, r.kinds[a.rule])
	switch {
	case apierrors.IsNotFound(err), apierrors.IsConflict(err):
		return fmt.Errorf("%w: %s has changed", ownership.ErrStale, name)
	case err != nil:
		p.Warn(nil, "FailedApply", "Apply", "Error applying %s: %v", name, err)
		return fmt.Errorf("apply %s: %w", name, err)
	}
	if stored.GetResourceVersion() != a.child.object.GetResourceVersion() {
		r.Consistency.WroteAt(p.Parent.GetUID(), r.kinds[a.rule].resource, stored)
		p.Normal(stored, "SuccessfulApply", "Apply", "Applied %s", name)
	}
	r.applied.remember(p.Parent.GetUID(), stored, a.desired)
	return nil
}

func (a *applier) remember(parent types.UID, stored, desired client.Object) {
	config, err := configuration(desired)
	if err != nil {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.last[stored.GetUID()] = applied{parent, stored.GetResourceVersion(), config}
}

// apply applies desired to exactly the child that was read.
func (a *applier) apply(ctx context.Context, child, desired client.Object, k childKind) (client.Object, error) {
	if err := a.migrate(ctx, child); err != nil {
		return nil, err
	}
	config, err := configuration(desired)
	if err != nil {
		return nil, err
	}
	config["apiVersion"], config["kind"] = k.gvk.GroupVersion().String(), k.gvk.Kind
	config["metadata"].(map[string]any)["uid"] = string(child.GetUID())
	body, err := json.Marshal(config)
	if err != nil {
		return nil, err
	}
	out := child.DeepCopyObject().(client.Object)
	err = a.client.Patch(ctx, out, client.RawPatch(types.ApplyPatchType, body), client.ForceOwnership)
	return out, err
}

// migrate hands over what the creation of a child set from our name as one that updates to our name as one that
// applies. Without it a field that is no longer wanted would stay.
func (a *applier) migrate(ctx context.Context, child client.Object) error {
	out := child.DeepCopyObject().(client.Object)
	patch, err := csaupgrade.UpgradeManagedFieldsPatch(out, sets.New(a.name), a.name)
	if err != nil || len(patch) == 0 {
		return err
	}
	return a.client.Patch(ctx, out, client.RawPatch(types.JSONPatchType, patch))
}

// configuration is what is applied of a desired child: what the author has set, and no status.
func configuration(desired client.Object) (map[string]any, error) {
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(desired)
	if err != nil {
		return nil, fmt.Errorf("read %s: %w", desired.GetName(), err)
	}
	delete(tree, "status")
	metadata, _ := tree["metadata"].(map[string]any)
	out := map[string]any{}
	for _, key := range []string{"name", "namespace", "labels", "annotations", "ownerReferences", "finalizers"} {
		if value, ok := metadata[key]; ok {
			out[key] = value
		}
	}
	tree["metadata"] = out
	return tree, nil
}
