package check

import (
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rule about the names of children, P7: who waits until a child is not found must not wait for
// ever.

// newName is P7: a child never has the name of the one that it replaces, if its author has seen that one. What another
// process has seen it need not know; nor what came and went between two of its passes. One that its parent had let go
// of by then, or lost, is replaced by nothing.
func (s *step) newName() {
	at := s.k.replaces()
	if at == nil || !s.of(s.k.Children) || s.e.Type != Added || s.pass() == nil || !s.byManager() ||
		s.parent(s.after, s.e.New) == nil { // in a world of several kinds, it is another one's
		return
	}
	place, parent := at(s.e.New), ownerUID(s.e.New)
	if place == "" { // admission has taken off where it is to be, so that it is in nobody's place
		return
	}
	last := s.record.lastAt(parent, s.e, func(child client.Object) bool { return at(child) == place })
	if last == nil || last.Key != s.e.Key || ownerUID(s.record.last(last.New.GetUID(), s.e.RV)) != parent {
		return
	}
	if s.hasSeen(parent, *last) {
		s.violationf("P7", "the child that it replaces at %s had the same name", place)
	}
}

// replaces says what a child and the one that it replaces have in common: their place or, of children that are but a
// number, nothing but the name that must not be the same. It is nil where names say more.
func (k Kind) replaces() func(child client.Object) string {
	if k.Place == nil && k.Most != nil && !k.HasRevisions() && k.Asked == nil {
		return client.Object.GetName
	}
	return k.Place
}

// stillborn reports whether admission has taken off a new object one of the labels by which its author would know it as
// its own.
func (r *record) stillborn(uid types.UID) bool {
	born := r.born(uid)
	if born == nil || born.By == nil || born.By.Sent == nil {
		return false
	}
	for key := range born.By.Sent.GetLabels() {
		if _, stored := born.New.GetLabels()[key]; !stored {
			return true
		}
	}
	return false
}

// lastAt returns how the last child of a parent began before another one that some condition holds for, nil if none
// did. What admission had made useless was none.
func (r *record) lastAt(parent types.UID, before Event, holds func(child client.Object) bool) *Event {
	for e := range r.before(parent, before.RV) {
		if e.Type == Added && e.Key.Resource == before.Key.Resource && ownerUID(e.New) == parent && holds(e.New) &&
			!r.stillborn(e.New.GetUID()) {
			return &e
		}
	}
	return nil
}

// hasSeen reports whether the author of the write has seen a child that is gone by now: its process deleted it, or
// wrote for its parent in an earlier pass whose caches showed it as that parent's: an orphan is nobody's to be
// replaced.
func (s *step) hasSeen(parent types.UID, born Event) bool {
	end := s.record.end(born.New.GetUID())
	for e := range s.record.before(parent, s.e.RV) {
		switch {
		case e.RV <= born.RV:
			return false
		case !s.own(e) || e.By.Pass.ID == s.pass().ID:
		case e.Object().GetUID() == born.New.GetUID() && recording.StartsToGo(e):
			return true
		case e.By.Pass.Views != nil:
			view := e.By.Pass.Views[s.k.Children]
			if shown := s.record.at(born.New.GetUID(), view); shown != nil && ownerUID(shown) == parent && (end == 0 || view < end) {
				return true
			}
		}
	}
	return false
}
