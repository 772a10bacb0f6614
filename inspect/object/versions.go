package object

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file reads revisions that were recorded in another API version than the rest of their log, each in its own: its
// fields are those of that version, and the API server converts the parent.

// version is a log in one of these versions.
type version struct {
	*builtin

	// parent is the object as the API server has it in that version.
	parent client.Object
}

// in returns the log in the version in which a revision was recorded, nil if that is the log's own. Errors:
// [*UnservedVersionError], or what the API server says.
func (b *builtin) in(ctx context.Context, parent, stored client.Object) (*version, error) {
	gvk := ownedAs(stored)
	if gvk.GroupKind() != b.format.Parent.GroupKind() || gvk.Version == b.format.Parent.Version {
		return nil, nil //nolint:nilnil // it is read as all others
	}
	if known := b.versions[gvk.Version]; known != nil {
		return known, nil
	}
	if err := unserved(b.client, gvk); err != nil {
		return nil, err
	}
	format := *b.format
	format.Parent = gvk
	format.NewParent = blankOf(gvk)
	v := &version{builtin: newBuiltin(b.client, &format)}
	var err error
	if v.parent, err = Get(ctx, b.client, v, client.ObjectKeyFromObject(parent)); err != nil {
		return nil, err
	}
	if b.versions == nil {
		b.versions = map[string]*version{}
	}
	b.versions[gvk.Version] = v
	return v, nil
}

// resolveEach finds the revision among those of each version that has what the parent has in it. Of several, the one
// with the highest number counts.
func (b *builtin) resolveEach(ctx context.Context, own *revision.Resolution, revisions []revision.Revision) ([]string, error) {
	var warnings []string
	for _, v := range b.versions {
		var of []revision.Revision
		for _, r := range revisions {
			if b.recorded[r.UID] == v {
				of = append(of, r)
			}
		}
		if len(of) == 0 {
			continue
		}
		found, more, err := v.Resolve(ctx, v.parent, v.format.Target(), of)
		if err != nil {
			return nil, err
		}
		warnings = append(warnings, more...)
		if found.Update != nil && (own.Update == nil || found.Update.Number > own.Update.Number) {
			own.Change, own.Update, own.Number, own.Stamp = found.Change, found.Update, found.Update.Number, found.Stamp
		}
	}
	return warnings, nil
}

// ownVersion returns the revisions that were recorded in the version of the log.
func (b *builtin) ownVersion(revisions []revision.Revision) []revision.Revision {
	var out []revision.Revision
	for _, r := range revisions {
		if b.recorded[r.UID] == nil {
			out = append(out, r)
		}
	}
	return out
}

// recordedElsewhere is by the UID of a revision the version in which it was recorded.
type recordedElsewhere map[types.UID]*version

// blankOf makes empty objects of a kind.
func blankOf(gvk schema.GroupVersionKind) func() client.Object {
	return func() client.Object {
		out := &unstructured.Unstructured{}
		out.SetGroupVersionKind(gvk)
		return out
	}
}
