package check

import (
	"fmt"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about places for children, for kinds whose children have an order, a number, or a
// partition: P2, P3 and P5 below the partition, R3, S3, and P4 for kinds without revisions.

// memory is what the rules know of parents from the whole history so far.
type memory struct {
	// current is the revision that the children of a parent come from until they are updated. It changes when the
	// controllers may change it, not when they do.
	current map[types.UID]string
	// asked is what parents of a resource have asked for, ever.
	asked map[schema.GroupVersionResource]map[string]bool
}

func newMemory() *memory {
	return &memory{current: map[types.UID]string{}, asked: map[schema.GroupVersionResource]map[string]bool{}}
}

// currentOf is the revision that a parent's children come from until they are updated, "" if that is not known.
func (m *memory) currentOf(k Kind, parent client.Object) string {
	if name, known := m.current[parent.GetUID()]; known {
		return name
	}
	return k.Current(parent)
}

// made returns the parent of a child that the controllers made with this write, nil if they made none.
func (s *step) made() client.Object {
	if !s.of(s.k.Children) || s.e.Type != Added || !s.byManager() {
		return nil
	}
	return s.parent(s.after, s.e.New)
}

// dismissed returns the parent of a child that the controllers deleted with this write and that had not ended by
// itself, nil if they deleted none, or all goes.
func (s *step) dismissed() client.Object {
	if !s.of(s.k.Children) || !recording.StartsToGo(s.e) || !s.byManager() || s.k.Ended(s.e.Old) ||
		s.record.stillborn(s.e.Old.GetUID()) {
		return nil
	}
	parent := s.parent(s.before, s.e.Old)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return nil
	}
	return parent
}

// disturbed returns the parent of a child that the controllers deleted, or changed where it is, nil if they did
// neither.
func (s *step) disturbed() client.Object {
	if s.k.Asked == nil || !s.of(s.k.Children) || s.e.Old == nil || s.e.New == nil || s.e.Old.GetDeletionTimestamp() != nil ||
		s.e.New.GetDeletionTimestamp() != nil || !s.byManager() || !s.rewritten() {
		return s.dismissed()
	}
	return s.parent(s.before, s.e.Old)
}

// most is P2: no child is made at a place that is not asked for, or, without places, beyond the number asked for.
func (s *step) most() {
	parent := s.made()
	if parent == nil || s.k.Most == nil {
		return
	}
	alive := len(s.k.alive(Unit{Children: s.after.Owned(s.k.Children, parent.GetUID())}))
	sentence := ""
	for _, version := range s.possible(parent) {
		most, units := s.k.Most(version), s.k.Units(s.after, version)
		u, placed := unitOf(units, s.e.New)
		switch {
		case len(units) == 0 && (alive <= most || alive-s.unforeseen(parent, most) <= most), placed && u.Wanted:
			return
		case len(units) == 0:
			sentence = fmt.Sprintf("it is one of %d, and %s asks for %d", alive, parent.GetName(), most)
		default:
			sentence = fmt.Sprintf("it is made, and %s asks for %d others", parent.GetName(), most)
		}
	}
	if sentence != "" {
		s.violationf("P2", "%s", sentence)
	}
}

// guarded is P5: where only the current revision may be, a child is made from that one, or from the one that its
// predecessor came from. Which one is current its author knows from a status, which need not be the newest.
func (s *step) guarded() {
	parent := s.made()
	if parent == nil || s.k.Current == nil {
		return
	}
	from, current := s.k.named(s.after, s.e.New), s.memory.currentOf(s.k, parent)
	if from == nil || s.hadBefore(from) {
		return
	}
	for _, name := range append(s.currentsBefore(parent), current) {
		if name == "" || from.GetName() == name || s.holds(parent.GetUID(), name, from) {
			return // its duplicate is as good, if another manager has put that in its place
		}
	}
	for _, version := range s.possible(parent) {
		if u, ok := unitOf(s.k.Units(s.after, version), s.e.New); !ok || u.Wanted && !u.Guarded {
			return
		}
	}
	s.violationf("P5", "it comes from %s, and here only the current revision may be, which is %s", from.GetName(), current)
}

// guardedStays is P3 where only the current revision may be: a child that comes from it is not deleted.
func (s *step) guardedStays() {
	parent := s.dismissed()
	if parent == nil || s.k.Current == nil || !s.h.Audited {
		return
	}
	current := s.memory.currentOf(s.k, parent)
	from := s.k.named(s.before, s.e.Old)
	other := func(name string) bool { return name != current }
	if from == nil || from.GetName() != current || slices.ContainsFunc(s.currentsBefore(parent), other) {
		return
	}
	for _, version := range s.possible(parent) {
		if u, ok := unitOf(s.k.Units(s.before, version), s.e.Old); !ok || !u.Guarded {
			return
		}
	}
	s.violationf("P3", "it is deleted although it comes from %s, and no other revision may be here", current)
}

// hadBefore reports whether the last child of that name came from the revision.
func (s *step) hadBefore(revision client.Object) bool {
	for _, v := range slices.Backward(s.h.Events) {
		if e := v; e.RV < s.e.RV && e.Key == s.e.Key {
			return s.k.Names(e.Object(), revision)
		}
	}
	was := s.h.Initial[s.e.Key]
	return was != nil && s.k.Names(was, revision)
}

// promoted is S3: the status names another revision as the current one only when every unit comes from it, and there is
// at least one, or none is asked for, none is left and none would be held back.
func (s *step) promoted() {
	if s.k.Current == nil || !s.of(s.k.Parents) || s.e.New == nil {
		return
	}
	uid, now := s.e.New.GetUID(), s.k.Current(s.e.New)
	was, known := s.memory.current[uid]
	if !known && s.e.Old != nil {
		was = s.k.Current(s.e.Old)
	}
	s.memory.current[uid] = was
	if now == was {
		return
	}
	if was == "" || !s.byManager() || s.conforms(now) || s.equals(was, now) {
		s.memory.current[uid] = now
		return
	}
	if s.e.Old == nil || s.k.Current(s.e.Old) != now { // it is said once
		s.violationf("S3", "its status says that %s is current instead of %s, and not all children come from it, or some are held back", now, was)
	}
}

// equals reports whether both names are of revisions of the parent that was written with the same content: when one
// takes the place of its duplicate, nothing is promoted.
func (s *step) equals(one, other string) bool {
	uid := s.e.New.GetUID()
	return slices.ContainsFunc(s.readable(uid, one), func(r client.Object) bool { return s.holds(uid, other, r) })
}

// holds reports whether the parent's revision of that name has the same content as another one.
func (s *step) holds(parent types.UID, name string, other client.Object) bool {
	content, err := s.k.Snapshot(other)
	return err == nil && slices.ContainsFunc(s.readable(parent, name), func(r client.Object) bool {
		same, err := s.k.Snapshot(r)
		return err == nil && same == content
	})
}

// readable returns the revision of that name that a parent has, and those that it had as far as the author may have
// read so: somebody else may have deleted one, or let it go, since.
func (s *step) readable(parent types.UID, name string) []client.Object {
	candidates := slices.Concat(s.before.Owned(s.k.Revisions, parent), s.left(parent))
	return slices.DeleteFunc(candidates, func(r client.Object) bool { return r.GetName() != name })
}

// conforms reports whether all units of the parent that was written come from a revision, as its controllers may have
// seen it.
func (s *step) conforms(revision string) bool {
	if revision != s.k.Update(s.e.New) {
		return false
	}
	versions := s.after.Generations(s.e.New.GetUID(), s.k.ObservedGeneration(s.e.New))
	if len(versions) == 0 {
		return false
	}
	from := s.readable(s.e.New.GetUID(), revision)
	return s.ever(s.e.New, func(world *State) bool { return s.k.allFrom(world, versions[0], from) })
}

// allFrom reports whether every wanted unit has a child, all of them come from one of those revisions, which have one
// name, and lack nothing. Where no unit is wanted, none may be left, and none be held back if there were any.
func (k Kind) allFrom(world *State, parent client.Object, revisions []client.Object) bool {
	some, left := false, false
	for _, u := range k.Units(world, parent) {
		if !u.Wanted {
			left = left || len(u.Children) > 0
			continue
		}
		some = true
		children := k.alive(u)
		if len(children) == 0 {
			return false
		}
		for _, child := range children {
			if !slices.ContainsFunc(revisions, func(r client.Object) bool { return k.Names(child, r) }) {
				return false
			}
		}
	}
	return some || !left && k.Holds != nil && !k.Holds(parent)
}

// asAsked is P4 for kinds without revisions: a child is made as its parent asks.
func (s *step) asAsked() {
	parent := s.made()
	if parent == nil || s.k.HasRevisions() || s.k.Asked != nil {
		return
	}
	differs := ""
	for _, version := range s.possible(parent) {
		if differs = s.k.StraysNow(s.sent(), version); differs == "" {
			return
		}
	}
	if differs != "" {
		s.violationf("P4", "it is made for %s, but %s", parent.GetName(), differs)
	}
}

// held reports whether the order of its children keeps a parent from taking one away: a child other than the one that
// goes next does not serve.
func (r *rest) held(parent client.Object) bool {
	if r.k.Ordered == nil || !r.k.Ordered(parent) {
		return false
	}
	next := ""
	for _, u := range slices.Backward(r.k.Units(r.s, parent)) {
		if !u.Wanted && len(r.k.alive(u)) > 0 {
			next = u.Name
			break
		}
	}
	return r.k.halts(r.k.Units(r.s, parent), parent, next, time.Time{}) != ""
}

// units is, at rest, P2: no more children than asked for; and S3: once all units come from the update revision and
// serve, it is the current one, whatever the strategy.
func (r *rest) units(parent client.Object) {
	if r.k.Most != nil {
		alive := r.k.alive(Unit{Children: r.s.Owned(r.k.Children, parent.GetUID())})
		if most := r.k.Most(parent); len(alive) > most && !r.held(parent) {
			r.violationf("P2", r.k.Parents, parent, "it has %d children and asks for %d", len(alive), most)
		}
	}
	if r.k.Current == nil || r.k.Current(parent) == r.k.Update(parent) {
		return
	}
	updated := slices.DeleteFunc(slices.Clone(r.s.Owned(r.k.Revisions, parent.GetUID())), func(o client.Object) bool {
		return o.GetName() != r.k.Update(parent)
	})
	if !r.k.allFrom(r.s, parent, updated) {
		return
	}
	if _, down := r.k.wanted(r.k.Units(r.s, parent), parent, time.Time{}); down == 0 {
		r.violationf("S3", r.k.Parents, parent, "all its children come from %s, and its status says that %s is current",
			r.k.Update(parent), r.k.Current(parent))
	}
}
