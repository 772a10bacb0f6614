package builder

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds all writes to children but the claims to them and their labels, which are package pass's.

// act carries a plan out: creates, then deletes, both slowly at first. It returns all errors, joined. One that is
// [pass.IsStale] says that another plan is to be made.
func (r *reconciler[P]) act(ctx context.Context, p *pass.Pass, plan *plan) error {
	created := pass.SlowStart(p, pass.Writes[creation]{
		Items: plan.Creates,
		Do:    func(c creation) error { return r.create(ctx, p, c) },
		Name:  func(c creation) string { return describe(r.kinds[c.rule], c.object) },
		Still: p.Unedited(ctx),
	})
	if pass.IsStale(created) {
		return created
	}
	applied := pass.SlowStart(p, pass.Writes[application]{
		Items: plan.applies,
		Do:    func(a application) error { return r.apply(ctx, p, a) },
		Name:  func(a application) string { return describe(r.kinds[a.rule], a.desired) },
	})
	if pass.IsStale(applied) {
		return applied
	}
	return errors.Join(created, applied, pass.SlowStart(p, pass.Writes[deletion]{
		Items: plan.Deletes,
		Do:    func(d deletion) error { return r.remove(ctx, p, plan.from.update, d) },
		Name:  func(d deletion) string { return describe(r.kinds[d.child.rule], d.child.object) },
	}))
}

// remove deletes one child of a parent that asks for a revision.
func (r *reconciler[P]) remove(ctx context.Context, p *pass.Pass, update string, d deletion) error {
	if d.failed {
		p.Replaced(update, placeOf(d.child.object))
	}
	return r.children[d.child.rule].Remove(ctx, p, d.child.object, d.reason)
}

// completed returns a copy of what is to be created, with all that the author leaves out.
func (r *reconciler[P]) completed(p *pass.Pass, c creation) client.Object {
	if k := r.kinds[c.rule]; k.applied || k.named {
		return c.object.DeepCopyObject().(client.Object)
	}
	return r.made(p.Parent.(P), want{c.rule, c.object}, c.revision)
}

// try asks whether admission would alter a child of the update revision in the place of a suspect.
func (r *reconciler[P]) try(ctx context.Context, p *pass.Pass, plan *plan, suspect client.Object) (bool, error) {
	c, found := plan.replacement(suspect)
	if !found {
		return false, nil
	}
	child := r.completed(p, c)
	child.SetName("")
	child.SetGenerateName(c.object.GetName() + "-")
	return true, r.children[c.rule].Trial(ctx, p, suspect, child, func(made client.Object) error { return r.unaltered(p, c, made) })
}

// replacement is what the plan, or a later one, creates in the place of a child.
func (p *plan) replacement(of client.Object) (creation, bool) {
	for _, at := range p.from.places {
		is := func(c *owned) bool { return c.object.GetUID() == of.GetUID() }
		if at.update != nil && p.from.update != "" && slices.ContainsFunc(at.children, is) {
			return creation{at.update, at.rule, p.from.update, ""}, true
		}
	}
	return creation{}, false
}

// unaltered returns an error if admission has made something else of a child, by which it would not be known again.
func (r *reconciler[P]) unaltered(p *pass.Pass, c creation, made client.Object) error {
	selector, err := r.selector(p.Parent)
	if err != nil {
		return err
	}
	wanted := map[string]string{}
	if c.revision != "" {
		wanted[HashLabel] = c.revision
	}
	if r.kinds[c.rule].named && made.GetAnnotations()[PlaceAnnotation] == "" {
		return &pass.AlteredError{What: "annotation " + PlaceAnnotation + " is missing", Lost: true}
	}
	return p.Unaltered(made, selector, wanted)
}

// create makes one child.
func (r *reconciler[P]) create(ctx context.Context, p *pass.Pass, c creation) error {
	object := r.completed(p, c)
	name := describe(r.kinds[c.rule], object)
	how, err := r.children[c.rule].Make(ctx, p, name, object, func(found client.Object) bool {
		return found.GetLabels()[HashLabel] == c.revision && placeOf(found) == placeOf(object)
	}, func(made client.Object) error { return r.unaltered(p, c, made) })
	switch err = pass.AsNamespaceTerminating(err); {
	case pass.IsStale(err):
		return err
	case err != nil:
		p.Warn(nil, "FailedCreate", "Create", "Error creating %s: %v", name, err)
		return fmt.Errorf("create %s: %w", name, err)
	case how == ownership.Taken:
		p.RequeueAfter(pass.TakenRetry)
		p.Warn(nil, "ChildExists", "Create", "%s exists and does not belong to this %s; it is created once that one is deleted",
			name, r.parent.Kind)
	case how == ownership.Created:
		kind := strings.ToLower(r.kinds[c.rule].gvk.Kind)
		p.Normal(object, "SuccessfulCreate", "Create", "Created %s: %s (%s)", kind, object.GetName(), c.reason)
	}
	return nil
}
