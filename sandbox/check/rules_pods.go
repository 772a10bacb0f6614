package check

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds the rules about single children: P1, P3, P4, P6.

// onePerUnit is P1: a child is made only where there is none, or, with surge, one. A child that is going still runs; it
// counts unless a surge is allowed. One that has ended holds no place.
func (s *step) onePerUnit() {
	if !s.of(s.k.Children) || s.e.Type != Added || !s.byManager() {
		return
	}
	parent := s.parent(s.after, s.e.New)
	if parent == nil {
		return
	}
	sentence := ""
	for _, version := range s.possible(parent) {
		units := s.k.Units(s.after, version)
		u, ok := unitOf(units, s.e.New)
		if !ok {
			continue
		}
		wanted, _ := s.k.wanted(units, version, s.e.New.GetCreationTimestamp().Time)
		running, most := 0, 1
		for _, child := range u.Children {
			if !s.k.Ended(child) {
				running++
			}
		}
		if s.k.Budget(version, wanted).MaxSurge > 0 {
			running, most = len(s.k.alive(u)), 2
		}
		if running <= most {
			return
		}
		sentence = u.Name
	}
	if sentence != "" {
		s.violationf("P1", "it is made at %s, where there are enough", sentence)
	}
}

// conformingStays is P3: the controllers delete no child that is as the spec asks, unless it has ended, is surplus, or
// is where none may be. Only an audited history tells whose delete it was.
func (s *step) conformingStays() {
	if !s.of(s.k.Children) || !s.h.Audited || !s.byManager() || !startsToGo(s.e) || s.k.Ended(s.e.Old) {
		return
	}
	parent := s.parent(s.before, s.e.Old)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return
	}
	from := s.k.named(s.before, s.e.Old)
	if from == nil {
		return
	}
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		if !s.k.asked(version, from) || !ok || !u.MayStay || s.surplus(u, from) {
			return
		}
	}
	s.violationf("P3", "it is deleted although it comes from %s, which is what %s asks for", from.GetName(), parent.GetName())
}

// surplus reports whether a unit holds another child of the revision than the one that was written.
func (s *step) surplus(u Unit, from client.Object) bool {
	return slices.ContainsFunc(s.k.alive(u), func(other client.Object) bool {
		return other.GetUID() != s.e.Old.GetUID() && s.k.Names(other, from)
	})
}

// content is P4: when a child is made, or is told that it came from another revision, it is what that revision asks for.
func (s *step) content() {
	if !s.of(s.k.Children) || s.e.New == nil || !s.byManager() || !s.k.Labelled(s.e.New) || s.parent(s.after, s.e.New) == nil {
		return
	}
	from := s.k.named(s.after, s.e.New)
	if s.e.Old != nil {
		if from == nil || s.k.Names(s.e.Old, from) && sameTree(s.e.Old, s.e.New, "spec") {
			return
		}
	}
	if from == nil {
		s.violationf("P4", "the revision that it says it comes from does not exist")
		return
	}
	if strays := s.k.Strays(s.e.New, from); strays != "" {
		s.violationf("P4", "it says that it comes from %s, but %s", from.GetName(), strays)
	}
}

// precondition is P6: a delete by the controllers names the UID. Only an audited history tells.
func (s *step) precondition() {
	if s.of(s.k.Children) && s.h.Audited && s.byManager() && startsToGo(s.e) && !s.e.By.Unread && s.e.By.Precondition == "" {
		s.violationf("P6", "it is deleted by name only")
	}
}
