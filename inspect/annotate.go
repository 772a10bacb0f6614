package inspect

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
)

// This file writes why a change was made into the revision that records it. The parent is not touched: controllers copy
// its annotations to each new revision, so that the next one would inherit the cause.

// Annotated is a cause that was written.
type Annotated struct {
	Parent object.Parent
	// Entry is the revision, as it was before.
	Entry Entry
	// Changed is false if the revision had this cause already: then nothing was written.
	Changed bool
}

// Annotate sets the change cause of a revision of parent: of the one that find picks or, if that is nil, of the current
// one. An empty cause removes it.
//
// Errors: [*NotFoundError], [*AmbiguousError], those of [Inspector.History]; [*ChangedError] if the revision was
// written meanwhile (ask again); or what the API server says. After each of them nothing was changed.
func (i *Inspector) Annotate(ctx context.Context, parent client.Object, find Find, cause string) (*Annotated, error) {
	r, err := i.Read(ctx, parent)
	if err != nil {
		return nil, err
	}
	h := r.History()
	if find == nil {
		find = func(h *History) (Entry, error) {
			if current := h.Current(); current != nil {
				return *current, nil
			}
			return Entry{}, fmt.Errorf("no revision records the spec of %s as it is now, so there is none to annotate yet; "+
				"say with --revision which one is meant", h.Parent)
		}
	}
	e, err := find(h)
	if err != nil {
		return nil, err
	}
	out := &Annotated{Parent: h.Parent, Entry: e}
	o := e.stored.Object
	if was, has := o.GetAnnotations()[ChangeCauseAnnotation]; was == cause && has == (cause != "") {
		return out, nil
	}
	var value any = cause
	if cause == "" {
		value = nil
	}
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{
		"uid": o.GetUID(), "resourceVersion": o.GetResourceVersion(), "annotations": map[string]any{ChangeCauseAnnotation: value},
	}})
	if err != nil {
		return nil, err
	}
	err = i.client.Patch(ctx, object.Named(o, h.Holder(e)), client.RawPatch(types.MergePatchType, patch), client.FieldOwner(FieldOwner))
	switch {
	case apierrors.IsConflict(err), apierrors.IsNotFound(err):
		return nil, &ChangedError{Parent: h.Parent, Err: err}
	case err != nil:
		return nil, fmt.Errorf("annotate %s of %s (nothing was changed): %w", e, h.Parent, err)
	}
	out.Changed = true
	return out, nil
}

// withAnnotations adds to a JSON patch what gives live these annotations; an empty value removes one.
func withAnnotations(patch []byte, live client.Object, values map[string]string) ([]byte, error) {
	const annotations = "/metadata/annotations"
	var ops []map[string]any
	if err := json.Unmarshal(patch, &ops); err != nil {
		return nil, err
	}
	have := live.GetAnnotations()
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, at := values[key], annotations+"/"+strings.ReplaceAll(key, "/", "~1")
		was, has := have[key]
		switch {
		case was == value:
			continue
		case value == "":
			ops = append(ops, map[string]any{"op": "remove", "path": at})
		case has || len(have) > 0:
			ops = append(ops, map[string]any{"op": "add", "path": at, "value": value})
		default:
			ops = append(ops, map[string]any{"op": "add", "path": annotations, "value": map[string]string{key: value}})
			have = map[string]string{key: value}
		}
	}
	return json.Marshal(ops)
}
