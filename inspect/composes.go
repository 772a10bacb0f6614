package inspect

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/csaupgrade"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/revision"
)

// This file makes an undo compose with apply: the next apply of a manifest leaves exactly that manifest. Apply removes
// a field if its manager owns it and the manifest lacks it. So the restored fields get the owner that the fields of the
// spec had: in the annotation of client-side apply, or in the managed fields of server-side apply.

// lastApplied returns the annotation of client-side apply as it is to be after the undo, empty if live has none. It
// follows the difference between live and restored, and nothing else: defaults of the API server are not added. A scale
// that the manifest does not have is not added, because an autoscaler owns it. An annotation that is not a manifest of
// this version is left unchanged.
func lastApplied(live client.Object, restored map[string]any, scale revision.Path) (string, error) {
	text := live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	applied := treeOf([]byte(text))
	if applied == nil || applied["apiVersion"] != restored["apiVersion"] {
		return text, nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return "", fmt.Errorf("convert %T: %w", live, err)
	}
	out, err := content.Follow(applied, tree, restored)
	if err != nil {
		return "", err
	}
	if _, scales, _ := unstructured.NestedFieldNoCopy(applied, scale...); !scales {
		unstructured.RemoveNestedField(out, scale...)
	}
	raw, err := json.Marshal(out)
	return string(raw) + "\n", err // kubectl ends it so, too
}

// treeOf returns the JSON object in raw, nil if there is none.
func treeOf(raw []byte) map[string]any {
	var out map[string]any
	if json.Unmarshal(raw, &out) != nil {
		return nil
	}
	return out
}

// appliers returns the managers of server-side apply that own fields which target covers.
func appliers(live metav1.Object, target *revision.Target) (out []string) {
	for _, m := range live.GetManagedFields() {
		applies := m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.FieldsV1 != nil
		if applies && ownsOf(m.FieldsV1.GetRawBytes(), target) {
			out = append(out, m.Manager)
		}
	}
	return out
}

// ownsOf reports whether fields, in the format of managed fields, contain a field that target covers.
func ownsOf(fields []byte, target *revision.Target) bool {
	tree := treeOf(fields)
	if target == nil {
		return false
	}
	for _, path := range target.Paths() {
		at := make([]string, 0, len(path))
		for _, field := range path {
			at = append(at, "f:"+field)
		}
		if _, owned, err := unstructured.NestedFieldNoCopy(tree, at...); owned && err == nil {
			return true
		}
	}
	return false
}

// handOver gives the fields that an undo has written to the manager that applies the parent, if there is one. o is the
// parent as the API server returned it. It returns warnings.
func (i *Inspector) handOver(ctx context.Context, u *Undo, o client.Object) []string {
	managers := appliers(u.live, u.To.stored.Target)
	if len(managers) != 1 {
		return nil // the plan has warned of several
	}
	var err error
	for range maxReads {
		var patch []byte
		patch, err = csaupgrade.UpgradeManagedFieldsPatch(o, sets.New(FieldOwner), managers[0])
		if err != nil || patch == nil {
			break
		}
		err = i.client.Patch(ctx, o, client.RawPatch(types.JSONPatchType, patch), client.FieldOwner(FieldOwner))
		if !apierrors.IsConflict(err) {
			break
		}
		if o, err = i.again(ctx, u.kind, o); err != nil {
			break
		}
	}
	if err != nil {
		return []string{fmt.Sprintf(
			"The restored fields of %s belong to %q, because they could not be given to %q, whose next apply keeps them: %v.",
			u.Parent, FieldOwner, managers[0], err,
		)}
	}
	return nil
}
