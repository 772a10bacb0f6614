package check

import (
	"cmp"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about revisions that hold at every resource version: H2, H3, H4, H7, and X1 for stamps.

// numbered reports whether the write gave a revision a number: it was created or renumbered. Adopting one writes none.
func (s *step) numbered() bool {
	return s.of(s.k.Revisions) && s.e.New != nil && ownerUID(s.e.New) != "" &&
		(s.e.Old == nil || s.k.Number(s.e.Old) != s.k.Number(s.e.New))
}

// numbers is H2: a revision that is created or renumbered gets a number above all others of its parent, so that numbers
// are unique and never fall. What another process numbers at the same moment its author cannot know: such twins are
// found at rest if they stay.
func (s *step) numbers() {
	if !s.numbered() || !s.byManager() {
		return
	}
	number := s.k.Number(s.e.New)
	if s.e.Old != nil && number < s.k.Number(s.e.Old) {
		s.violationf("H2", "its number fell from %d to %d", s.k.Number(s.e.Old), number)
		return
	}
	for _, other := range s.before.Owned(s.k.Revisions, ownerUID(s.e.New)) {
		n := s.k.Number(other)
		if other.GetUID() == s.e.New.GetUID() || n < number || !s.knewNumber(other) {
			continue
		}
		if n == number {
			s.violationf("H2", "its number %d is that of %s as well", number, other.GetName())
		} else {
			s.violationf("H2", "it got number %d when %s had %d already", number, other.GetName(), n)
		}
		return
	}
}

// knewNumber reports whether the author must have known the number of another revision: it wrote it itself, unless that
// arrived so late that a list past the cache in this pass did not show it; its cache had shown it; or it listed the
// revisions in the same pass, when that one was the parent's already and had the labels that the list was of: one
// without is in no log, and its parent lets go of it as soon as a cache shows it.
func (s *step) knewNumber(other client.Object) bool {
	if s.pass() == nil {
		return true
	}
	owner := ownerUID(s.e.New)
	listed := s.record.listed(s.e.By, s.k.Revisions, s.e.Key.Namespace)
	from := max(s.since(s.k.Revisions, owner), s.record.shownBy(s.e.By, other, s.k.Revisions))
	if then := s.record.at(other.GetUID(), from); then != nil && s.k.Number(then) == s.k.Number(other) && ownerUID(then) == owner {
		return true
	}
	wrote := func(e Event) bool { // another controller of the same parent has another memory
		return s.own(e) && e.By.Pass.For == s.pass().For && (listed == 0 || e.By.Pass.ID == s.pass().ID)
	}
	for e := range s.record.before(owner, s.e.RV) {
		if e.New != nil && e.New.GetUID() == other.GetUID() && s.k.Number(e.New) == s.k.Number(other) && wrote(e) {
			return true
		}
	}
	return false
}

// fenced is H7: a revision becomes the newest only for what a parent asks for now, or asked for when its author read it
// last. With the reads of the pass, one of them must have shown it. Without, what the log is stamped with, and what a
// status says to have been observed, was read for certain. Only an audited history tells.
func (s *step) fenced() {
	parent := s.parent(s.after, s.e.New)
	if parent == nil || !s.numbered() || !s.h.Audited || !s.byManager() {
		return
	}
	snapshot, err := s.k.Snapshot(s.e.New)
	if err != nil {
		return
	}
	if s.h.Reads && s.pass() != nil {
		for _, read := range s.record.reads(s.e.By) {
			if then := s.showed(read, parent); then != nil && s.k.Target(then) == snapshot {
				return
			}
		}
		s.violationf("H7", "it becomes the newest, and no read of %s past the cache, in that pass, showed that it is asked for", parent.GetName())
		return
	}
	known := s.acted(parent)
	for _, version := range slices.Backward(s.before.Generations(parent.GetUID(), 0)) {
		if s.k.Target(version) != snapshot {
			continue
		}
		if generation := version.GetGeneration(); generation < known {
			s.violationf("H7", "it becomes the newest, and holds what generation %d asked for, when generation %d was known", generation, known)
		}
		return
	}
}

// showed returns the version of a parent that a read showed, nil if it showed none, or not that one.
func (s *step) showed(read *Entry, parent client.Object) client.Object {
	if read.Verb != "get" || !read.Succeeded() || read.UID != parent.GetUID() {
		return nil
	}
	return s.record.at(parent.GetUID(), read.RV)
}

// acted is the newest generation of a parent that the author must have known: observed, or stamped on the log, from the
// future excepted.
func (s *step) acted(parent client.Object) int64 {
	uid := parent.GetUID()
	known := int64(0)
	if then := s.record.at(uid, s.since(s.k.Parents, uid)); then != nil {
		known = min(s.k.ObservedGeneration(then), then.GetGeneration())
	}
	for _, r := range s.before.Owned(s.k.Revisions, uid) {
		then := s.record.at(r.GetUID(), s.since(s.k.Revisions, uid))
		if then == nil || then.GetAnnotations()[history.ParentUIDAnnotation] != string(uid) {
			continue
		}
		stamp, err := strconv.ParseInt(then.GetAnnotations()[history.ParentGenerationAnnotation], 10, 64)
		if err == nil && stamp <= parent.GetGeneration() {
			known = max(known, stamp)
		}
	}
	return known
}

// liveRevision is H3: the controllers delete no revision that a child came from, that status names, or that holds what
// the parent asks for. Of two that hold the same, one may go.
func (s *step) liveRevision() {
	if !s.of(s.k.Revisions) || !recording.StartsToGo(s.e) || !s.byManager() {
		return
	}
	parent := s.parent(s.before, s.e.Old)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return
	}
	user := ""
	unused := s.ever(parent, func(world *State) bool {
		child := s.k.userOf(world, s.e.Old, s.listable)
		if child == nil || s.copied(child) {
			return true
		}
		user = cmp.Or(user, child.GetName())
		return false
	})
	if !unused {
		s.violationf("H3", "it is deleted while %s comes from it", user)
		return
	}
	if s.statusNames(parent) {
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

// listable reports whether the author of the write can know a child that its pass has listed the children without. One
// that does not have the labels that its parent selects is shown by no list of those: if no cache shows it either, its
// author knows nothing of it, and lets go of it as soon as it does.
func (s *step) listable(child client.Object) bool {
	p := s.pass()
	if p == nil || p.Views == nil || len(s.record.lists(s.e.By, s.k.Children, child.GetNamespace())) == 0 {
		return true
	}
	for e := range s.record.before(child.GetUID(), s.e.RV) {
		if s.own(e) {
			return true
		}
	}
	cached := s.record.at(child.GetUID(), p.Views[s.k.Children])
	return cached != nil && ownerUID(cached) == ownerUID(child) || s.record.shownBy(s.e.By, child, s.k.Children) > 0
}

// statusNames reports whether every status that the author may have read names the revision that was deleted.
func (s *step) statusNames(parent client.Object) bool {
	names := func(o client.Object) bool { return slices.Contains(s.k.StatusRevisions(o), s.e.Old.GetName()) }
	if !names(parent) {
		return false
	}
	from := s.since(s.k.Parents, parent.GetUID())
	for e := range s.record.before(parent.GetUID(), s.e.RV) {
		if e.RV > from && e.Key.Resource == s.k.Parents && e.Old != nil && !names(e.Old) {
			return false
		}
	}
	return true
}

// copied reports whether another revision holds the same as the one that goes, and child says that it came from that
// one as well: somebody has copied a revision with its labels.
func (s *step) copied(child client.Object) bool {
	holds, err := s.k.Snapshot(s.e.Old)
	if err != nil {
		return false
	}
	return s.other(ownerUID(s.e.Old), func(other client.Object) bool {
		same, err := s.k.Snapshot(other)
		return err == nil && same == holds && s.k.Names(child, other)
	})
}

// twin reports whether another revision holds what the parent asks for.
func (s *step) twin(parent client.Object) bool {
	return s.other(parent.GetUID(), func(other client.Object) bool { return s.k.asked(parent, other) || s.k.stamped(parent, other) })
}

// other reports whether something holds for another revision of the parent than the one that went, as it is or as a
// read past the cache showed it in the same pass: with both gone nobody knows what the children came from, so that no
// cache is believed. Where reads are not known, the author may have read it as it was.
func (s *step) other(parent types.UID, holds func(client.Object) bool) bool {
	test := func(r client.Object) bool { return r.GetUID() != s.e.Old.GetUID() && holds(r) }
	if slices.ContainsFunc(s.after.Owned(s.k.Revisions, parent), test) {
		return true
	}
	if !s.h.Reads || s.pass() == nil {
		return slices.ContainsFunc(s.left(parent), test)
	}
	return slices.ContainsFunc(s.record.reads(s.e.By), func(read *Entry) bool {
		if read.Verb != "get" || !read.Succeeded() || !read.Of(s.k.Revisions, s.e.Key.Namespace) {
			return false
		}
		then := s.record.at(read.UID, read.RV)
		return then != nil && ownerUID(then) == parent && test(then)
	})
}

// revisionData is H4: what a revision holds never changes.
func (s *step) revisionData() {
	if !s.of(s.k.Revisions) || s.e.Type != Modified {
		return
	}
	part := "data"
	if _, ours := s.e.New.(*unstructured.Unstructured); ours {
		part = "parentPatch"
	}
	if !content.Same(s.e.Old, s.e.New, part) {
		s.violationf("H4", "its data changed")
	}
}

// stamp is X1: a revision that is created or renumbered for a parent is not stamped with another one's UID.
func (s *step) stamp() {
	if !s.numbered() || !s.byManager() {
		return
	}
	stamped := types.UID(s.e.New.GetAnnotations()[history.ParentUIDAnnotation])
	if owner := ownerUID(s.e.New); stamped != "" && stamped != owner {
		s.violationf("X1", "it belongs to parent %s and is stamped for %s", owner, stamped)
	}
}
