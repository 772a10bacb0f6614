package check

import (
	"maps"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is P5 for children whose revision is lost: somebody deleted it, took its labels away, or put something under its
// name that nobody can read. What is held back stays what it is all the same.

// heldStays is P5: a child that is held back is neither deleted nor changed because nobody finds the revision that it came
// from any more.
func (s *step) heldStays() {
	if !s.h.Audited || !s.k.hasRevisions() {
		return
	}
	parent := s.disturbed()
	if parent == nil {
		return
	}
	for _, revision := range s.lostByOthers(parent.GetUID()) {
		if !s.k.Names(s.e.Old, revision) || s.replaced(revision) {
			continue
		}
		if s.heldIn(parent, revision) {
			s.violationf("P5", "it is held back, and the revision that it came from, %s, is lost: it is to stay what it is", revision.GetName())
			return
		}
	}
}

// heldIn reports whether a child is held back whatever its author may have read of the parent, and is as the revision asks.
func (s *step) heldIn(parent, revision client.Object) bool {
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		if !ok || !u.Guarded || !u.Wanted {
			return false
		}
		if s.k.Asked == nil {
			continue
		}
		wanted := s.k.wants(version, revision, s.e.Old)
		if wanted == nil || straysFrom(s.e.Old, wanted) != "" {
			return false
		}
	}
	return true
}

// lostByOthers returns the revisions of a parent that somebody other than the controllers deleted, let go of or relabelled, as they
// were before.
func (s *step) lostByOthers(parent types.UID) map[types.UID]client.Object {
	out := map[types.UID]client.Object{}
	for e := range s.record.before(parent, s.e.RV) {
		if e.Key.Resource != s.k.Revisions || e.Old == nil || s.h.byManager(e) || ownerUID(e.Old) != parent {
			continue
		}
		if e.New == nil || ownerUID(e.New) != parent || !maps.Equal(e.Old.GetLabels(), e.New.GetLabels()) {
			out[e.Old.GetUID()] = e.Old
		}
	}
	return out
}

// replaced reports whether the parent has a revision that holds the same as the one that is lost, and names the child.
func (s *step) replaced(lost client.Object) bool {
	for _, r := range s.before.Owned(s.k.Revisions, ownerUID(lost)) {
		if s.k.same(r, lost) && s.k.Names(s.e.Old, r) {
			return true
		}
	}
	return false
}

// guardLost reports whether somebody other than the controllers took away the revision that the child of a place belonged to:
// where it is held back, it is not made from another one.
func (r *rest) guardLost(parent client.Object, u Unit) bool {
	if r.k.Asked == nil {
		return false
	}
	for _, wanted := range r.k.Asked(parent, nil) {
		if wanted.GetName() != u.Name {
			continue
		}
		if saysLost(parent, u.Name) { // it was adopted, and no revision ever said what it was made from
			return true
		}
		for _, e := range r.h.Events {
			gone := e.Key.Resource == r.k.Revisions && e.Old != nil && ownerUID(e.Old) == parent.GetUID() && !r.h.byManager(e) &&
				(e.New == nil || ownerUID(e.New) != parent.GetUID() || !maps.Equal(e.Old.GetLabels(), e.New.GetLabels()))
			if gone && r.k.Names(wanted, e.Old) {
				return true
			}
		}
	}
	return false
}

// saysLost reports whether the status names a child as one whose revision is lost.
func saysLost(parent client.Object, child string) bool {
	list, _ := at(tree(parent), []string{"status", "conditions"}).([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		message, _ := c["message"].(string)
		if c["reason"] == "RevisionLost" && strings.Contains(message, " "+child+" ") {
			return true
		}
	}
	return false
}
