package history

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file holds the three writes: a new revision under a free name, which is found again if the response was lost; a
// change of the number, the stamp, the labels or further fields of a stored one, never of its data; and a deletion,
// with UID and version as preconditions.

// MaxData is the largest snapshot that is stored, in bytes. The API server stores somewhat more, but a template of this
// size would fill its store with a handful of revisions.
const MaxData = 1 << 20

// maxProbes bounds the search for a free name. Sixteen collisions of a 32-bit hash in one namespace are deliberate.
const maxProbes = 16

// TooLargeError says that a snapshot cannot be stored. The caller reports it on the parent and starts no rollout.
type TooLargeError struct {
	// Bytes is the size of the snapshot.
	Bytes int
	// Err is what the API server said, nil if it was not asked.
	Err error
}

// Error says how large the snapshot is, and how large it may be.
func (e *TooLargeError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("the snapshot of %d bytes cannot be stored: %v", e.Bytes, e.Err)
	}
	return fmt.Sprintf("the snapshot has %d bytes, and at most %d can be stored; make the template smaller", e.Bytes, MaxData)
}

// Unwrap returns what the API server said.
func (e *TooLargeError) Unwrap() error { return e.Err }

// Created is a revision that a parent asks for, as it is stored.
type Created struct {
	revision.Revision

	// Object is what is stored.
	Object client.Object
	// CollisionCount is the count under which it got its name.
	CollisionCount *int32
	// Existed says that it existed already: the response to an earlier request was lost. Its number may be lower than that
	// of the verdict, and its other fields may differ from this request's.
	Existed bool
}

// Create stores the parent's snapshot under the first free name, after [Log.Fence]. A name that is taken is read back:
// if it is this very snapshot of this very parent, then an earlier response was lost, and the collision count stays
// (H5). hidden is the name that the fence found so; even if another owner has that revision by now, its number counts.
// fill, if set, completes the object before it is sent.
//
// Errors: [ErrStale] (drop the pass), [*TooLargeError] (report it), or the API server's (retry).
func (l *Log) Create(
	ctx context.Context, parent client.Object, v *Verdict, count *int32, hidden string, fill func(client.Object),
) (*Created, error) {
	size := len(v.Snapshot.Data())
	if size > MaxData {
		return nil, &TooLargeError{Bytes: size}
	}
	for range maxProbes {
		o, err := l.Object(parent, v.Snapshot, count, v.Number, v.Stamp)
		if err != nil {
			return nil, err
		}
		note(o, v.Noted)
		if fill != nil {
			fill(o)
		}
		name := o.GetName()
		err = l.opts.Client.Create(ctx, o)
		switch {
		case err == nil:
			l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o)
			return &Created{Revision: l.Revision(o), Object: o, CollisionCount: count}, nil
		case tooLarge(err):
			return nil, &TooLargeError{Bytes: size, Err: err}
		case !apierrors.IsAlreadyExists(err):
			return nil, fmt.Errorf("record revision %s: %w", name, err)
		}
		mine, err := l.readBack(ctx, parent, v, name)
		if err != nil {
			return nil, err
		}
		if mine != nil {
			return &Created{Revision: l.Revision(mine), Object: mine, CollisionCount: count, Existed: true}, nil
		}
		if name == hidden {
			return nil, fmt.Errorf("%w: revision %s no longer belongs to this parent", ErrStale, name)
		}
		next := int32(1)
		if count != nil {
			next = *count + 1
		}
		count = &next
	}
	return nil, fmt.Errorf("record a revision of %s: %d names in a row are taken by other ControllerRevisions; delete those "+
		"that have no owner", l.describe(parent), maxProbes)
}

// readBack looks at the object that has the name we want. It returns nil if that belongs to another owner. An orphan
// that holds the very snapshot is adopted, as if it had been seen before: it is no reason to raise the collision count.
func (l *Log) readBack(ctx context.Context, parent client.Object, v *Verdict, name string) (client.Object, error) {
	o, err := l.get(ctx, parent, name)
	if apierrors.IsNotFound(err) {
		return nil, fmt.Errorf("record revision %s: it existed and was deleted meanwhile: %w", name, err)
	}
	if err != nil {
		return nil, fmt.Errorf("read back revision %s: %w", name, err)
	}
	if !v.heldBy(l.Revision(o)) {
		return nil, nil
	}
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	if !selector.Matches(labels.Set(o.GetLabels())) { // somebody took its labels away: no list shows it any more
		if !l.owner(parent).Controls(o) {
			return nil, nil
		}
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) // the next pass lets it go
		return nil, fmt.Errorf("%w: revision %s does not match the selector any more", ErrStale, name)
	}
	if owner := ownership.ControllerOf(o); owner == (ownership.Owner{}) {
		if o, err = l.adopt(ctx, parent, o); o == nil || err != nil {
			return nil, err
		}
	} else if owner != l.owner(parent) {
		return nil, nil
	}
	// The cache does not show it yet, or it would not have been created. Wait for it before the next pass.
	l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o)
	return o, nil
}

// tooLarge reports whether the API server, or the store behind it, refused an object for its size. The store's refusal
// has no reason of its own, only a text.
func tooLarge(err error) bool {
	return apierrors.IsRequestEntityTooLargeError(err) || err != nil && strings.Contains(err.Error(), "request is too large")
}

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
	o, err := l.patch(ctx, parent, r, c)
	if apierrors.IsInvalid(err) && c.Stamp != (revision.Stamp{}) {
		o, err = l.patchTrimmed(ctx, parent, r, c, err)
	}
	if err != nil {
		return revision.Revision{}, err
	}
	return l.Revision(o), nil
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
	delete(without, CompletedRevisionsAnnotation)
	delete(without, WasRevisionAnnotation)
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

// Delete removes exactly the revision that was read, and reports whether it did; one that does not exist is no error.
// If another writer renumbered it meanwhile, it is in use again, and stays: the error wraps [ErrStale] (drop the pass).
// Any other error is the API server's (retry).
func (l *Log) Delete(ctx context.Context, parent client.Object, r revision.Revision) (bool, error) {
	o, err := l.object(parent, r)
	if err != nil {
		return false, err
	}
	err = l.opts.Client.Delete(ctx, o, client.Preconditions{UID: &r.UID, ResourceVersion: &r.ResourceVersion})
	switch {
	case apierrors.IsNotFound(err):
		return false, nil
	case apierrors.IsConflict(err):
		return false, l.overtaken(ctx, parent, o, fmt.Errorf("delete revision %s: %w", r.Name, err))
	case err != nil:
		return false, fmt.Errorf("delete revision %s: %w", r.Name, err)
	}
	l.opts.Consistency.Deleted(parent.GetUID(), l.Resource(), o)
	return true, nil
}

// overtaken says what a conflict about a revision means: that the pass rests on a stale read, or that admission refused
// the write with that code.
func (l *Log) overtaken(ctx context.Context, parent, read client.Object, conflict error) error {
	found, changed, err := ownership.Changed(ctx, l.opts.Live, read)
	switch {
	case err != nil:
		return err
	case !changed:
		return conflict
	case found != nil:
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), found) // the next pass waits until the cache shows it
	}
	return fmt.Errorf("%w: revision %s changed before it could be deleted", ErrStale, read.GetName())
}

// object returns a stub of a revision of parent: its name, its UID and its version.
func (l *Log) object(parent client.Object, r revision.Revision) (client.Object, error) {
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	o := l.Empty()
	o.SetNamespace(namespace)
	o.SetName(r.Name)
	o.SetUID(r.UID)
	o.SetResourceVersion(r.ResourceVersion)
	return o, nil
}
