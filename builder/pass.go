package builder

import (
	"context"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
)

// This file is one pass, from the parent to the report. setup.go wires it to a manager; package pass begins and ends
// it.

// pass is one pass over a parent that exists.
func (r *reconciler[P]) pass(ctx context.Context, p *pass.Pass) error {
	parent := p.Parent.(P)
	o, err := r.gather(ctx, p, parent)
	if err != nil {
		return err
	}
	return r.row(ctx, p, o).Run(ctx, p)
}

// row returns the steps that follow the reads.
func (r *reconciler[P]) row(ctx context.Context, p *pass.Pass, o *observed) pass.Row[*plan] {
	return pass.Row[*plan]{
		Log: r.log, Entries: o.entries, Limit: r.limit(o.parent.(P)), Children: o.families,
		Plan: func(recorded *pass.Recorded, altered pass.Altered) (*plan, error) {
			f, err := r.facts(ctx, o, recorded)
			if err != nil {
				return nil, err
			}
			f.altered = altered
			return makePlan(f), nil
		},
		Try: func(ctx context.Context, plan *plan, suspect client.Object) (bool, error) {
			return r.try(ctx, p, plan, suspect)
		},
		Act: func(ctx context.Context, plan *plan) error { return r.act(ctx, p, plan) },
		Report: func(ctx context.Context, recorded *pass.Recorded, plan *plan, failed error) ([]string, bool, error) {
			rep := report{strategy: o.strategy, plan: plan, recorded: recorded, failed: failed}
			if rep.complete() {
				r.answers.forget(p.Parent.GetUID()) // it costs memory, and there is nothing to do
			}
			stored, err := r.report(ctx, p, o.parent.(P), rep)
			return append(plan.sources(), plan.from.update), stored, err
		},
	}
}

// limit is how many revisions are kept.
func (r *reconciler[P]) limit(parent P) *int32 {
	if r.author.Limit == nil {
		return nil
	}
	return new(r.author.Limit(parent))
}

// describe names a child in events and errors.
func describe(k childKind, o client.Object) string { return k.gvk.Kind + " " + o.GetName() }
