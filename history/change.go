package history

import (
	"context"
	"encoding/json"
	"fmt"

	appsv1 "k8s.io/api/apps/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file changes a revision that is stored: its number, its stamp, its hash label, and never its data.

// change is what one patch of a revision alters. Zero fields stay as they are. Data is not among them (H4).
type change struct {
	number int64
	stamp  revision.Stamp
	label  string
	// without are annotations that go, to make room for the stamp; trimmed is true if they were looked for.
	without []string
	trimmed bool
}

// patchTrimmed is patch again after a refusal: a revision that somebody else recorded may have as many annotations as there
// may be, so that the stamp is one too many.
func (l *Log) patchTrimmed(
	ctx context.Context, parent client.Object, r revision.Revision, c change, refused error,
) (revision.Revision, error) {
	var o appsv1.ControllerRevision
	if err := l.opts.Live.Get(ctx, types.NamespacedName{Namespace: parent.GetNamespace(), Name: r.Name}, &o); err != nil {
		return revision.Revision{}, fmt.Errorf("read revision %s past the cache: %w", r.Name, err)
	}
	kept := annotations(o.Annotations, c.stamp)
	for k := range o.Annotations {
		if _, ok := kept[k]; !ok {
			c.without = append(c.without, k)
		}
	}
	if len(c.without) == 0 {
		return revision.Revision{}, fmt.Errorf("change revision %s: %w", r.Name, refused)
	}
	c.trimmed = true
	return l.patch(ctx, parent, r, c)
}

// patch alters exactly the revision that was read, and fails with a conflict if it changed since.
func (l *Log) patch(ctx context.Context, parent client.Object, r revision.Revision, c change) (revision.Revision, error) {
	metadata := map[string]any{"uid": r.UID, "resourceVersion": r.ResourceVersion}
	body := map[string]any{"metadata": metadata}
	if c.number != 0 && c.number != r.Number {
		body["revision"] = c.number
	}
	if c.stamp != (revision.Stamp{}) {
		stamped := map[string]any{}
		for k, v := range stampAnnotations(c.stamp) {
			stamped[k] = v
		}
		for _, k := range c.without {
			stamped[k] = nil
		}
		metadata["annotations"] = stamped
	}
	if c.label != "" {
		metadata["labels"] = map[string]string{l.HashLabel: c.label}
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return revision.Revision{}, err
	}
	o := &appsv1.ControllerRevision{ObjectMeta: metav1.ObjectMeta{Namespace: parent.GetNamespace(), Name: r.Name}}
	err = l.opts.Client.Patch(ctx, o, client.RawPatch(types.MergePatchType, raw))
	if apierrors.IsInvalid(err) && c.stamp != (revision.Stamp{}) && !c.trimmed {
		return l.patchTrimmed(ctx, parent, r, c, err)
	}
	if err != nil {
		return revision.Revision{}, fmt.Errorf("change revision %s: %w", r.Name, err)
	}
	l.opts.Wrote(parent.GetUID(), o)
	return l.revision(o), nil
}
