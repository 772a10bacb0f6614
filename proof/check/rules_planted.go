package check

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is P8: what somebody has planted among revisions is not made.

// everAsked is P8: a child is made from what a parent of its kind has asked for at some time. Revisions with other
// content were written by somebody else, and only an undo, which is an edit of the parent, may bring it to life.
func (s *step) everAsked() {
	if !s.h.Reads || !s.k.HasRevisions() {
		return // what was asked for before the history began is not known
	}
	if s.of(s.k.Parents) && s.e.New != nil {
		if s.memory.asked[s.k.Parents] == nil {
			s.memory.asked[s.k.Parents] = map[string]bool{}
		}
		s.memory.asked[s.k.Parents][s.k.Target(s.e.New)] = true
	}
	if !s.of(s.k.Children) || s.e.Type != Added || !s.byManager() || s.parent(s.after, s.e.New) == nil {
		return
	}
	planted := ""
	for _, from := range s.sources() {
		snapshot, err := s.k.Snapshot(from)
		if err != nil || s.memory.asked[s.k.Parents][snapshot] {
			return
		}
		planted = from.GetName()
	}
	if planted != "" {
		s.violationf("P8", "it is made from %s, and nobody has ever asked for what that holds", planted)
	}
}

// sources are the revisions that a new child may have been made from, none if it is of none, or of one that nobody
// knows.
func (s *step) sources() []client.Object {
	if s.k.Asked != nil {
		if all := s.origins(s.sent()); !slices.Contains(all, nil) {
			return all
		}
		return nil
	}
	return s.namesakes(s.sent())
}
