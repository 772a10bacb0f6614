package history

import (
	"context"
	"fmt"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/revision"
)

// This file stores a new revision under a free name, and finds it again if the response was lost.

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
		if !metav1.IsControlledBy(o, parent) {
			return nil, nil
		}
		l.opts.Consistency.WroteAt(parent.GetUID(), l.Resource(), o) // the next pass lets it go
		return nil, fmt.Errorf("%w: revision %s does not match the selector any more", ErrStale, name)
	}
	if ref := metav1.GetControllerOfNoCopy(o); ref == nil {
		if o, err = l.adopt(ctx, parent, o); o == nil || err != nil {
			return nil, err
		}
	} else if ref.UID != parent.GetUID() {
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
