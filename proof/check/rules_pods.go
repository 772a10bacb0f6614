package check

import (
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about single children: P1, P3, P4, P6.

// onePerUnit is P1: a child is made only where there is none, or, with surge, one. A child that is going still runs; it
// counts unless a surge is allowed. One that has ended holds no place. Two managers that know nothing of each other
// make the same child, because its name follows from what it is for, and from the child that it replaces: under names
// that were never used before, two for the same revision are wrong, whatever their authors have seen. A name that is
// used again says that its author did not know of the last child there, because it had just started or its cache lags.
// From there on the two know of different children: the name of the one that replaces it is excused as well.
func (s *step) onePerUnit() {
	parent := s.made()
	if parent == nil {
		return
	}
	crowded := ""
	for world := range s.worlds(parent.GetUID(), true) {
		for _, version := range s.possible(parent) {
			unit, crowds := s.crowds(world, version)
			if !crowds && (world == s.after || !s.double(version)) || crowds && s.besideAnother(version) {
				return
			}
			crowded = unit
		}
	}
	if crowded != "" {
		s.violationf("P1", "it is made at %s, where there are enough", crowded)
	}
}

// crowds reports whether the child that was made is one too many where it is, and names the place.
func (s *step) crowds(world *State, parent client.Object) (unit string, crowds bool) {
	units := s.k.Units(world, parent)
	u, ok := unitOf(units, s.e.New)
	if !ok {
		return "", false
	}
	wanted, _ := s.k.wanted(units, parent, s.e.New.GetCreationTimestamp().Time)
	running, most := 0, 1
	for _, child := range u.Children {
		if !s.k.Ended(child) {
			running++
		}
	}
	if s.k.Budget(parent, wanted).MaxSurge > 0 {
		running, most = len(s.k.alive(u)), 2
	}
	return u.Name, running > most
}

// double reports whether the controllers made another child for the same place and revision, which is there and has
// another name than the one that was made now, and both names are new.
func (s *step) double(parent client.Object) bool {
	from := s.k.named(s.after, s.e.New)
	u, ok := unitOf(s.k.Units(s.after, parent), s.e.New)
	if from == nil || !ok || s.record.reused(s.e) {
		return false
	}
	return slices.ContainsFunc(s.k.alive(u), func(other client.Object) bool {
		born := s.record.born(other.GetUID())
		return other.GetUID() != s.e.New.GetUID() && s.k.Names(other, from) && born != nil && s.h.ByManager(*born) &&
			!s.record.reused(*born) && !s.forked(*born, from)
	})
}

// besideAnother reports whether, in a history without passes, there is a child of another manager where the child was
// made, under other names than new ones, and it came after what the author wrote in an earlier pass. It may have come
// during the pass, which works with the caches of its beginning. A pass ends with the status, so that what was written
// before the last one was an earlier pass's.
func (s *step) besideAnother(parent client.Object) bool {
	u, ok := unitOf(s.k.Units(s.after, parent), s.e.New)
	if !ok || s.pass() != nil || !s.h.Audited || s.double(parent) {
		return false
	}
	seen, ended := uint64(0), false
	for e := range s.record.before(parent.GetUID(), s.e.RV) {
		if s.own(e) && ended && e.Key.Resource == s.k.Children {
			seen = e.RV
			break
		}
		ended = ended || s.own(e) && e.Key.Resource == s.k.Parents
	}
	return slices.ContainsFunc(u.Children, func(other client.Object) bool {
		born := s.record.born(other.GetUID())
		return born != nil && born.RV > seen && s.h.ByManager(*born) && !s.own(*born)
	})
}

// forked reports whether the author of the write and that of another child, both for one place and one revision, know
// of different children there: of the last one before either, whose name had been used before, and which only one of
// them has seen.
func (s *step) forked(other Event, from client.Object) bool {
	if s.k.Place == nil {
		return false
	}
	parent, place, then := ownerUID(s.e.New), s.k.Place(s.e.New), *s
	then.e = other
	for _, made := range []Event{s.e, other} {
		last := s.record.lastAt(parent, made, func(child client.Object) bool {
			return s.k.Place(child) == place && s.k.Names(child, from)
		})
		if last != nil && s.record.reused(*last) && s.knows(*last) != then.knows(*last) {
			return true
		}
	}
	return false
}

// knows reports whether the author of the write knows of another child: it made it, or its caches have shown that it
// was made.
func (s *step) knows(made Event) bool {
	return s.own(made) || s.hasSeen(ownerUID(made.New), made) || s.pass() != nil && s.pass().Views[s.k.Children] >= made.RV
}

// reused reports whether something else had the name before that was made by an event.
func (r *record) reused(made Event) bool {
	return slices.ContainsFunc(r.moments[made.Key], func(m moment) bool { return m.rv < made.RV })
}

// conformingStays is P3: the controllers delete no child that is as the spec asks, unless it has ended, is surplus, or
// is where none may be. Only an audited history tells whose delete it was.
func (s *step) conformingStays() {
	parent := s.dismissed()
	if parent == nil || !s.h.Audited || !s.k.HasRevisions() || s.k.Asked != nil {
		return
	}
	from := s.k.named(s.before, s.e.Old)
	if from == nil {
		return
	}
	for world := range s.worlds(parent.GetUID(), false) {
		for _, version := range s.possible(parent) {
			u, ok := unitOf(s.k.Units(world, version), s.e.Old)
			if !s.k.asked(version, from) || !ok || !u.MayStay || s.surplus(u, from) {
				return
			}
		}
	}
	s.violationf("P3", "it is deleted although it comes from %s, which is what %s asks for", from.GetName(), parent.GetName())
}

// surplus reports whether a unit holds another child of the revision beside the written child. Admission may have
// changed the label of the other child.
func (s *step) surplus(u Unit, from client.Object) bool {
	return slices.ContainsFunc(s.k.alive(u), func(other client.Object) bool {
		return other.GetUID() != s.e.Old.GetUID() && (s.k.Names(other, from) || s.k.Strays(other, from) == "")
	})
}

// content is P4: when a child is made, or is told that it came from another revision, it is what that revision asks
// for.
func (s *step) content() {
	if s.k.Asked != nil || !s.of(s.k.Children) || s.e.New == nil || !s.byManager() || !s.k.Labelled(s.e.New) ||
		s.parent(s.after, s.e.New) == nil {
		return
	}
	made := s.sent()
	from := s.k.named(s.after, made)
	if s.e.Old != nil {
		if from == nil || (s.k.Names(s.e.Old, from) || s.renamed(from)) && content.Same(s.e.Old, s.e.New, "spec") {
			return
		}
	}
	if from == nil {
		from = s.lost(made)
	}
	if from == nil {
		s.violationf("P4", "the revision that it says it comes from does not exist")
		return
	}
	if strays := s.astray(made, from); strays != "" {
		s.violationf("P4", "it says that it comes from %s, but %s", from.GetName(), strays)
	}
}

// astray says how a child differs from a revision, empty if it is what one of the revisions asks for that it may mean.
func (s *step) astray(made, from client.Object) string {
	if slices.ContainsFunc(s.namesakes(made), func(r client.Object) bool { return s.k.Strays(made, r) == "" }) {
		return ""
	}
	return s.k.Strays(made, from)
}

// namesakes are all revisions that a child may mean by what it says of its own, as far as its author may have read
// them: somebody may have given one the label of another.
func (s *step) namesakes(child client.Object) []client.Object {
	all := slices.Concat(s.after.Owned(s.k.Revisions, ownerUID(child)), s.left(ownerUID(child)))
	return slices.DeleteFunc(all, func(r client.Object) bool { return !s.k.Names(child, r) })
}

// sent is what was written, as its author sent it: what admission has made of a new object is not its author's.
func (s *step) sent() client.Object {
	if s.e.Old == nil && s.e.By != nil && s.e.By.Sent != nil {
		return s.e.By.Sent
	}
	return s.e.New
}

// renamed reports whether the child said that it came from another revision that holds the same, as far as the author
// may have read it: whatever was wrong about that is not the fault of this write. Somebody may have made that revision
// under a name that one with other content had before, and what the child was made from is gone then.
func (s *step) renamed(from client.Object) bool {
	uid := ownerUID(s.e.New)
	holds, err := s.k.Snapshot(from)
	return err == nil && slices.ContainsFunc(slices.Concat(s.before.Owned(s.k.Revisions, uid), s.left(uid)), func(r client.Object) bool {
		same, err := s.k.Snapshot(r)
		return err == nil && same == holds && s.k.Names(s.e.Old, r)
	})
}

// lost returns the revision that a child which was written names, if it is gone, or was let go, only since the author
// may have read it.
func (s *step) lost(made client.Object) client.Object {
	for _, r := range s.left(ownerUID(s.e.New)) {
		if s.k.Names(made, r) {
			return r
		}
	}
	return nil
}

// precondition is P6: a delete by the controllers names the UID and the version that was read: what was deleted and
// made again, or serves by now, stays. Only an audited history tells.
func (s *step) precondition() {
	if !s.dependent() || !s.h.Audited || !s.byManager() || !recording.StartsToGo(s.e) || s.e.By.Unread {
		return
	}
	switch by := s.e.By; {
	case by.Precondition == "":
		s.violationf("P6", "it is deleted by name only")
	case by.PreconditionRV == "":
		s.violationf("P6", "it is deleted whatever has become of it since it was read")
	}
}
