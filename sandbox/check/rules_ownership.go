package check

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds the rules about who owns what: H6, O1, O3, O4, O5.

// controllerRef is O1, O5 and H6: at most one controller, in the same namespace, that is or was a parent of that name. A
// controller is replaced by another only after it has let go or is gone.
func (s *step) controllerRef() {
	if !s.dependent() || s.e.New == nil {
		return
	}
	controllers := 0
	for _, ref := range s.e.New.GetOwnerReferences() {
		if ref.Controller != nil && *ref.Controller {
			controllers++
		}
	}
	if controllers > 1 {
		s.violationf("O1", "%d owner references say that they are its controller", controllers)
		return
	}
	uid := s.takes()
	if uid == "" {
		return
	}
	if old := controllerOf(s.e.Old); old != nil {
		s.violationf("O1", "it is taken from %s, which has not let go of it", old.Name)
	}
	ref := controllerOf(s.e.New)
	switch was, ok := s.before.Identity(uid); {
	case !ok:
		s.violationf("H6", "its controller %s has UID %s, which nothing ever had", ref.Name, uid)
	case was.Namespace != s.e.Key.Namespace:
		s.violationf("O5", "its controller is in namespace %s", was.Namespace)
	case was.Name != ref.Name || was.Resource != s.k.Parents:
		s.violationf("H6", "its controller is said to be %s, but UID %s is %s", ref.Name, uid, was)
	}
}

// afterTheEnd is O3: nothing is adopted by, or made for, a parent that is being deleted or is gone.
func (s *step) afterTheEnd() {
	uid := s.takes()
	if !s.dependent() || uid == "" || !s.byManager() {
		return
	}
	was, ok := s.before.Identity(uid)
	if !ok || was.Resource != s.k.Parents {
		return
	}
	verb := "adopted by"
	if s.e.Type == Added {
		verb = "made for"
	}
	switch parent := s.before.ByUID(uid); {
	case parent == nil:
		s.violationf("O3", "it is %s %s, which is gone", verb, was.Name)
	case parent.GetDeletionTimestamp() != nil:
		s.violationf("O3", "it is %s %s, which is being deleted", verb, was.Name)
	}
}

// foreign is O4: the controllers write nothing that is not a parent's, before or after the write. Only an audited
// history tells.
func (s *step) foreign() {
	if !s.dependent() || !s.h.Audited || !s.byManager() || s.ours(s.e.Old) || s.ours(s.e.New) || s.takes() != "" || !s.first() {
		return
	}
	s.violationf("O4", "it is written, and belongs to no parent")
}

// ours reports whether an object is controlled by what is or was a parent of any kind under test.
func (s *step) ours(o client.Object) bool {
	was, ok := s.after.Identity(ownerUID(o))
	return ok && slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.Parents == was.Resource })
}

// first reports whether this kind is the first one under test whose dependents are of this resource: what is wrong for
// all of them is said once.
func (s *step) first() bool {
	i := slices.IndexFunc(s.kinds, func(k Kind) bool { return k.Children == s.e.Key.Resource || k.Revisions == s.e.Key.Resource })
	return s.kinds[i].Parents == s.k.Parents
}
