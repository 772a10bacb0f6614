package check

import (
	"crypto/sha1" //nolint:gosec // the names of revisions, not a secret
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about the revisions of parents whose children a hook asks for: H3 for what a revision says,
// H5 for its name, and W2 for what the hook gets.

// lostUnseen reports whether somebody else has taken a revision from the parent, or a child from a revision, so lately
// that the author may still have read that the child was in one.
func (s *step) lostUnseen(child client.Object) bool {
	parent := ownerUID(child)
	for e := range s.late(parent) {
		if ownerUID(e.Old) == parent && !s.own(e) && s.k.Names(child, e.Old) {
			return true
		}
	}
	return false
}

// knewClaim reports whether the author must have known that a revision says that a child is its own: it said so when
// the author read it, or the author wrote it.
func (s *step) knewClaim(child, revision client.Object) bool {
	parent := ownerUID(revision)
	if then := s.record.at(revision.GetUID(), s.since(s.k.Revisions, parent)); then != nil && s.k.Names(child, then) {
		return true
	}
	for e := range s.late(parent) {
		if e.New != nil && e.New.GetUID() == revision.GetUID() && s.own(e) && s.k.Names(child, e.New) {
			return true
		}
	}
	return false
}

// claimKept is H3 for what a revision says: none stops saying that a child is its own, or goes, while the child is
// there and wanted, unless another one says so already.
func (s *step) claimKept() {
	if s.k.Asked == nil || !s.of(s.k.Revisions) || s.e.Old == nil || s.e.New == nil || !s.byManager() {
		return
	}
	parent := s.parent(s.after, s.e.New)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return
	}
	for _, child := range s.after.Owned(s.k.Children, parent.GetUID()) {
		if !s.k.Names(child, s.e.Old) || s.k.Names(child, s.e.New) || s.k.named(s.after, child) != nil ||
			s.lostUnseen(child) {
			continue
		}
		if slices.ContainsFunc(s.possible(parent), func(version client.Object) bool { return s.k.wants(version, nil, child) == nil }) {
			continue
		}
		s.violationf("H3", "it says no longer that %s is its own, and no other revision does", child.GetName())
	}
}

// firstName is H5 for revisions whose names follow from their parent and what they hold: a name that holds a count is
// for when the plain one is somebody else's.
func (s *step) firstName() {
	if s.k.Asked == nil || !s.of(s.k.Revisions) || s.e.Type != Added || !s.byManager() {
		return
	}
	data, err := json.Marshal(content.PatchOf(s.e.New))
	if err != nil {
		return
	}
	sum := sha1.Sum(append([]byte(ownerUID(s.e.New)), data...)) //nolint:gosec // as above
	name := s.k.Parents.Resource + "." + s.k.Parents.Group + "-" + hex.EncodeToString(sum[:])
	if name == s.e.Key.Name {
		return
	}
	for _, m := range s.record.moments[Key{Resource: s.k.Revisions, Namespace: s.e.Key.Namespace, Name: name}] {
		if m.rv < s.e.RV && m.object != nil {
			return // whose that was is for H1 to say
		}
	}
	s.violationf("H5", "its name should be %s, which nobody ever had", name)
}

// sent is W2 for parents, where who plays the hook does not know of revisions: what the hook gets is the parent as it
// was at some moment, or that with what one of its revisions holds.
func sent(h *History, all *record, k Kind) []Violation {
	if k.Asked == nil || !k.HasRevisions() {
		return nil
	}
	var found []Violation
	for _, n := range h.Notes {
		key, known := all.keys[n.Parent]
		if n.Sent == nil || !known || key.Resource != k.Parents {
			continue
		}
		version, err := recording.VersionOf(n.Sent)
		then := all.at(n.Parent, version)
		if err != nil || then == nil || then.GetResourceVersion() != n.Sent.GetResourceVersion() || k.Target(n.Sent) == k.Target(then) {
			continue
		}
		if !slices.ContainsFunc(all.everOwned(k, n), func(r client.Object) bool { return k.asked(n.Sent, r) }) {
			found = append(found, Violation{
				Invariant: "W2", Object: key, RV: n.RV, Replay: h.Replay, Trail: trail(h, key, n.Parent, n.RV),
				Sentence: fmt.Sprintf("the hook got the parent of version %d with fields that no revision holds", version),
			})
		}
	}
	return found
}

// everOwned returns every revision that the parent of a note had by then.
func (r *record) everOwned(k Kind, n Note) []client.Object {
	var out []client.Object
	for _, all := range r.moments {
		for _, m := range all {
			if m.object != nil && m.rv <= n.RV && ownerUID(m.object) == n.Parent && r.keys[m.object.GetUID()].Resource == k.Revisions {
				out = append(out, m.object)
			}
		}
	}
	return out
}
