package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file makes an undo compose with apply: the next apply of a manifest leaves exactly that manifest, and the fields
// of other managers. Apply removes a field if its manager owns it and the manifest lacks it. So each restored field
// keeps its owners, and a field that the undo adds becomes the applier's. Owners are in the annotation of client-side
// apply, or in the managed fields of server-side apply.

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

// handOver gives the fields that an undo has written back to their owners. Fields that the undo has added go to the
// manager that applies the parent. It does nothing if there is none, or more than one. o is the parent as the API
// server returned it. It returns warnings.
func (i *Inspector) handOver(ctx context.Context, u *Undo, o client.Object) []string {
	managers := appliers(u.live, u.To.stored.Target)
	if len(managers) != 1 {
		return nil // the plan has warned of several
	}
	var err error
	for range maxReads {
		var patch []byte
		patch, err = handOverPatch(u.live.GetManagedFields(), o, managers[0])
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

// handOverPatch is a JSON patch of the managed fields of o, nil if there is nothing to hand over.
func handOverPatch(before []metav1.ManagedFieldsEntry, o client.Object, applier string) ([]byte, error) {
	after, err := handedOver(before, o.GetManagedFields(), applier)
	if err != nil || after == nil {
		return nil, err
	}
	return json.Marshal([]map[string]any{
		{"op": "replace", "path": "/metadata/managedFields", "value": after},
		{"op": "replace", "path": "/metadata/resourceVersion", "value": o.GetResourceVersion()}, // else a conflict
	})
}

// unhanded are the annotations that an undo writes for itself: an apply is not to remove them.
var unhanded = fieldpath.NewSet(
	fieldpath.MakePathOrDie("metadata", "annotations", rollback.NoteAnnotation),
	fieldpath.MakePathOrDie("metadata", "annotations", ChangeCauseAnnotation),
	fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation),
)

// handedOver returns managed fields in which [FieldOwner] has nothing but annotations of its own. Each manager that
// owned one of its other fields before owns it again, and applier gets the rest. It returns nil if there are none.
func handedOver(before, after []metav1.ManagedFieldsEntry, applier string) (owners, error) {
	isOurs := func(e metav1.ManagedFieldsEntry) bool { return e.Manager == FieldOwner && e.Subresource == "" }
	at := slices.IndexFunc(after, isOurs)
	if at < 0 {
		return nil, nil
	}
	all, err := fieldsOf(after[at])
	if err != nil {
		return nil, err
	}
	ours, version := all.Difference(unhanded), after[at].APIVersion
	if ours.Empty() {
		return nil, nil
	}
	out, left := owners(slices.DeleteFunc(slices.Clone(after), isOurs)), ours
	var heir *metav1.ManagedFieldsEntry
	for _, e := range before {
		if e.APIVersion != version || e.Subresource != "" || e.Manager == FieldOwner {
			continue
		}
		had, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		if err := out.give(e, ours.Intersection(had)); err != nil {
			return nil, err
		}
		left = left.Difference(had)
		if e.Manager == applier && e.Operation == metav1.ManagedFieldsOperationApply {
			heir = &e
		}
	}
	if heir == nil {
		return nil, fmt.Errorf("it does not apply %s", version)
	}
	return out, errors.Join(out.give(after[at], all.Intersection(unhanded)), out.give(*heir, left))
}

// owners are managed fields.
type owners []metav1.ManagedFieldsEntry

// give adds to the fields of a manager.
func (o *owners) give(to metav1.ManagedFieldsEntry, fields *fieldpath.Set) error {
	if fields.Empty() {
		return nil
	}
	at := slices.IndexFunc(*o, func(e metav1.ManagedFieldsEntry) bool { return sameManager(e, to) })
	if at < 0 {
		to.FieldsV1 = nil
		at, *o = len(*o), append(*o, to)
	}
	has, err := fieldsOf((*o)[at])
	if err != nil {
		return err
	}
	raw, err := has.Union(fields).ToJSON()
	(*o)[at].FieldsV1 = metav1.NewFieldsV1(string(raw))
	return err
}

func sameManager(a, b metav1.ManagedFieldsEntry) bool {
	return a.Manager == b.Manager && a.Operation == b.Operation && a.APIVersion == b.APIVersion && a.Subresource == b.Subresource
}

func fieldsOf(e metav1.ManagedFieldsEntry) (*fieldpath.Set, error) {
	out := &fieldpath.Set{}
	if e.FieldsV1 == nil {
		return out, nil
	}
	if err := out.FromJSON(bytes.NewReader(e.FieldsV1.GetRawBytes())); err != nil {
		return nil, fmt.Errorf("read the fields of manager %s: %w", e.Manager, err)
	}
	return out, nil
}
