package check

import (
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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

// claimsFollow is C1 for claims of a child that is deleted. If they are to go with a surplus child, it must own them
// first: a claim without an owner stays. If the place of the child is asked for, it must not own them.
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
		switch {
		case read == nil:
		case s.outlives(read, parent) && s.outlives(claim, parent):
			s.violationf("C1", "it is deleted, and its claim %s, which should go with it, stays", claim.GetName())
		case s.takesAlong(read) && s.takesAlong(claim) && s.asked(parent):
			s.violationf("C1", "it is deleted, and takes its claim %s along, although its place is asked for", claim.GetName())
		}
	}
}

// takesAlong reports whether a claim goes with the child that is deleted: the garbage collector deletes it then.
func (s *step) takesAlong(claim client.Object) bool {
	uid := s.e.Old.GetUID()
	return claim.GetDeletionTimestamp() == nil &&
		slices.ContainsFunc(claim.GetOwnerReferences(), func(ref metav1.OwnerReference) bool { return ref.UID == uid })
}

// asked reports whether the place of the child that is deleted is asked for, whatever version of the parent its author
// may have acted on.
func (s *step) asked(parent client.Object) bool {
	return !slices.ContainsFunc(s.possible(parent), func(version client.Object) bool {
		u, ok := unitOf(s.k.Units(s.before, version), s.e.Old)
		return !ok || !u.Wanted
	})
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
