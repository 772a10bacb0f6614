package check

import (
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file replays a history and hands every write to every rule.

// step is one write as the rules see it, for one kind of parent.
type step struct {
	h      *History
	record *record
	// before and after are the world around the write.
	before, after *State
	// e is the write, and index its place among all.
	e     Event
	index int
	// k is the kind, of all kinds under test.
	k     Kind
	kinds []Kind
	found *[]Violation
	// memory is what of the past the rules about units need.
	memory *memory
	// status is what statusWritten found out, views what since did.
	status *bool
	views  map[schema.GroupVersionResource]uint64
}

// rules are those that must hold at every resource version. Each one looks at a write and is silent about writes that
// are not its business.
var rules = []func(*step){
	(*step).numbers, (*step).liveRevision, (*step).revisionData, (*step).stamp,
	(*step).fenced, (*step).collision,
	(*step).controllerRef, (*step).looked, (*step).afterTheEnd, (*step).foreign,
	(*step).onePerUnit, (*step).newName, (*step).conformingStays, (*step).content, (*step).precondition,
	(*step).unavailable, (*step).surge, (*step).claimsFollow,
	(*step).completeMeans, (*step).updateMeans, (*step).plausible, (*step).observed,
	(*step).afterAFailure, (*step).hooked,
	(*step).most, (*step).guarded, (*step).guardedStays, (*step).filled, (*step).emptied, (*step).beforeOthersEnd, (*step).promoted,
	(*step).claim, (*step).asAsked, (*step).worstFirst,
	(*step).heldStays, (*step).madeAsAsked, (*step).askedStays, (*step).lostReturns, (*step).comesBack, (*step).everAsked, (*step).claimKept,
	(*step).firstName,
	(*step).started, (*step).replacedRun, (*step).surplusRun, (*step).servedRises,
	(*step).undone,
}

// Check evaluates every rule at every resource version of a history, for parents of the given kinds.
func Check(h *History, kinds ...Kind) []Violation {
	var found []Violation
	kinds = eachRemembering(kinds)
	before, after, past := newState(h), newState(h), newMemory()
	before.places = after.places
	all := newRecord(h)
	for i, e := range h.Events {
		after.apply(e)
		for _, k := range kinds {
			s := &step{
				h: h, record: all, index: i, before: before, after: after, e: e, k: k, kinds: kinds, found: &found, memory: past,
			}
			for _, rule := range rules {
				rule(s)
			}
		}
		before.apply(e)
		before.units = after.units // the two worlds are the same again
	}
	for _, k := range kinds {
		found = append(found, refusals(h, k)...)
		found = append(found, restored(h, all, k)...)
		found = append(found, sent(h, all, k)...)
	}
	return once(append(found, hasty(h)...))
}

// once leaves out what is said again: of parents that several kinds have, one for each resource of their children.
func once(all []Violation) []Violation {
	type said struct {
		invariant, sentence string
		object              Key
		rv                  uint64
	}
	seen := map[said]bool{}
	return slices.DeleteFunc(all, func(v Violation) bool {
		is := said{v.Invariant, v.Sentence, v.Object, v.RV}
		before := seen[is]
		seen[is] = true
		return before
	})
}

// violationf notes that the write of this step broke a promise about its object.
func (s *step) violationf(invariant, format string, args ...any) {
	parent := s.e.Object().GetUID()
	if s.e.Key.Resource != s.k.Parents {
		parent = ownerUID(s.e.Object())
	}
	*s.found = append(*s.found, Violation{
		Invariant: invariant, Object: s.e.Key, RV: s.e.RV, Sentence: fmt.Sprintf(format, args...),
		Trail: trail(s.h, s.e.Key, parent, s.e.RV), Replay: s.h.Replay,
	})
}

func (s *step) of(resource schema.GroupVersionResource) bool { return s.e.Key.Resource == resource }

// dependent reports whether the write is about a child or a revision.
func (s *step) dependent() bool { return s.of(s.k.Children) || s.of(s.k.Revisions) }

func (s *step) byManager() bool { return s.h.ByManager(s.e) }

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
