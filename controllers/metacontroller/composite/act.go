package composite

import (
	"context"

	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file carries a plan out. The writes themselves are in package children.

// actor writes the children of parents.
type actor struct {
	*settings

	keeper *children.Keeper
}

// act carries a plan out: deletes, updates and creates, by slow start. One of the errors it returns may be
// [pass.IsStale]: then the plan rests on a stale read.
func (r *actor) act(ctx context.Context, o *gathered, d *decision) error {
	var w children.Work
	for _, c := range d.plan.creates {
		w.Creates = append(w.Creates, children.Creation{Desired: c.object, Reason: c.reason})
	}
	for _, u := range d.plan.updates {
		wish := children.Pair{Variant: variant(u.newest), Observed: u.observed, Desired: u.object}
		w.Updates = append(w.Updates, children.Update{Pair: wish, Reason: u.reason})
	}
	for _, gone := range d.plan.deletes {
		w.Deletes = append(w.Deletes, children.Deletion{Observed: gone.observed, Instead: gone.instead, Reason: gone.reason})
	}
	return r.childrenOf(o.parent, r.keeper).Act(ctx, w)
}
