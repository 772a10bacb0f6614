package decorator

import (
	"context"
	"errors"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/children"
)

// This file compares attachments with their desired state. It is part of the reads of a pass. How to compare is in
// package children.

// attachmentsOf returns what a pass over an object works with.
func (r *Reconciler) attachmentsOf(o *observed) *children.Pass {
	return r.keeper.Of(r.names(o.object), o.resource.Kind)
}

// compare says what applying each of the wishes would do, by the attachment's key. An attachment that cannot be
// compared stays as it is, and the second error says so: see [children.HeldError]. The first one ends the pass.
func (r *Reconciler) compare(
	ctx context.Context, o *observed, wishes []children.Pair,
) (applied map[key]apply.Result, compareErr, err error) {
	pass := r.attachmentsOf(o)
	var doubts []children.Pair
	for _, w := range wishes {
		// In place, a patch that changes nothing costs one request as well, and its answer removes the doubt.
		if pass.Compare(w).Is == children.Doubt && (!w.InPlace || r.keeper.Applies()) {
			doubts = append(doubts, w)
		}
	}
	if err := pass.Ask(ctx, doubts); err != nil {
		return nil, nil, err
	}
	applied = make(map[key]apply.Result, len(wishes))
	var whys []error
	for _, w := range wishes {
		v := pass.Compare(w)
		if v.Is == children.Unknown {
			whys = append(whys, v.Why)
			continue
		}
		applied[keyOf(w.Desired)] = v.Result
	}
	return applied, errors.Join(whys...), nil
}
