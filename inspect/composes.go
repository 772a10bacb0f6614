package inspect

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/structured-merge-diff/v6/fieldpath"

	"github.com/cairn-dev/cairn/inspect/content"
	"github.com/cairn-dev/cairn/revision"
	"github.com/cairn-dev/cairn/rollback"
)

// This file makes an undo compose with apply: the next apply of a manifest leaves that manifest, and the fields of
// other managers. Apply removes a field if its manager owns it and the manifest lacks it. So each restored field keeps
// its owners. A field that the undo adds gets the owner of the map or element around it. Owners are in the annotation
// of client-side apply, or in the managed fields of server-side apply.

// clientSide is the manager of kubectl's client-side apply.
const clientSide = "kubectl-client-side-apply"

// lastAppliedPath is the path of the annotation of client-side apply.
var lastAppliedPath = fieldpath.MakePathOrDie("metadata", "annotations", corev1.LastAppliedConfigAnnotation)

// lastApplied returns the annotation of client-side apply as it is to be after the undo, empty if live has none. It
// follows the difference between live and restored, and nothing else. A scale or a restart that the manifest does not
// have is not added: it belongs to no manifest. An annotation is left unchanged if it is not a manifest of version, the
// version of live. If the annotation would become too long, it is left unchanged, and there is a warning.
func lastApplied(
	live client.Object, version schema.GroupVersion, restored map[string]any, scale revision.Path,
) (text, warning string, err error) {
	text = live.GetAnnotations()[corev1.LastAppliedConfigAnnotation]
	applied := treeOf([]byte(text))
	if applied == nil || applied["apiVersion"] != version.String() {
		return text, "", nil
	}
	tree, err := runtime.DefaultUnstructuredConverter.ToUnstructured(live)
	if err != nil {
		return "", "", fmt.Errorf("convert %T: %w", live, err)
	}
	others, err := othersOf(live)
	if err != nil {
		return "", "", err
	}
	for _, path := range []revision.Path{scale, restart} {
		if _, has, _ := unstructured.NestedFieldNoCopy(applied, path...); !has {
			restored = without(restored, path)
		}
	}
	out, err := content.Follow(applied, tree, restored, others)
	if err != nil {
		return "", "", err
	}
	raw, err := json.Marshal(out)
	followed := string(raw) + "\n" // kubectl ends it so, too
	annotations := maps.Clone(live.GetAnnotations())
	annotations[corev1.LastAppliedConfigAnnotation] = followed
	if long := validation.ValidateAnnotationsSize(annotations); long != nil && len(followed) > len(text) {
		return text, fmt.Sprintf("The annotation %s is unchanged (%v): the next apply may keep restored fields that its manifest lacks.",
			corev1.LastAppliedConfigAnnotation, long), err
	}
	return followed, "", err
}

// othersOf returns the fields of live that belong to other managers than the manager of client-side apply.
func othersOf(live metav1.Object) (*fieldpath.Set, error) {
	out := fieldpath.NewSet()
	for _, e := range live.GetManagedFields() {
		fields, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		if e.Manager != clientSide && e.Manager != FieldOwner && !fields.Has(lastAppliedPath) {
			out = out.Union(fields)
		}
	}
	return out, nil
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
func appliers(live metav1.Object, target *revision.Target) (out owners) {
	for _, m := range live.GetManagedFields() {
		applies := m.Operation == metav1.ManagedFieldsOperationApply && m.Subresource == "" && m.FieldsV1 != nil
		if applies && ownsOf(m.FieldsV1.GetRawBytes(), target) {
			out = append(out, m)
		}
	}
	return out
}

// applierOf returns the one manager that applies live, nil if there is none, or more than one: the applier of
// server-side apply, or the owner of the annotation of client-side apply. "kubectl apply --server-side" takes over the
// fields of that owner, and removes the fields that the manifest lacks.
func applierOf(live metav1.Object, target *revision.Target) *metav1.ManagedFieldsEntry {
	out := appliers(live, target)
	if len(out) == 0 {
		out = annotators(live)
	}
	if len(out) != 1 {
		return nil
	}
	return &out[0]
}

// annotators returns the managers that own the annotation of client-side apply.
func annotators(live metav1.Object) (out owners) {
	for _, m := range live.GetManagedFields() {
		if fields, err := fieldsOf(m); err == nil && m.Manager != FieldOwner && fields.Has(lastAppliedPath) {
			out = append(out, m)
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
	applier := applierOf(u.live, u.To.stored.Target)
	if applier == nil {
		return nil // the plan has warned of several
	}
	var err error
	for range maxReads {
		var patch []byte
		patch, err = handOverPatch(u.live.GetManagedFields(), o, *applier, u.scale())
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
			"The restored fields of %s belong to %q, because they could not be given to %q, whose next server-side apply keeps them: %v.",
			u.Parent, FieldOwner, applier.Manager, err,
		)}
	}
	return nil
}

// handOverPatch is a JSON patch of the managed fields of o, nil if there is nothing to hand over.
func handOverPatch(before owners, o client.Object, applier metav1.ManagedFieldsEntry, scale revision.Path) ([]byte, error) {
	after, err := handedOver(before, o.GetManagedFields(), applier, scale)
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
)

// handedOver returns managed fields in which [FieldOwner] has nothing but annotations of its own. Each manager that
// owned one of its other fields before owns it again. A field that had no owner goes to the owners of the map or
// element around it, to applier alone if applier is among them. A restart, a scale and an annotation of client-side
// apply that had no owner stay: manifests do not have them. The API server does not record the manager that scales a
// custom resource. It returns nil if there is nothing to hand over.
func handedOver(before, after owners, applier metav1.ManagedFieldsEntry, scale revision.Path) (owners, error) {
	at, ours, err := written(after)
	if err != nil || at < 0 {
		return nil, err
	}
	left := ours.Difference(unhanded)
	var heirs []*heir
	for _, e := range before {
		if e.Manager == FieldOwner {
			continue
		}
		had, err := fieldsOf(e)
		if err != nil {
			return nil, err
		}
		h := &heir{ManagedFieldsEntry: e, had: had, gets: left.Intersection(had)}
		h.inherits = e.APIVersion == after[at].APIVersion
		h.applies = h.inherits && sameManager(e, applier)
		heirs = append(heirs, h)
	}
	if !slices.ContainsFunc(heirs, func(h *heir) bool { return h.applies }) {
		return nil, fmt.Errorf("it does not apply %s", after[at].APIVersion)
	}
	for _, h := range heirs {
		left = left.Difference(h.had)
	}
	left = left.Difference(fieldpath.NewSet(pathOf(scale), pathOf(restart), lastAppliedPath))
	for path := range left.All() {
		inherit(heirs, slices.Clone(path))
	}
	kept, out := ours, slices.Delete(slices.Clone(after), at, at+1)
	for _, h := range heirs {
		kept = kept.Difference(h.gets)
		h.Time = after[at].Time
		err = errors.Join(err, out.give(h.ManagedFieldsEntry, h.gets))
	}
	if kept.Equals(ours) {
		return nil, err
	}
	return out, errors.Join(err, out.give(after[at], kept))
}

// written returns the index of the first entry of [FieldOwner] with more than annotations of its own, and the fields of
// the entry. The index is -1 if there is none.
func written(entries []metav1.ManagedFieldsEntry) (int, *fieldpath.Set, error) {
	for at, e := range entries {
		if e.Manager != FieldOwner || e.Subresource != "" {
			continue
		}
		fields, err := fieldsOf(e)
		if err != nil {
			return -1, nil, err
		}
		if !fields.Difference(unhanded).Empty() {
			return at, fields, nil
		}
	}
	return -1, nil, nil
}

// pathOf returns a path of fields as managed fields have it.
func pathOf(path revision.Path) (out fieldpath.Path) {
	for _, field := range path {
		out = append(out, fieldpath.PathElement{FieldName: &field})
	}
	return out
}

// heir is a manager that may get fields: had are its fields before the undo, gets the fields that it gets.
type heir struct {
	metav1.ManagedFieldsEntry

	had, gets *fieldpath.Set
	// inherits means that its fields are in the version that the undo has written, so that it may get fields that had no
	// owner. applies means that it is the applier.
	inherits, applies bool
}

// inherit gives a field that had no owner to the heirs that own most of the way to it. If the applier is among them, it
// gets the field alone.
func inherit(heirs []*heir, path fieldpath.Path) {
	var nearest []*heir
	most := -1
	for _, h := range heirs {
		depth := depthOf(h.had, path)
		switch {
		case !h.inherits:
		case depth > most || depth == most && h.applies:
			nearest, most = []*heir{h}, depth
		case depth == most && !nearest[0].applies:
			nearest = append(nearest, h)
		}
	}
	for _, h := range nearest {
		h.gets = h.gets.Union(fieldpath.NewSet(path))
	}
}

// depthOf returns how many steps of the way to path lead to fields.
func depthOf(fields *fieldpath.Set, path fieldpath.Path) int {
	for n, step := range path {
		next := fields.WithPrefix(step)
		if next.Empty() && !fields.Members.Has(step) {
			return n
		}
		fields = next
	}
	return len(path)
}

// owners are managed fields.
type owners []metav1.ManagedFieldsEntry

// names returns the managers, in their order.
func (o *owners) names() (out []string) {
	for _, e := range *o {
		out = append(out, e.Manager)
	}
	return out
}

// give adds to the fields of a manager, which change at the time of to.
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
	(*o)[at].FieldsV1, (*o)[at].Time = metav1.NewFieldsV1(string(raw)), to.Time
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
