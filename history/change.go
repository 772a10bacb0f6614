package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file changes a stored revision: its number, its stamp, its labels and its further fields, but never its data.

// Change is what one patch of a revision alters. Zero fields stay as they are. Data is not among them (H4).
type Change struct {
	// Number is the number that the revision is to have, and Stamp says from which read of the parent it is.
	Number int64
	Stamp  revision.Stamp
	// Labels and Annotations are set; an annotation that is nil is removed.
	Labels      map[string]string
	Annotations map[string]any
	// Fields are further fields of the object, by name.
	Fields map[string]any
}

// Change alters exactly the revision that was read, and returns it as stored. The error is the API server's; a conflict
// or a not-found error means that another writer was first: drop the pass.
func (l *Log) Change(ctx context.Context, parent client.Object, r revision.Revision, c Change) (revision.Revision, error) {
	o, err := l.ChangeObject(ctx, parent, r, c)
	if err != nil {
		return revision.Revision{}, err
	}
	return l.Revision(o), nil
}

// ChangeObject is [Log.Change] for a caller who needs more of the stored object than its revision.
func (l *Log) ChangeObject(ctx context.Context, parent client.Object, r revision.Revision, c Change) (client.Object, error) {
	o, err := l.patch(ctx, parent, r, c)
	if apierrors.IsInvalid(err) && c.Stamp != (revision.Stamp{}) {
		return l.patchTrimmed(ctx, parent, r, c, err)
	}
	return o, err
}

// patchTrimmed repeats a patch that was refused: a revision that another writer recorded may have the largest
// annotations allowed, so that the stamp is too much.
func (l *Log) patchTrimmed(
	ctx context.Context, parent client.Object, r revision.Revision, c Change, refused error,
) (client.Object, error) {
	o, err := l.get(ctx, parent, r.Name)
	if err != nil {
		return nil, fmt.Errorf("read revision %s past the cache: %w", r.Name, err)
	}
	kept, without := annotations(o.GetAnnotations(), c.Stamp), maps.Clone(c.Annotations)
	if without == nil {
		without = map[string]any{}
	}
	before := len(without)
	for k := range o.GetAnnotations() {
		if _, ok := kept[k]; !ok {
			without[k] = nil
		}
	}
	if len(without) == before {
		return nil, refused
	}
	c.Annotations = without
	return l.patch(ctx, parent, r, c)
}

func (l *Log) patch(ctx context.Context, parent client.Object, r revision.Revision, c Change) (client.Object, error) {
	metadata := map[string]any{"uid": r.UID, "resourceVersion": r.ResourceVersion}
	body := map[string]any{"metadata": metadata}
	maps.Copy(body, c.Fields)
	if c.Number != 0 && c.Number != r.Number {
		body["revision"] = c.Number
	}
	set := map[string]any{}
	if c.Stamp != (revision.Stamp{}) {
		for k, v := range stampAnnotations(c.Stamp) {
			set[k] = v
		}
	}
	maps.Copy(set, c.Annotations)
	if len(set) > 0 {
		metadata["annotations"] = set
	}
	if len(c.Labels) > 0 {
		metadata["labels"] = c.Labels
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, err
	}
	o := l.Empty()
	o.SetName(r.Name)
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	o.SetNamespace(namespace)
	if err := l.opts.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw)); err != nil {
		return nil, fmt.Errorf("change revision %s: %w", r.Name, err)
	}
	l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o)
	return o, nil
}
