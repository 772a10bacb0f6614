package check

import (
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is about children that have no places, only a number: how many there may be beyond it (P2) when several
// managers act, and which of them may go (P3).

// unforeseen is how many children beyond its number a parent may have right after one was made, because its author
// could not know of others. Two managers that know nothing of each other ask for the same names, so that what one of
// them made under a name that is new does not excuse the other one. It is excused by what it has not seen and what came
// without such a name: an orphan that somebody else adopted, a child whose name became free and was given again; by
// what was made when more than most were asked for, as it does not ask for all those names; and, if its own child has
// such a name, by whatever it has not seen. No controller could do better: nothing ties the adoption of an orphan to a
// name, and a name has to become free some day. A manager that is alone sees all that it did.
func (s *step) unforeseen(parent client.Object, most int) int {
	again := s.again(s.e.Key)
	out := 0
	for _, child := range s.k.alive(Unit{Children: s.after.Owned(s.k.Children, parent.GetUID())}) {
		came := s.came(child)
		if came == nil || came.RV == s.e.RV || s.own(*came) || s.knew(parent, child, came.RV) {
			continue
		}
		then := s.record.at(parent.GetUID(), came.RV)
		if again || came.Type != Added || s.again(came.Key) || then != nil && s.k.Most(then) > most {
			out++
		}
	}
	return out
}

// knew reports whether the author of the write had seen a child that came with a version: in its caches, or in a list
// past them. Such a list asks for the parent's labels: a child that somebody has relabelled meanwhile is not in it.
func (s *step) knew(parent, child client.Object, came uint64) bool {
	if came > s.since(s.k.Children, parent.GetUID()) {
		return false
	}
	p := s.pass()
	return p == nil || p.Views == nil || came <= max(p.Views[s.k.Children], p.Born) || s.record.shownBy(s.e.By, child, s.k.Children) >= came
}

// came is the write with which a child became that of its parent, nil if it was from the start.
func (s *step) came(child client.Object) *Event {
	for _, i := range slices.Backward(s.record.family[child.GetUID()]) {
		e := &s.h.Events[i]
		if i <= s.index && (e.Type == Added || ownerUID(e.Old) != ownerUID(child)) {
			return e
		}
	}
	return nil
}

// again reports whether an object that is gone by now had that name before.
func (s *step) again(k Key) bool {
	for _, m := range s.record.moments[k] {
		if m.rv <= s.e.RV && m.object == nil {
			return true
		}
	}
	return false
}

// worstFirst is P3 for kinds that ask for a number of children: none is deleted unless there are too many, and none
// that is ready while as many are not as there are too many. Only an audited history tells whose delete it was.
func (s *step) worstFirst() {
	parent := s.dismissed()
	if parent == nil || !s.h.Audited || s.k.Most == nil || s.k.HasRevisions() || s.k.Asked != nil {
		return
	}
	for world := range s.worlds(parent.GetUID(), false) {
		for _, version := range s.possible(parent) {
			surplus, worse := s.surplusOf(world, version)
			if surplus > worse {
				return
			}
		}
	}
	surplus, worse := s.surplusOf(s.before, parent)
	s.violationf("P3", "it is deleted, there are %d too many, and %d others that are not ready", max(surplus, 0), worse)
}

// surplusOf counts, in a world, how many children the parent has too many, and how many of the others go before the one
// that was deleted, because it is ready and they are not.
func (s *step) surplusOf(world *State, parent client.Object) (surplus, worse int) {
	ready := func(child client.Object) bool { return s.k.Available(child, parent, time.Time{}) }
	alive := s.k.alive(Unit{Children: world.Owned(s.k.Children, parent.GetUID())})
	surplus, last := len(alive)-s.k.Most(parent), false
	for _, child := range alive {
		if child.GetUID() == s.e.Old.GetUID() {
			last = ready(child)
		} else if !ready(child) {
			worse++
		}
	}
	if !last {
		worse = 0
	}
	return surplus, worse
}
