package inspect

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect/object"
)

// This file finds the last good revision: by what was noted, and by which children serve now.

// PlanUndoLastGood is [Inspector.PlanUndo] to the newest revision that is not equivalent to the spec and is known to be
// good: its controller has observed it ([Entry.Good]), or it has children, and all of them have been available for a
// while at now. The error is a [*NeverCompleteError] if there is none.
func (i *Inspector) PlanUndoLastGood(ctx context.Context, parent client.Object, now time.Time) (*Undo, error) {
	return i.planned(ctx, parent, nil, func(r *Log) (func(Entry) bool, error) {
		serving, err := r.serving(ctx, now)
		return func(e Entry) bool { return e.Good || serving.Has(e.UID) }, err
	})
}

// goodAfter is how long the children of a revision have to be available at least.
const goodAfter = 30 * time.Second

// serving returns the revisions that have children, all of which have been available for a while.
func (r *Log) serving(ctx context.Context, now time.Time) (sets.Set[types.UID], error) {
	m, err := r.Kind.Members(ctx, r.Parent, r.Revisions)
	if err != nil {
		return nil, fmt.Errorf("find the %s of %s: %w", r.Children, object.ParentOf(r.Kind, r.Parent), err)
	}
	good, bad := sets.New[types.UID](), sets.New[types.UID]()
	for _, child := range m.Children {
		switch {
		case child.Of < 0:
		case child.Object != nil && child.Object.GetDeletionTimestamp() != nil: // it is being replaced
		case child.Available(goodAfter, now):
			good.Insert(r.Revisions[child.Of].UID)
		default:
			bad.Insert(r.Revisions[child.Of].UID)
		}
	}
	return good.Difference(bad), nil
}

// lastGood finds the newest revision that passes the test that eligible makes, and differs from the spec.
func (r *Log) lastGood(h *History, eligible func(*Log) (func(Entry) bool, error), same func(Entry) (bool, error)) (*Entry, error) {
	good, err := eligible(r)
	if err != nil {
		return nil, err
	}
	to, err := previous(h.only(good), same)
	if errors.Is(err, ErrNothingToUndo) {
		return nil, &NeverCompleteError{Parent: h.Parent}
	}
	return to, err
}
