package check

import (
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about who owns what: H6, O1 to O5.

// controllerRef is O1, O5 and H6: at most one controller, whoever writes; and the controllers put in a parent of that
// name, in the same namespace unless it is in none, and only where nobody is, or let go.
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
	if uid == "" || !s.byManager() {
		return
	}
	if old := controllerOf(s.e.Old); old != nil {
		s.violationf("O1", "it is taken from %s, which has not let go of it", old.Name)
	}
	ref := controllerOf(s.e.New)
	switch was, ok := s.before.Identity(uid); {
	case !ok:
		s.violationf("H6", "its controller %s has UID %s, which nothing ever had", ref.Name, uid)
	case was.Namespace != s.e.Key.Namespace && was.Namespace != "":
		s.violationf("O5", "its controller is in namespace %s", was.Namespace)
	case was.Name != ref.Name || was.Resource != s.k.Parents:
		s.violationf("H6", "its controller is said to be %s, but UID %s is %s", ref.Name, uid, was)
	}
}

// afterTheEnd is O3: nothing is made for, or adopted by, a parent that was being deleted or gone when the author read
// it last. Without passes that is now.
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
	end := s.record.end(uid)
	switch known := s.since(s.k.Parents, uid); {
	case end == 0 || end >= s.e.RV:
	case s.pass() != nil && s.toldOfTheEnd(was, uid, end):
		s.violationf("O3", "it is %s %s, after a read in that pass told that this is going or gone", verb, was.Name)
	case end > known:
	case s.before.ByUID(uid) == nil:
		s.violationf("O3", "it is %s %s, which is gone", verb, was.Name)
	default:
		s.violationf("O3", "it is %s %s, which is being deleted", verb, was.Name)
	}
}

// toldOfTheEnd reports whether a read of the pass found the parent going, gone, or replaced.
func (s *step) toldOfTheEnd(parent Key, uid types.UID, end uint64) bool {
	return !s.e.By.Late && slices.ContainsFunc(s.record.reads(s.e.By), func(read *Entry) bool {
		if read.Verb != "get" || !read.Of(parent.Resource, parent.Namespace) || read.Name != parent.Name {
			return false
		}
		return read.Code == http.StatusNotFound || read.Succeeded() && (read.UID != uid || read.RV >= end)
	})
}

// looked is O2: an orphan is adopted only after a read past the cache showed the parent, alive. That read comes after
// the one that showed the orphan as it was adopted, so that a parent which was going by then is never the one. Only
// passes tell; their reads tell for certain. An orphan that is going itself stays one, whoever looks.
func (s *step) looked() {
	uid := s.takes()
	if !s.dependent() || !s.adopts(uid) || !s.byManager() {
		return
	}
	was, ok := s.before.Identity(uid)
	if !ok || was.Resource != s.k.Parents {
		return
	}
	end := s.record.end(uid)
	switch read, err := recording.VersionOf(s.e.Old); {
	case s.e.Old.GetDeletionTimestamp() != nil:
		s.violationf("O2", "it is adopted by %s, and is going itself", was.Name)
	case s.pass() == nil:
	case s.h.Reads && !s.saw(uid, end):
		s.violationf("O2", "it is adopted by %s, and no read past the cache, in that pass, showed that it is there", was.Name)
	case !s.h.Reads && err == nil && end != 0 && end <= read:
		s.violationf("O2", "it is adopted by %s, which was going or gone before the orphan became what it is", was.Name)
	}
}

// adopts reports whether the write gave an orphan to a parent.
func (s *step) adopts(uid types.UID) bool {
	return uid != "" && s.e.Type == Modified && ownerUID(s.e.Old) == ""
}

// saw reports whether a read of the pass showed the parent before its end.
func (s *step) saw(uid types.UID, end uint64) bool {
	return slices.ContainsFunc(s.record.reads(s.e.By), func(read *Entry) bool {
		return read.Verb == "get" && read.Succeeded() && read.UID == uid && (end == 0 || read.RV < end)
	})
}

// foreign is O4: the controllers write nothing that is not a parent's, before or after the write, and no history that
// its own controller keeps. Only an audited history tells.
func (s *step) foreign() {
	if !s.dependent() || !s.h.Audited || !s.byManager() {
		return
	}
	if s.of(s.k.Revisions) && s.e.Old != nil && s.parent(s.before, s.e.Old) != nil && !s.k.mine(s.e.Old) {
		s.violationf("O4", "it is written, and is part of a history that its controller keeps itself")
	}
	if s.ours(s.e.Old) || s.ours(s.e.New) || s.ours(s.sent()) || s.takes() != "" || !s.first() {
		return
	}
	s.violationf("O4", "it is written, and belongs to no parent")
}

// ours reports whether an object is controlled by what is or was a parent of any kind under test.
func (s *step) ours(o client.Object) bool {
	was, ok := s.after.Identity(s.ownerOf(o))
	return ok && slices.ContainsFunc(s.kinds, func(k Kind) bool { return k.Parents == was.Resource })
}

// ownerOf is the UID of the owner of an object: that in its ControllerRef, or that of whom a run without one belongs
// to.
func (s *step) ownerOf(o client.Object) types.UID {
	if uid := ownerUID(o); uid != "" || o == nil || s.k.Runs == nil || !s.of(s.k.Children) {
		return uid
	}
	return s.k.Runs.Owner(o)
}

// first reports whether this kind is the first one under test whose dependents are of this resource: what is wrong for
// all of them is said once.
func (s *step) first() bool {
	i := slices.IndexFunc(s.kinds, func(k Kind) bool { return k.Children == s.e.Key.Resource || k.Revisions == s.e.Key.Resource })
	return s.kinds[i].Parents == s.k.Parents
}
