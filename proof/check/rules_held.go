package check

import (
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file is P5 for children whose revision is lost: somebody deleted it, took its labels away, or put something
// under its name that nobody can read. What is held back stays what it is all the same.

// heldStays is P5: a child that is held back is neither deleted nor changed because nobody finds the revision that it
// came from any more.
func (s *step) heldStays() {
	if !s.h.Audited || !s.k.HasRevisions() {
		return
	}
	parent := s.disturbed()
	if parent == nil {
		return
	}
	for _, lost := range s.lostByOthers(parent.GetUID()) {
		revision := lost.Old
		if !s.k.Names(s.e.Old, revision) || s.replaced(revision) || s.reassigned(parent.GetUID(), lost) {
			continue
		}
		if s.heldIn(parent, revision) {
			s.violationf("P5", "it is held back, and the revision that it came from, %s, is lost: it is to stay what it is", revision.GetName())
			return
		}
	}
}

// heldIn reports whether a child is held back whatever its author may have read of the parent, and is as the revision
// asks.
func (s *step) heldIn(parent, revision client.Object) bool {
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		if !ok || !u.Guarded || !u.Wanted {
			return false
		}
		if s.k.Asked == nil {
			if s.ever(parent, func(world *State) bool {
				u, _ := unitOf(s.k.Units(world, version), s.e.Old)
				return len(s.k.alive(u)) > 1
			}) {
				return false // one of those that a surge has left stays
			}
			continue
		}
		wanted := s.k.wants(version, revision, s.e.Old)
		if wanted == nil || content.StraysFrom(s.e.Old, wanted) != "" {
			return false
		}
	}
	return true
}

// lostByOthers returns how revisions of a parent were deleted, let go of or relabelled by somebody other than the
// controllers, as far as the author's cache had shown it.
func (s *step) lostByOthers(parent types.UID) map[types.UID]Event {
	out, shown := map[types.UID]Event{}, s.since(s.k.Revisions, parent)
	for e := range s.record.before(parent, s.e.RV) {
		if e.RV > shown || e.Key.Resource != s.k.Revisions || e.Old == nil || s.h.ByManager(e) || ownerUID(e.Old) != parent {
			continue
		}
		if e.New == nil || ownerUID(e.New) != parent || !maps.Equal(e.Old.GetLabels(), e.New.GetLabels()) {
			out[e.Old.GetUID()] = e
		}
	}
	return out
}

// reassigned reports whether the controllers said of a child, since its revision was lost and while it was nobody's
// child, that the next one of its name belongs to another revision. Adopted again, it is held at that one.
func (s *step) reassigned(parent types.UID, lost Event) bool {
	for e := range s.record.before(parent, s.e.RV) {
		if e.RV <= lost.RV {
			return false
		}
		names := e.Key.Resource == s.k.Revisions && e.New != nil && s.h.ByManager(e) && s.k.Names(s.e.Old, e.New) &&
			(e.Old == nil || !s.k.Names(s.e.Old, e.Old))
		if names && ownerUID(s.record.at(s.e.Old.GetUID(), e.RV)) != parent {
			return true
		}
	}
	return false
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

// guardLost reports whether nobody can say what the child of a place is to be made from: where it is held back, it is
// not made from another revision, and the status says so (C1).
func (r *rest) guardLost(parent client.Object, u Unit) bool {
	if r.k.Asked == nil || u.Taken {
		return false
	}
	wanted := r.k.Asked(parent, nil)
	i := slices.IndexFunc(wanted, func(o client.Object) bool { return o.GetName() == u.Name })
	if i < 0 || !r.takenAway(parent, wanted[i]) && !r.neverNamed(parent, wanted[i]) {
		return false
	}
	if !saysLost(parent, u.Name) {
		r.violationf("C1", r.k.Parents, parent, "%s is held back and its revision is lost, and no condition of the status says so", u.Name)
	}
	return true
}

// takenAway reports whether somebody other than the controllers took away a revision that named a child: of the parent,
// or of one before it that had its name, whose log it may have taken over.
func (r *rest) takenAway(parent, child client.Object) bool {
	key := recording.KeyOf(r.k.Parents, parent)
	for _, e := range r.h.Events {
		if e.Key.Resource != r.k.Revisions || e.Old == nil || r.h.ByManager(e) || !r.k.Names(child, e.Old) {
			continue
		}
		if owner, known := r.s.Identity(ownerUID(e.Old)); !known || owner != key {
			continue
		}
		if e.New == nil || ownerUID(e.New) != ownerUID(e.Old) || !maps.Equal(e.Old.GetLabels(), e.New.GetLabels()) {
			return true
		}
	}
	return false
}

// neverNamed reports whether the last child of that name was not made by the controllers but adopted, and no revision
// of the parent has ever said since what it was made from.
func (r *rest) neverNamed(parent, child client.Object) bool {
	adopted, naming := false, map[types.UID]bool{}
	for key, o := range r.h.Initial {
		naming[o.GetUID()] = key.Resource == r.k.Revisions && r.names(parent, child, o)
	}
	for _, e := range r.h.Events {
		if e.RV > r.s.RV {
			break
		}
		switch o := e.Object(); {
		case e.Key.Resource == r.k.Revisions:
			naming[o.GetUID()] = e.New != nil && r.names(parent, child, e.New)
			adopted = adopted && !naming[o.GetUID()]
		case e.Key.Resource != r.k.Children || o.GetName() != child.GetName() || e.New == nil || ownerUID(e.New) != parent.GetUID():
		case e.Old == nil:
			adopted = !r.h.ByManager(e)
		case ownerUID(e.Old) != parent.GetUID():
			adopted = !slices.Contains(slices.Collect(maps.Values(naming)), true)
		}
	}
	return adopted
}

// names reports whether a revision is the parent's and says what the child was made from.
func (r *rest) names(parent, child, revision client.Object) bool {
	return ownerUID(revision) == parent.GetUID() && r.k.Names(child, revision)
}

// saysLost reports whether a condition names a child, with or without its namespace, as one whose revision is lost and
// that is missing.
func saysLost(parent client.Object, child string) bool {
	list, _ := content.At(content.Tree(parent), []string{"status", "conditions"}).([]any)
	for _, item := range list {
		c, _ := item.(map[string]any)
		message, _ := c["message"].(string)
		for _, before := range []string{" ", "/"} {
			if strings.Contains(message, before+child+" is missing and is not made from another revision") {
				return true
			}
		}
	}
	return false
}
