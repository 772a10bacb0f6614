package check

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is P5 for kinds whose status names no current revision: which revision a lost child may come from is seen
// from the children that are there.

// comesBack is P5: a child that is made where there is none comes from what the parent asks for only while fewer of
// those children do not serve than the budget allows, and not where it is held back, as long as others come from
// another revision.
func (s *step) comesBack() {
	parent := s.made()
	if parent == nil || !s.k.Returns {
		return
	}
	from := s.k.named(s.after, s.e.New)
	if from == nil || slices.ContainsFunc(s.before.Owned(s.k.Revisions, parent.GetUID()), func(r client.Object) bool {
		return r.GetUID() != from.GetUID() && (s.k.same(r, from) || s.k.Number(r) > s.k.Number(from))
	}) {
		return // it is not recorded yet that the parent asks for it, or of two that hold the same nobody knows which stays
	}
	sentence := ""
	for world := range s.worlds(parent.GetUID(), false) {
		for _, version := range s.possible(parent) {
			if sentence = s.reaches(world, version, from); sentence == "" {
				return
			}
		}
	}
	if sentence != "" {
		s.violationf("P5", "it comes from %s, %s: it is to come back as it was", from.GetName(), sentence)
	}
}

// reaches says why the rollout may not go where the child was made, "" if it may, or if nothing says what was there.
func (s *step) reaches(world *State, parent, from client.Object) string {
	if !s.k.asked(parent, from) {
		return ""
	}
	units := s.k.Units(s.after, parent)
	at, ok := unitOf(units, s.e.New)
	if !ok || !at.Wanted {
		return ""
	}
	units = s.k.Units(world, parent)
	bad, older := 0, false
	for _, u := range units {
		children := s.k.alive(u)
		if u.Name == at.Name {
			if slices.ContainsFunc(u.Children, func(child client.Object) bool { return child.GetDeletionTimestamp() == nil }) {
				return "" // it is a surge, also beside one that has ended, or another manager was first
			}
			continue
		}
		updated := slices.ContainsFunc(children, func(child client.Object) bool { return s.k.Names(child, from) })
		if updated && u.Wanted && !s.k.serves(u, parent, nil, time.Time{}) {
			bad++
		}
		older = older || slices.ContainsFunc(children, func(child client.Object) bool { return s.comesFromAnother(parent, child, from) })
	}
	wanted, _ := s.k.wanted(units, parent, s.e.New.GetCreationTimestamp().Time)
	switch most := s.k.Budget(parent, wanted).MaxUnavailable; {
	case !older:
		return ""
	case at.Guarded:
		return "which is held back"
	case bad >= most:
		return "of which enough children do not serve"
	}
	return ""
}

// comesFromAnother reports whether a child comes from a revision of the parent other than that one, which its author
// can read.
func (s *step) comesFromAnother(parent, child, from client.Object) bool {
	revision := s.k.named(s.before, child)
	if revision == nil || revision.GetUID() == from.GetUID() || s.k.same(revision, from) || revision.GetDeletionTimestamp() != nil {
		return false
	}
	if _, err := s.k.Snapshot(revision); err != nil {
		return false
	}
	then := s.record.at(revision.GetUID(), s.since(s.k.Revisions, parent.GetUID()))
	return then != nil && ownerUID(then) == parent.GetUID()
}
