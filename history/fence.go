package history

import (
	"context"
	"errors"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads past every cache: what a write of the log rests on.

// Fence checks past every cache what a new number rests on: that the parent is still as it was read (H7), and that the
// number is new, because one that was counted from an old list would be given twice (H2, kubernetes#80698). It asks twice. The
// revision that is to be written is left to [Log.Create], and its name returned: it may be there because a response was lost.
// Errors: [ErrStale] (drop the pass), or the API server's (retry).
func (l *Log) Fence(ctx context.Context, parent client.Object, v *Verdict, collisionCount *int32) (hidden string, err error) {
	if err := l.confirm(ctx, parent); err != nil {
		return "", err
	}
	stored, err := l.stored(ctx, parent)
	if err != nil {
		return "", err
	}
	var wanted string
	if v.Update != nil {
		wanted = v.Update.Name
	} else {
		wanted = l.Name(parent, v.Snapshot, collisionCount)
	}
	for _, o := range stored {
		r := l.Revision(o)
		if r.Number < v.Number {
			continue
		}
		if r.Name != wanted || !v.heldBy(r) {
			l.opts.Wrote(parent.GetUID(), o) // until the cache shows it there is no point in asking again
			return "", fmt.Errorf("%w: revision %s has number %d already, and the cache does not show it", ErrStale, r.Name, r.Number)
		}
		hidden = r.Name
	}
	return hidden, nil
}

// heldBy reports whether a revision holds what the parent asks for, and is there to stay.
func (v *Verdict) heldBy(r revision.Revision) bool {
	return !r.Deleting && r.Snapshot != nil && revision.Compare(v.Snapshot, r.Snapshot) != revision.RuleNone
}

// Complete checks, past every cache, that entries are all revisions of parent, and costs a request. The error wraps [ErrStale] if
// there is one more: drop the pass.
func (l *Log) Complete(ctx context.Context, parent client.Object, entries []revision.Revision) error {
	stored, err := l.stored(ctx, parent)
	if err != nil {
		return err
	}
	for _, o := range stored {
		if !slices.ContainsFunc(entries, func(r revision.Revision) bool { return r.UID == o.GetUID() }) {
			l.opts.Wrote(parent.GetUID(), o) // until the cache shows it there is no point in asking again
			return fmt.Errorf("%w: it does not show revision %s", ErrStale, o.GetName())
		}
	}
	return nil
}

// Stays checks past the cache that a revision is still what was read whose duplicate is about to go: with both, what the
// children came from would be lost. One whose labels somebody takes away is soon let go of. Errors: [ErrStale] (drop the pass),
// or the API server's (retry).
func (l *Log) Stays(ctx context.Context, parent client.Object, r revision.Revision) error {
	o, err := l.get(ctx, parent, r.Name)
	switch {
	case apierrors.IsNotFound(err):
		return fmt.Errorf("%w: revision %s is gone, and the cache does not show it", ErrStale, r.Name)
	case err != nil:
		return fmt.Errorf("read revision %s past the cache: %w", r.Name, err)
	case o.GetUID() != r.UID || o.GetResourceVersion() != r.ResourceVersion:
		l.opts.Wrote(parent.GetUID(), o) // until the cache shows it there is no point in asking again
		return fmt.Errorf("%w: revision %s has changed, and the cache does not show it", ErrStale, r.Name)
	}
	return nil
}

// confirm checks past every cache that parent, as read, is still what the API server has.
func (l *Log) confirm(ctx context.Context, parent client.Object) error {
	fresh, err := ownership.Reread(ctx, l.opts.Live, parent)
	if errors.Is(err, ownership.ErrGone) {
		return fmt.Errorf("%w: %w", ErrStale, err)
	}
	if err != nil {
		return err
	}
	if fresh.GetGeneration() != parent.GetGeneration() {
		return fmt.Errorf("%w: it is at generation %d, not %d", ErrStale, fresh.GetGeneration(), parent.GetGeneration())
	}
	return nil
}

// stored lists the revisions that parent owns past every cache.
func (l *Log) stored(ctx context.Context, parent client.Object) ([]client.Object, error) {
	selector, err := l.Selector(parent)
	if err != nil {
		return nil, err
	}
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	list := l.EmptyList()
	err = l.opts.Live.List(ctx, list, client.InNamespace(namespace), client.MatchingLabelsSelector{Selector: selector})
	if err != nil {
		return nil, fmt.Errorf("list the revisions of %s past the cache: %w", l.describe(parent), err)
	}
	var out []client.Object
	err = meta.EachListItem(list, func(item runtime.Object) error {
		if o := item.(client.Object); metav1.IsControlledBy(o, parent) { //nolint:forcetypeassert // items of an ObjectList are Objects
			out = append(out, o)
		}
		return nil
	})
	return out, err
}

// get reads one revision past every cache.
func (l *Log) get(ctx context.Context, parent client.Object, name string) (client.Object, error) {
	namespace, err := l.Namespace(parent)
	if err != nil {
		return nil, err
	}
	o := l.Empty()
	return o, l.opts.Live.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, o)
}
