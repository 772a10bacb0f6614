package check

import (
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds the rules about claims, which controllers make beside the children and mostly do not own: O4 and C1.

// claim is O4 for what the controllers make beside the children and do not own: they write only what has a name that a
// parent of theirs gives.
func (s *step) claim() {
	if s.k.Claimed == nil || !s.of(s.k.Claims) || !s.h.Audited || !s.byManager() {
		return
	}
	for _, uid := range s.before.uids(s.k) {
		for _, version := range s.before.Generations(uid, 0) {
			if version.GetNamespace() == s.e.Key.Namespace && s.k.Claimed(version, s.e.Object()) {
				return
			}
		}
	}
	s.violationf("O4", "it is written, and no parent has a claim of that name")
}

// claimsFollow is C1 for claims that are to go with their child when it is not asked for any more: the child is deleted
// only after they were told. Later nobody knows that they were its own, so that they stay for ever.
func (s *step) claimsFollow() {
	if s.k.Outlives == nil || !s.h.Audited {
		return
	}
	parent := s.dismissed()
	if parent == nil {
		return
	}
	for _, claim := range s.before.List(s.k.Claims, s.e.Key.Namespace) {
		read := s.record.at(claim.GetUID(), s.since(s.k.Claims, parent.GetUID()))
		if read != nil && s.outlives(read, parent) && s.outlives(claim, parent) {
			s.violationf("C1", "it is deleted, and its claim %s, which should go with it, stays", claim.GetName())
		}
	}
}

// outlives reports whether a claim would outlive the child that was deleted, whatever version of the parent its author
// may have acted on.
func (s *step) outlives(claim, parent client.Object) bool {
	for _, version := range s.possible(parent) {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		if !ok || u.Wanted || !s.k.Outlives(claim, s.e.Old, version) {
			return false
		}
	}
	return true
}
