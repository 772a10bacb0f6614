package check

import (
	"fmt"
	"maps"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file holds the rules about composite parents, whose children a hook decides: W1 and W2. They read the notes of
// the history; without notes they are silent.

// answeredTo reports whether a note is about the pass that made a write; without passes, about its parent.
func (s *step) answeredTo(n Note) bool {
	if p := s.pass(); p != nil && n.Pass != nil {
		return p.ID == n.Pass.ID
	}
	return n.Parent == ownerUID(s.e.Object()) && n.RV < s.e.RV
}

// afterAFailure is W1: no child is deleted in a pass in which a hook failed.
func (s *step) afterAFailure() {
	if len(s.h.Notes) == 0 || s.dismissed() == nil {
		return
	}
	failed := map[string]bool{} // by what was asked about, in this pass
	question := ""
	for _, n := range s.h.Notes {
		if !s.answeredTo(n) {
			continue
		}
		about, passes := "", s.pass() != nil && n.Pass != nil
		switch {
		case passes && failed[about]:
			continue
		case !passes && (n.Question == "" || n.Question != question):
			// Passes over one parent follow each other: without passes, the last question is that of this one.
			clear(failed)
			question = n.Question
		}
		if !passes && n.Sent != nil {
			about = s.k.Target(n.Sent) // what was asked about each revision
		}
		failed[about] = n.Failed
	}
	if slices.Contains(slices.Collect(maps.Values(failed)), true) {
		s.violationf("W1", "it is deleted although the hook failed")
	}
}

// hooked is W2 for children: one that is made from an old revision, or told that it is, is what the hook asked for when
// it got the parent that was restored from that revision.
func (s *step) hooked() {
	if len(s.h.Notes) == 0 || s.k.Asked != nil || !s.of(s.k.Children) || s.e.New == nil || !s.byManager() {
		return
	}
	from := s.k.named(s.after, s.e.New)
	if from == nil || s.e.Old != nil && s.k.Names(s.e.Old, from) {
		return
	}
	asked, differs := false, "the hook that got the parent restored from that asked for no such child"
	for _, n := range s.h.Notes {
		if n.Revision != from.GetName() || !s.answeredTo(n) {
			continue
		}
		asked = true
		if i := slices.IndexFunc(n.Children, func(o client.Object) bool { return o.GetName() == s.e.New.GetName() }); i >= 0 {
			if differs = content.Missing("", content.Tree(n.Children[i]), content.Tree(s.e.New)); differs == "" {
				return
			}
		}
	}
	if asked {
		s.violationf("W2", "it says that it comes from %s, but %s", from.GetName(), differs)
	}
}

// restored is W2 for parents: what a hook gets as the parent of a revision asks for what that revision holds.
func restored(h *History, all *record, k Kind) []Violation {
	var found []Violation
	for _, n := range h.Notes {
		key, known := all.keys[n.Parent]
		if n.Failed || n.Revision == "" || !known || key.Resource != k.Parents {
			continue
		}
		revision := all.at(all.uidAt(Key{Resource: k.Revisions, Namespace: key.Namespace, Name: n.Revision}, n.RV), n.RV)
		if revision == nil {
			continue // it went while the hook was asked
		}
		if snapshot, err := k.Snapshot(revision); err == nil && snapshot != k.Target(n.Sent) {
			found = append(found, Violation{
				Invariant: "W2", Object: key, RV: n.RV, Replay: h.Replay, Trail: trail(h, key, n.Parent, n.RV),
				Sentence: fmt.Sprintf("the hook was asked about %s, and the parent that it got is not what that revision holds", n.Revision),
			})
		}
	}
	return found
}
