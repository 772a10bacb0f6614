package check

import (
	"iter"
	"slices"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file says what happened to revisions so lately that the author of a write may not have seen it.

// madeByOthers are the revisions of a parent that somebody else has made, so lately that the author may not have seen
// them, the oldest first.
func (s *step) madeByOthers(parent types.UID) []types.UID {
	var out []types.UID
	for e := range s.late(parent) {
		if ownerUID(e.Old) != parent && ownerUID(e.New) == parent && !s.own(e) {
			out = append(out, e.New.GetUID())
		}
	}
	slices.Reverse(out)
	return out
}

// left returns the revisions of a parent as they were before they changed or went, as far as the author may have read
// them so.
func (s *step) left(parent types.UID) []client.Object {
	var out []client.Object
	for e := range s.late(parent) {
		if ownerUID(e.Old) == parent {
			out = append(out, e.Old)
		}
	}
	return out
}

// late yields what happened to the revisions of a parent so lately that the author's cache may not have shown it,
// newest first.
func (s *step) late(parent types.UID) iter.Seq[Event] {
	return func(yield func(Event) bool) {
		from := s.since(s.k.Revisions, parent)
		for e := range s.record.before(parent, s.e.RV) {
			if e.RV > from && e.Key.Resource == s.k.Revisions && !yield(e) {
				return
			}
		}
	}
}

// currentsBefore are the revisions that the status of a parent named as the current one before its last changes, as far
// as the author may not have read of those.
func (s *step) currentsBefore(parent client.Object) []string {
	var out []string
	from := s.since(s.k.Parents, parent.GetUID())
	for e := range s.record.before(parent.GetUID(), s.e.RV) {
		if e.RV > from && e.Key.Resource == s.k.Parents && e.Old != nil && e.Old.GetUID() == parent.GetUID() {
			out = append(out, s.k.Current(e.Old))
		}
	}
	return out
}
