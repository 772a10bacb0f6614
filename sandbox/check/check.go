package check

import (
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file replays a history and hands every write to every rule.

// step is one write as the rules see it, for one kind of parent.
type step struct {
	h *History
	// before and after are the world around the write.
	before, after *State
	e             Event
	// k is the kind, of all kinds under test.
	k     Kind
	kinds []Kind
	found *[]Violation
	// status is what statusWritten found out.
	status *bool
}

// rules are those that must hold at every resource version. Each one looks at a write and is silent about writes that
// are not its business.
var rules = []func(*step){
	(*step).numbers, (*step).liveRevision, (*step).revisionData, (*step).stamp,
	(*step).controllerRef, (*step).afterTheEnd, (*step).foreign,
	(*step).onePerUnit, (*step).conformingStays, (*step).content, (*step).precondition,
	(*step).unavailable, (*step).surge,
	(*step).completeMeans, (*step).plausible, (*step).observed,
}

// Check evaluates every rule at every resource version of a history, for parents of the given kinds.
func Check(h *History, kinds ...Kind) []Violation {
	var found []Violation
	before, after := newState(h), newState(h)
	for _, e := range h.Events {
		after.apply(e)
		for _, k := range kinds {
			s := &step{h: h, before: before, after: after, e: e, k: k, kinds: kinds, found: &found}
			for _, rule := range rules {
				rule(s)
			}
		}
		before.apply(e)
	}
	return found
}

// violationf notes that the write of this step broke a promise about its object.
func (s *step) violationf(invariant, format string, args ...any) {
	parent := s.e.Object().GetUID()
	if s.e.Key.Resource != s.k.Parents {
		parent = ownerUID(s.e.Object())
	}
	*s.found = append(*s.found, Violation{
		Invariant: invariant, Object: s.e.Key, RV: s.e.RV, Sentence: fmt.Sprintf(format, args...),
		Trail: s.h.trail(s.e.Key, parent, s.e.RV),
	})
}

func (s *step) of(resource schema.GroupVersionResource) bool { return s.e.Key.Resource == resource }

// dependent reports whether the write is about a child or a revision.
func (s *step) dependent() bool { return s.of(s.k.Children) || s.of(s.k.Revisions) }

func (s *step) byManager() bool { return s.h.byManager(s.e) }

// parent returns the parent of this kind that controls an object in a state, nil if there is none (any more).
func (s *step) parent(in *State, o client.Object) client.Object {
	uid := ownerUID(o)
	if k, ok := in.Identity(uid); !ok || k.Resource != s.k.Parents {
		return nil
	}
	return in.ByUID(uid)
}

// takes returns the UID that the write put into the object's ControllerRef, "" if it put none or left it as it was, or
// if that is no parent of this kind.
func (s *step) takes() types.UID {
	ref := controllerOf(s.e.New)
	if ref == nil || ref.UID == ownerUID(s.e.Old) || ref.Kind != s.k.Parent.Kind {
		return ""
	}
	if gv, err := schema.ParseGroupVersion(ref.APIVersion); err != nil || gv.Group != s.k.Parent.Group {
		return ""
	}
	return ref.UID
}

// possible returns the versions of a parent that a controller may have acted on: the one of now, and those that it has
// not said to have seen a successor of. A write is wrong only if it is wrong by all of them, for no controller can see an
// edit before its own write arrives.
func (s *step) possible(parent client.Object) []client.Object {
	return s.before.Generations(parent.GetUID(), min(s.k.ObservedGeneration(parent), parent.GetGeneration()))
}
