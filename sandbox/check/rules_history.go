package check

import (
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
)

// This file holds the rules about revisions that hold at every resource version: H2, H3, H4, and X1 for stamps.

// numbers is H2: a revision that is created or renumbered gets a number above all others of its parent, so that numbers
// are unique and never fall. Adopting a revision writes no number.
func (s *step) numbers() {
	if !s.of(s.k.Revisions) || s.e.New == nil || ownerUID(s.e.New) == "" {
		return
	}
	number := s.k.Number(s.e.New)
	if s.e.Old != nil {
		old := s.k.Number(s.e.Old)
		if old == number {
			return
		}
		if number < old {
			s.violationf("H2", "its number fell from %d to %d", old, number)
			return
		}
	}
	for _, other := range s.before.Owned(s.k.Revisions, ownerUID(s.e.New)) {
		if other.GetUID() == s.e.New.GetUID() {
			continue
		}
		switch n := s.k.Number(other); {
		case n == number:
			s.violationf("H2", "its number %d is that of %s as well", number, other.GetName())
			return
		case n > number:
			s.violationf("H2", "it got number %d when %s had %d already", number, other.GetName(), n)
			return
		}
	}
}

// liveRevision is H3: the controllers delete no revision that a child came from, that status names, or that holds what
// the parent asks for. Of two that hold the same, one may go.
func (s *step) liveRevision() {
	if !s.of(s.k.Revisions) || !startsToGo(s.e) || !s.byManager() {
		return
	}
	parent := s.parent(s.before, s.e.Old)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return
	}
	if child := s.k.user(s.before, s.e.Old); child != nil {
		s.violationf("H3", "it is deleted while %s comes from it", child.GetName())
		return
	}
	if slices.Contains(s.k.StatusRevisions(parent), s.e.Old.GetName()) {
		s.violationf("H3", "it is deleted while the status of %s names it", parent.GetName())
		return
	}
	for _, version := range s.possible(parent) {
		if !s.k.asked(version, s.e.Old) || s.twin(version) {
			return
		}
	}
	s.violationf("H3", "it is deleted while it holds what %s asks for", parent.GetName())
}

// twin reports whether another revision holds what the parent asks for.
func (s *step) twin(parent client.Object) bool {
	return slices.ContainsFunc(s.after.Owned(s.k.Revisions, parent.GetUID()), func(other client.Object) bool {
		return other.GetUID() != s.e.Old.GetUID() && s.k.asked(parent, other)
	})
}

// revisionData is H4: what a revision holds never changes.
func (s *step) revisionData() {
	if s.of(s.k.Revisions) && s.e.Type == Modified && (!sameTree(s.e.Old, s.e.New, "data") || !sameTree(s.e.Old, s.e.New, "parentPatch")) {
		s.violationf("H4", "its data changed")
	}
}

// stamp is X1: a revision that is created or renumbered for a parent is not stamped with another one's UID.
func (s *step) stamp() {
	if !s.of(s.k.Revisions) || s.e.New == nil || !s.byManager() || s.e.Old != nil && s.k.Number(s.e.Old) == s.k.Number(s.e.New) {
		return
	}
	stamped := types.UID(s.e.New.GetAnnotations()[history.ParentUIDAnnotation])
	if owner := ownerUID(s.e.New); stamped != "" && owner != "" && stamped != owner {
		s.violationf("X1", "it belongs to parent %s and is stamped for %s", owner, stamped)
	}
}
