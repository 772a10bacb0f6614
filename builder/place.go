package builder

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/revision"
)

// This file says at which place a child is, what the child of a place is called, and whether that name is free.

// PlaceAnnotation is the annotation of a child whose kind is [Rule.NamedByRevision]: the name that the author gave to
// its place. It is never parsed from the child's name, which need not show it.
const PlaceAnnotation = "cairn.dev/place"

// placeOf returns the place of a child. One without the annotation is at the place of its own name: so is every child
// of a kind that was not named by revision when it was created, and nothing is deleted because its author has changed
// that.
func placeOf(child client.Object) string {
	if place := child.GetAnnotations()[PlaceAnnotation]; place != "" {
		return place
	}
	return child.GetName()
}

// nameAt returns the name of the child of a revision at a place. A place whose name is too long for that is cut, and
// its hash keeps it apart from others that begin alike.
func nameAt(place, hash string) string {
	const longest = 253
	if len(place)+1+len(hash) <= longest {
		return place + "-" + hash
	}
	hash = revision.Hash([]byte(place), nil) + "-" + hash
	return strings.TrimRight(place[:longest-1-len(hash)], ".-") + "-" + hash
}

// sort sorts the children into the places that are wanted, and what is not wanted.
func (r *reconciler[P]) sort(o *observed, parent P, f *facts, update, older []want) {
	wanted, order := make(map[position]*place, len(update)), make([]*place, 0, len(update))
	applied := map[position]int{}
	add := func(wants []want, set func(*place, client.Object), hash string, extend bool) {
		for _, w := range wants {
			key := position{w.rule, w.object.GetName()}
			if r.kinds[w.rule].applied {
				if extend {
					applied[key] = len(f.applied)
					f.applied = append(f.applied, application{rule: w.rule, desired: r.made(parent, w, "")})
				}
				continue
			}
			if wanted[key] == nil {
				if !extend {
					continue
				}
				wanted[key] = &place{rule: w.rule, name: key.name, key: r.keyOf(w), named: r.kinds[w.rule].named}
				order = append(order, wanted[key])
			}
			set(wanted[key], r.named(parent, w, hash))
		}
	}
	add(update, func(p *place, o client.Object) { p.update = o }, f.update, true)
	add(older, func(p *place, o client.Object) { p.older = o }, f.older, f.update == "")
	for rule, children := range o.children {
		for _, child := range children {
			c := o.paused(f.update, r.judge(rule, child, parent, o.now))
			i, apply := applied[position{rule, child.GetName()}]
			switch p := wanted[position{rule, placeOf(child)}]; {
			case p != nil:
				p.children = append(p.children, &c)
			case apply:
				f.applied[i].child = &c
				f.applied[i].same = r.applied.same(child, f.applied[i].desired)
			default:
				f.surplus = append(f.surplus, c)
			}
		}
	}
	f.places = make([]place, 0, len(order))
	for _, p := range order {
		f.places = append(f.places, *p)
	}
	f.unproven = slices.ContainsFunc(r.kinds, func(k childKind) bool { return k.checked }) &&
		!slices.ContainsFunc(f.places, func(p place) bool { return r.kinds[p.rule].checked })
}

// paused adds for how long a child that has failed stays: the next one there comes from update.
func (o *observed) paused(update string, c owned) owned {
	if c.failed {
		c.pause = o.pause(update, placeOf(c.object)).Length
	}
	return c
}

// named returns what is wanted as a plan needs it. Where a name is decided on, that is the whole child; others are
// completed when they are created, so that a pass which creates nothing copies nothing.
func (r *reconciler[P]) named(parent P, w want, hash string) client.Object {
	if r.kinds[w.rule].named {
		return r.made(parent, w, hash)
	}
	return w.object
}

// keyOf names a place in conditions: two kinds may have places of one name.
func (r *reconciler[P]) keyOf(w want) string {
	if len(r.rolled) > 1 {
		return describe(r.kinds[w.rule], w.object)
	}
	return w.object.GetName()
}

// conflicting finds out which names of new children are not free: what belongs to others has them, as the cache shows,
// or a child of our own that is terminating.
func (r *reconciler[P]) conflicting(ctx context.Context, namespace string, f *facts) error {
	for i := range f.places {
		p := &f.places[i]
		for _, wanted := range p.missing(f.strategy, f.update) {
			if err := r.free(ctx, namespace, p, wanted); err != nil {
				return err
			}
		}
	}
	for i := range f.applied {
		a := &f.applied[i]
		if a.child != nil {
			continue
		}
		found, err := r.exists(ctx, namespace, a.desired)
		if err != nil {
			return err
		}
		a.taken = found
	}
	return nil
}

// missing are the children that a plan may create at a place.
func (p *place) missing(s Strategy, update string) []client.Object {
	alive, updated := 0, 0
	for _, c := range p.children {
		switch {
		case c.terminating:
		case c.revision == update:
			updated++
			fallthrough
		default:
			alive++
		}
	}
	var out []client.Object
	empty := len(p.children) == 0 || p.named && alive == 0
	if p.update != nil && (empty || s.MaxSurge > 0 && updated == 0) {
		out = append(out, p.update)
	}
	if p.older != nil && empty && (p.named || p.update == nil) { // otherwise both have the same name
		out = append(out, p.older)
	}
	return out
}

// free notes whether a new child of a place can have its name. If another child there has it, which was created for a
// revision that is a duplicate and was relabelled since, the new one gets another name, which follows from that child.
func (r *reconciler[P]) free(ctx context.Context, namespace string, p *place, wanted client.Object) error {
	for _, c := range p.children {
		switch {
		case c.object.GetName() != wanted.GetName():
		case c.terminating:
			p.takenBy(wanted, "it is terminating, and its name is needed for its replacement")
			return nil
		case c.revision != wanted.GetLabels()[HashLabel]:
			wanted.SetName(nameAt(wanted.GetName(), revision.Hash([]byte(c.object.GetUID()), nil)))
		}
	}
	found, err := r.exists(ctx, namespace, wanted)
	if found && err == nil {
		p.takenBy(wanted, foreign)
	}
	return err
}

func (p *place) takenBy(wanted client.Object, why string) {
	if p.taken == nil {
		p.taken = map[string]string{}
	}
	p.taken[wanted.GetName()] = why
}

// exists reports whether the cache shows an object of that name.
func (r *reconciler[P]) exists(ctx context.Context, namespace string, o client.Object) (bool, error) {
	err := r.Cache.Get(ctx, client.ObjectKey{Namespace: namespace, Name: o.GetName()}, anyobject.Blank(o))
	if err != nil {
		return false, client.IgnoreNotFound(err)
	}
	return true, nil
}

// placed is how a child that the author wants is called and marked, if its kind is named by revision.
func (k childKind) placed(o client.Object, hash string) {
	annotations := map[string]string{}
	for key, value := range o.GetAnnotations() {
		if key != PlaceAnnotation { // the author may have copied another child
			annotations[key] = value
		}
	}
	if k.named && hash != "" {
		annotations[PlaceAnnotation] = o.GetName()
		o.SetName(nameAt(o.GetName(), hash))
	}
	if len(annotations) > 0 || len(o.GetAnnotations()) > 0 {
		o.SetAnnotations(annotations)
	}
}

// adoptable reports why an orphan is not adopted: nothing is but what is at a place that the parent wants. Whatever
// else has its labels would be deleted as soon as it was adopted.
func (r *reconciler[P]) adoptable(parent client.Object, rule int, orphan client.Object) error {
	wanted, err := r.wantedOf(parent.(P))
	if err != nil {
		return err
	}
	place := orphan.GetName()
	if k := r.kinds[rule]; k.named {
		// The place of a child that was never ours may have another one: nothing but its name would be said about it.
		if place = orphan.GetAnnotations()[PlaceAnnotation]; place == "" {
			return fmt.Errorf("it has no annotation %s", PlaceAnnotation)
		}
	}
	for _, w := range wanted {
		if w.rule == rule && w.object.GetName() == place {
			return nil
		}
	}
	return fmt.Errorf("the parent wants no %s of that name", r.kinds[rule].gvk.Kind)
}
