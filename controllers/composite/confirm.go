package composite

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/labels"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file makes sure that a process that just started, or that does not know what became of its last write, does not act
// on the past.

// confirm checks, before the first write of this process for a parent, that the cache is not behind the API server, and so
// again after an answer was lost. Whether the parent still asks for what is about to become its newest revision it asks
// each time (H7). It returns an error that wraps ownership.ErrStale if the cache is behind.
func (r *reconciler) confirm(ctx context.Context, o *observed, d *decision) error {
	if !d.writes() || o.parent.GetDeletionTimestamp() != nil {
		return nil // whoever is going keeps nothing that could be lost
	}
	if !o.memory.confirmed || d.promotes() {
		if err := r.confirmParent(ctx, o); err != nil {
			return err
		}
	}
	// What is gone from a revision rests on all of them, and so does a number: another process may have given it a moment
	// ago, so that they are listed for each. Of a parent that was never edited there can be one only, of the name that is
	// about to be made.
	numbers := d.promotes() && o.parent.GetGeneration() != 1
	if numbers {
		r.freshRevisions.Forget(o.parent.GetUID())
	}
	if numbers || d.plan.replaces() {
		if err := r.confirmRevisions(ctx, o); err != nil {
			return err
		}
	}
	if !d.plan.replaces() {
		return nil // names of children follow from the hook's answer, so that what is made twice exists already
	}
	for _, group := range o.groups {
		kind := group.GroupKind()
		if !d.plan.touches(kind) {
			continue
		}
		if err := confirmAll(ctx, o, r.fresh[kind], o.selector, o.parent.GetNamespace(), group.Objects); err != nil {
			return err
		}
	}
	return nil
}

func (r *reconciler) confirmParent(ctx context.Context, o *observed) error {
	fresh, err := ownership.Reread(ctx, r.live, o.parent)
	if err != nil {
		return err
	}
	if fresh.GetGeneration() != o.parent.GetGeneration() {
		r.ledger.Wrote(o.parent.GetUID(), r.parent.Resource.GroupResource(), fresh) // until then there is no point in asking again
		return fmt.Errorf("%w: it shows generation %d of %s, and there is %d",
			ownership.ErrStale, o.parent.GetGeneration(), anyobject.Describe(o.parent), fresh.GetGeneration())
	}
	o.memory.confirmed = true
	return nil
}

func (r *reconciler) confirmRevisions(ctx context.Context, o *observed) error {
	if o.log == nil {
		return nil
	}
	selector, err := r.format.Selector(o.parent)
	if err != nil {
		return err
	}
	stored := make([]*v1alpha1.ControllerRevision, len(o.log.entries))
	for i, e := range o.log.entries {
		stored[i] = e.object
	}
	return confirmAll(ctx, o, r.freshRevisions, selector, o.log.namespace, stored)
}

// confirmAll confirms the cached objects of one kind.
func confirmAll[T client.Object](
	ctx context.Context, o *observed, fresh *ownership.Confirmer, selector labels.Selector, namespace string, cached []T,
) error {
	objects := make([]client.Object, len(cached))
	for i, c := range cached {
		objects[i] = c
	}
	why, err := fresh.ConfirmIn(ctx, namespace, o.parent, selector, objects)
	if err == nil && why != "" {
		err = fmt.Errorf("%w: %s", ownership.ErrStale, why)
	}
	return err
}
