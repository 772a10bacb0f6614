package verify

import (
	"context"
	"encoding/json"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/object"
)

// This file carries out what verify.go proposes: one request for each fix, with the UID and the version that was judged
// as preconditions.

// Repair carries the fix of a problem out, or has the API server say whether it would if dryRun is true.
//
// Errors: what the API server says. After a conflict the object is not what was judged any more: verify again.
func Repair(ctx context.Context, c client.Client, p Problem, dryRun bool) error {
	if p.Fix == nil {
		return fmt.Errorf("%s: nothing is done about %s", p.Object, p.Reason)
	}
	o := p.Fix.object
	var err error
	if p.Fix.adopt != nil {
		err = adopt(ctx, c, o, *p.Fix.adopt, dryRun)
	} else {
		uid, version := o.GetUID(), o.GetResourceVersion()
		opts := []client.DeleteOption{client.Preconditions{UID: &uid, ResourceVersion: &version}}
		if dryRun {
			opts = append(opts, client.DryRunAll)
		}
		err = client.IgnoreNotFound(c.Delete(ctx, object.Named(o, p.Object), opts...))
	}
	if err != nil {
		return fmt.Errorf("%s (nothing was changed): %w", p.Fix.Message, err)
	}
	return nil
}

// adopt adds a controller reference to those that the object had when it was judged.
func adopt(ctx context.Context, c client.Client, o client.Object, by metav1.OwnerReference, dryRun bool) error {
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "ownerReferences": append(o.GetOwnerReferences(), by),
	}})
	if err != nil {
		return err
	}
	opts := []client.PatchOption{client.FieldOwner(inspect.FieldOwner)}
	if dryRun {
		opts = append(opts, client.DryRunAll)
	}
	into := object.Named(o, object.Parent{GroupVersionKind: o.GetObjectKind().GroupVersionKind()})
	return c.Patch(ctx, into, client.RawPatch(types.MergePatchType, patch), opts...)
}
