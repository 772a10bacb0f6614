package check

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds two rules. R3: units are filled in their order, and updated and emptied in the opposite one. R5:
// where children of two revisions never exist at the same time, none is created before the last old one is deleted.

// filled is R3 for children that are made: every unit before the one where it is made serves.
func (s *step) filled() {
	parent := s.made()
	if parent == nil || s.k.Ordered == nil {
		return
	}
	when := s.e.New.GetCreationTimestamp().Add(time.Second) // timestamps are cut to seconds
	blocked := ""
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.after, version), s.e.New)
		if !ok || !u.Wanted {
			continue // this is P2
		}
		if !s.k.Ordered(version) || s.ever(parent, func(world *State) bool {
			return s.k.firstIdle(s.fillable(world, version, u.Name), version, when) == u.Name
		}) {
			return
		}
		blocked = s.k.firstIdle(s.fillable(s.before, version, u.Name), version, when)
	}
	if blocked != "" {
		s.violationf("R3", "it is made although %s, which comes before it, does not serve", blocked)
	}
}

// outdated reports whether a deleted child comes from another revision than its parent asks for, or from a revision
// that its parent has released.
func (s *step) outdated(parent client.Object, u Unit) bool {
	return s.lags(s.before, parent, u) || s.k.named(s.before, s.e.Old) == nil
}

// fillable returns the units of a parent without those that may never be filled, because their revision is lost. No
// other unit waits for them. The unit that is made stays in the list.
func (s *step) fillable(world *State, parent client.Object, made string) []Unit {
	lost := len(s.lostByOthers(parent.GetUID())) > 0
	return slices.DeleteFunc(s.k.Units(world, parent), func(u Unit) bool {
		return lost && u.Guarded && len(u.Children) == 0 && u.Name != made
	})
}

// firstIdle returns the first wanted unit where nothing serves, "" if there is none. Whoever makes a child has seen
// that there is none.
func (k Kind) firstIdle(units []Unit, parent client.Object, when time.Time) string {
	for _, u := range units {
		if u.Wanted && !k.serves(u, parent, nil, when) {
			return u.Name
		}
	}
	return ""
}

// emptied is R3 for children that are deleted. One that serves is updated only after all behind it have been; one that
// does not serve may be repaired at any time, but not while it is only starting. One that is not asked for goes only
// after all behind it are gone, and while all others serve.
func (s *step) emptied() {
	parent := s.dismissed()
	if parent == nil || s.k.Ordered == nil {
		return
	}
	first, starts := "", false
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		switch {
		case !ok || !s.k.Ordered(version), s.k.alone(version) && s.outdated(version, u):
			return
		case u.Wanted && !s.k.Available(s.e.Old, version, s.decidedAt()):
			if starts = s.k.starting(s.e.Old, version); !starts {
				return
			}
			continue
		case u.Wanted && !s.lags(s.before, version, u):
			continue // this is P3
		}
		if s.ever(parent, func(world *State) bool {
			first = s.obstacle(world, version, u)
			return first == ""
		}) {
			return
		}
	}
	if starts {
		s.violationf("R3", "it is deleted while it is starting")
	}
	if first != "" {
		s.violationf("R3", "it is deleted before %s, which comes first or does not serve", first)
	}
}

// starting reports whether a child does not serve yet only because it was made a moment ago, where the kind can tell.
func (k Kind) starting(child, parent client.Object) bool {
	return k.Starting != nil && k.Starting(child, parent)
}

// halts returns a unit for which the one that goes has to wait, "" if there is none: one that is wanted and does not
// serve or, if the one that goes does not serve either, one before it that is not wanted. Units are in their order.
func (k Kind) halts(units []Unit, parent client.Object, goes string, at time.Time) string {
	before := "" // the first one that is left and does not serve
	for _, u := range units {
		serves := k.serves(u, parent, nil, at)
		switch {
		case u.Name == goes && !serves && before != "":
			return before
		case u.Name == goes || serves:
		case u.Wanted:
			return u.Name
		case len(k.alive(u)) > 0 && before == "":
			before = u.Name
		}
	}
	return ""
}

// obstacle returns the unit behind one that has to go before it, "" if there is none.
func (s *step) obstacle(world *State, parent client.Object, u Unit) string {
	units := s.fillable(world, parent, u.Name)
	if !u.Wanted {
		if weak := s.k.halts(units, parent, u.Name, deletedAt(s.e)); weak != "" {
			return weak
		}
	}
	for _, other := range slices.Backward(units) {
		switch {
		case other.Name == u.Name:
			return ""
		case !u.Wanted && !other.Wanted && len(other.Children) > 0:
			return other.Name
		case u.Wanted && other.Wanted && !other.Guarded && s.lags(world, parent, other):
			return other.Name
		}
	}
	return ""
}

// lags reports whether a unit still has a child that does not come from what the parent asks for and is not going: how
// many may be gone at once is R1. That somebody has just deleted the revision of a child its author need not know, and
// what nobody can read any more is what its stamp says.
func (s *step) lags(world *State, parent client.Object, u Unit) bool {
	return slices.ContainsFunc(s.k.alive(u), func(child client.Object) bool {
		if from := s.k.named(world, child); from != nil {
			return !s.k.asked(parent, from) && !s.k.stamped(parent, from)
		}
		return !slices.ContainsFunc(s.left(parent.GetUID()), func(r client.Object) bool {
			return s.k.Names(child, r) && s.k.asked(parent, r)
		})
	})
}

// alone reports whether children of two revisions are never there at the same time.
func (k Kind) alone(parent client.Object) bool { return k.Alone != nil && k.Alone(parent) }

// beforeOthersEnd is R5 for children that are created.
func (s *step) beforeOthersEnd() {
	parent := s.made()
	if parent == nil {
		return
	}
	other := ""
	for _, version := range s.possible(parent) {
		if !s.k.alone(version) || s.ever(parent, func(world *State) bool {
			other = s.ofAnotherRevision(world, version)
			return other == ""
		}) {
			return
		}
	}
	if other != "" {
		s.violationf("R5", "it is created while %s of another revision exists", other)
	}
}

// ofAnotherRevision returns the name of a child that comes from another revision than the created child. It returns an
// empty string if there is none. A child that admission altered does not count: its label names no revision.
func (s *step) ofAnotherRevision(world *State, parent client.Object) string {
	from := s.k.named(s.after, s.e.New)
	if from == nil {
		return ""
	}
	for _, u := range s.k.Units(world, parent) {
		for _, child := range u.Children {
			names := func(r client.Object) bool { return s.k.Names(child, r) }
			if !names(from) && (s.k.named(world, child) != nil || slices.ContainsFunc(s.left(parent.GetUID()), names)) {
				return child.GetName()
			}
		}
	}
	return ""
}
