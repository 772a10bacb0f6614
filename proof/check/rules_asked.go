package check

import (
	"math"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file holds the rules about children that a hook asks for and that revisions name: P3, P4, P5 and W2. They are
// silent about every other kind. rules_asked_log.go has those about the revisions.

// wants returns what the hook wants under the name of a child, nil if nothing.
func (k Kind) wants(parent, revision, child client.Object) client.Object {
	if parent == nil {
		return nil
	}
	for _, wanted := range k.Asked(parent, revision) {
		if wanted.GetName() == child.GetName() {
			return wanted
		}
	}
	return nil
}

// claimsWanted reports whether a revision says of a child that the hook wants that it is its own.
func (k Kind) claimsWanted(parent, revision client.Object) bool {
	return k.Asked != nil && slices.ContainsFunc(k.Asked(parent, nil), func(wanted client.Object) bool { return k.Names(wanted, revision) })
}

// origins returns the revisions that a child belongs to, as the author of this write may have read them: the newest
// that names it, of all or of those that there were before somebody else made more, and those that did before somebody
// else changed them. One that was adopted may have the number of another: of those, any; and of one that somebody gave
// the highest number there is, any that names the child, because nothing newer can get a higher one. For a kind without
// revisions it is a single nil.
func (s *step) origins(child client.Object) []client.Object {
	if !s.k.HasRevisions() {
		return []client.Object{nil}
	}
	var out []client.Object
	made := s.madeByOthers(ownerUID(child))
	for n := range len(made) + 1 {
		known := func(r client.Object) bool { return !slices.Contains(made[n:], r.GetUID()) }
		for from := s.k.namedOf(s.before, child, known); from != nil; from = s.k.namedOf(s.before, child, func(r client.Object) bool {
			last := s.k.Number(out[len(out)-1])
			return known(r) && !slices.Contains(out, r) && (s.k.Number(r) == last || last == math.MaxInt64)
		}) {
			out = append(out, from)
		}
	}
	for _, was := range s.left(ownerUID(child)) {
		if s.k.Names(child, was) {
			out = append(out, was)
		}
	}
	return out
}

// madeAsAsked is P4 and W2: what the controllers write of a child is what the hook asks for when it gets the parent as
// it was at the revision that the child belongs to, and that revision said so before.
func (s *step) madeAsAsked() {
	if s.k.Asked == nil || !s.of(s.k.Children) || s.e.New == nil || !s.byManager() || !s.rewritten() {
		return
	}
	parent := s.parent(s.after, s.e.New)
	if parent == nil {
		return
	}
	from := s.origins(s.e.New)
	if len(from) == 0 {
		s.violationf("P4", "it is written, and no revision says that it is its own")
		return
	}
	invariant, sentence := "P4", ""
	for _, r := range from {
		for _, version := range s.possible(parent) {
			wanted := s.k.wants(version, r, s.e.New)
			if wanted == nil {
				continue // this is P2
			}
			differs := content.StraysFrom(s.sent(), wanted)
			if differs == "" {
				return
			}
			sentence = "the hook asks for something else" + ofRevision(r) + ": " + differs
		}
		if r != nil && !s.k.asked(parent, r) {
			invariant = "W2"
		}
	}
	if sentence != "" {
		s.violationf(invariant, "%s", sentence)
	}
}

// rewritten reports whether the write made the child, or changed more of it than who owns it.
func (s *step) rewritten() bool {
	if s.e.Old == nil {
		return true
	}
	return !content.Same(s.e.Old, s.e.New, "spec") || !content.Same(s.e.Old, s.e.New, "data") ||
		s.e.Old.GetAnnotations()[content.LastApplied] != s.e.New.GetAnnotations()[content.LastApplied]
}

func ofRevision(revision client.Object) string {
	if revision == nil {
		return ""
	}
	return " when it gets the parent of " + revision.GetName()
}

// askedStays is P3: a child that the hook wants is deleted only if it is not as it asks; and then a revision with which
// it is at odds has said before that it is its own, so that whoever comes after knows what to make in its place. One
// that is held back is deleted only if it is not as its own revision asks.
func (s *step) askedStays() {
	parent := s.dismissed()
	if parent == nil || s.k.Asked == nil || !s.h.Audited {
		return
	}
	why := ""
	for _, version := range s.possible(parent) {
		now := s.k.wants(version, nil, s.e.Old)
		if now == nil {
			return
		}
		u, _ := unitOf(s.k.Units(s.before, version), s.e.Old)
		conforms, from := content.StraysFrom(s.e.Old, now) == "" && !u.Guarded, s.origins(s.e.Old)
		if conforms {
			why = "what " + parent.GetName() + " asks for"
			continue
		}
		at := slices.IndexFunc(from, func(r client.Object) bool {
			wanted := s.k.wants(version, r, s.e.Old)
			return wanted == nil || content.StraysFrom(s.e.Old, wanted) != ""
		})
		if len(from) == 0 || at >= 0 {
			return
		}
		why = "what " + from[0].GetName() + " asks for, which says that it is its own"
	}
	if why != "" {
		s.violationf("P3", "it is deleted although it is %s", why)
	}
}

// lostReturns is P5: a child that is lost is made again from the revision that it belonged to. So no other revision
// says that it is its own while it is not there.
func (s *step) lostReturns() {
	if s.k.Asked == nil || !s.of(s.k.Revisions) || s.e.New == nil || !s.byManager() {
		return
	}
	parent := s.parent(s.after, s.e.New)
	if parent == nil {
		return
	}
	for _, wanted := range s.k.Asked(parent, nil) {
		if !s.k.Names(wanted, s.e.New) || s.e.Old != nil && s.k.Names(wanted, s.e.Old) {
			continue
		}
		before := s.heldBy(wanted)
		if before == nil || !s.returns(parent, before, wanted) {
			continue
		}
		if !s.believed(parent, wanted) {
			s.violationf("P5", "it takes %s from %s, and that is not there: it is to come back as it was", wanted.GetName(), before.GetName())
		}
	}
}

// believed reports whether the author may have believed that a child is there.
func (s *step) believed(parent, child client.Object) bool {
	if told, with := s.told(child); told {
		return with
	}
	key := Key{Resource: s.k.Children, Namespace: s.e.Key.Namespace, Name: child.GetName()}
	return s.shown(key, parent) || s.ever(parent, func(world *State) bool { return world.Get(key) != nil })
}

// returns reports whether a child that is lost has to come back from the revision that it belongs to: that one wants
// it, and the author cannot have read that it belongs to another, which somebody has deleted since and which holds the
// same as the one that is written.
func (s *step) returns(parent, before, child client.Object) bool {
	return s.k.wants(parent, before, child) != nil && !slices.ContainsFunc(s.left(parent.GetUID()), func(r client.Object) bool {
		return s.k.Names(child, r) && s.k.same(r, s.e.New)
	})
}

// shown reports whether the author's cache showed a child: also one that it had deleted itself, and that was going.
func (s *step) shown(child Key, parent client.Object) bool {
	from := s.since(s.k.Children, parent.GetUID())
	uid := s.record.uidAt(child, from)
	return uid != "" && s.record.at(uid, from) != nil
}

// told reports whether the author has told the hook of children, and of this one among them: that is what its caches
// showed, however old they were. Where two managers act, nobody knows which of them told.
func (s *step) told(child client.Object) (told, with bool) {
	if s.another(ownerUID(s.e.New)) {
		return false, false
	}
	var last *Note
	for i := range s.h.Notes {
		if n := &s.h.Notes[i]; n.Told != nil && s.answeredTo(*n) {
			last = n
		}
	}
	kind := child.GetObjectKind().GroupVersionKind().GroupKind()
	return last != nil, last != nil && slices.ContainsFunc(last.Told, func(o client.Object) bool {
		return o.GetName() == child.GetName() && o.GetObjectKind().GroupVersionKind().GroupKind() == kind
	})
}

// another reports whether another manager has written for a parent before.
func (s *step) another(parent types.UID) bool {
	for e := range s.record.before(parent, s.e.RV) {
		if s.h.ByManager(e) && !s.own(e) {
			return true
		}
	}
	return false
}

// heldBy returns the newest other revision of the parent of the revision that was written which said that a child was
// its own, nil if none did, or if nobody had told the author, or if another one of the same number says so as well:
// some of them were adopted. Nor does one count that is newer than that revision, or holds the same.
func (s *step) heldBy(child client.Object) client.Object {
	var found client.Object
	tied := false
	for _, r := range s.before.Owned(s.k.Revisions, ownerUID(s.e.New)) {
		if found != nil && s.k.Names(child, r) && s.k.Number(r) == s.k.Number(found) {
			tied = true
		}
		if r.GetUID() != s.e.New.GetUID() && s.k.Names(child, r) && s.knewClaim(child, r) && (found == nil || s.k.Number(r) > s.k.Number(found)) {
			found, tied = r, false
		}
	}
	if tied || found != nil && (s.k.Number(found) >= s.k.Number(s.e.New) || s.k.same(found, s.e.New)) {
		return nil
	}
	return found
}
