package check

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/content"
)

// This file holds the rules about rollouts and status that hold at every resource version: R1, R2, R4, S1, S2.

// unavailable is R1: when the controllers delete a child that serves, or change it where it is, no more units than
// allowed are without one afterwards, of the whole set. A child that does not serve may be replaced at no cost.
func (s *step) unavailable() {
	parent := s.disturbed()
	if parent == nil || s.k.Asked != nil && s.pass() == nil && s.another(parent.GetUID()) {
		return // a pass asks a hook before it acts; what another manager did meanwhile it cannot have seen
	}
	first := ""
	for world := range s.worlds(parent.GetUID(), false) {
		for _, version := range s.possible(parent) {
			why := s.costs(world, version)
			if why == "" {
				return
			}
			first = cmp.Or(first, why)
		}
	}
	if first != "" {
		s.violationf("R1", "it serves and is %s when %s", s.how(), first)
	}
}

// how says what became of a child that was disturbed.
func (s *step) how() string {
	if s.e.New != nil && s.e.New.GetDeletionTimestamp() == nil {
		return "changed"
	}
	return "deleted"
}

// costs says why the child that was deleted could not be spared, "" if it could.
func (s *step) costs(world *State, parent client.Object) string {
	when := deletedAt(s.e)
	units := s.k.Units(world, parent)
	u, ok := unitOf(units, s.e.Old)
	if !ok || !u.Wanted || !s.k.Available(s.e.Old, parent, s.decidedAt()) || s.k.serves(u, parent, s.e.Old, when) {
		return ""
	}
	wanted, _ := s.k.wanted(units, parent, when)
	_, down := s.k.wanted(s.fillable(world, parent, ""), parent, when)
	allowed := s.k.Budget(parent, wanted).MaxUnavailable
	if down+1 <= allowed {
		return ""
	}
	return fmt.Sprintf("%d of %d are unavailable already, and %d may be", down, wanted, allowed)
}

// decidedAt is the earliest time at which the author of a delete may have looked at what it deletes: some children
// serve only after a while.
func (s *step) decidedAt() time.Time {
	if p := s.pass(); p != nil && !p.At.IsZero() {
		return p.At
	}
	if at := deletedAt(s.e); !at.IsZero() {
		return at.Add(-time.Second)
	}
	return time.Time{}
}

// deletedAt is when the server took a delete, and the latest time at which its author may have looked at what else
// there is. The deletion timestamp says when the grace period will be over. Objects without one are deleted at an
// unknown time.
func deletedAt(e Event) time.Time {
	if e.New == nil || e.New.GetDeletionTimestamp() == nil {
		return time.Time{}
	}
	at := e.New.GetDeletionTimestamp().Time
	if grace := e.New.GetDeletionGracePeriodSeconds(); grace != nil {
		at = at.Add(-time.Duration(*grace) * time.Second)
	}
	return at.Add(time.Second) // timestamps are cut to seconds: up to one may have passed
}

// surge is R2: not more of the units where children may be than allowed hold one more than they need.
func (s *step) surge() {
	parent := s.made()
	if parent == nil {
		return
	}
	first := ""
	for world := range s.worlds(parent.GetUID(), true) {
		for _, version := range s.possible(parent) {
			why := s.exceeds(world, version)
			if why == "" {
				return
			}
			first = cmp.Or(first, why)
		}
	}
	if first != "" {
		s.violationf("R2", "it is one of %s", first)
	}
}

// exceeds says how the child that was made is more than the surge allows, "" if it is not.
func (s *step) exceeds(world *State, parent client.Object) string {
	units := s.k.Units(world, parent)
	wanted, _ := s.k.wanted(units, parent, time.Time{})
	budget, extra := s.k.Budget(parent, wanted), 0
	counts := func(u Unit) bool { return !budget.Beside || s.k.serves(u, parent, nil, s.decidedAt()) }
	for _, u := range units {
		// Where none may be all are to go, and that is no part of a rollout.
		if n := len(s.k.alive(u)); u.MayStay && n > 1 && counts(u) {
			extra++
		}
	}
	allowed := budget.MaxSurge
	u, ok := unitOf(units, s.e.New)
	// A surplus at one place without any surge is P1.
	if extra <= allowed || allowed == 0 || !ok || len(s.k.alive(u)) != 2 || !counts(u) {
		return ""
	}
	return fmt.Sprintf("%d that are there in addition, and %d may be", extra, allowed)
}

// completeMeans is R4: a status that says that the rollout is over says so of the content of every child.
func (s *step) completeMeans() {
	if !s.statusWritten() || !s.k.Complete(s.e.New) || s.e.Old != nil && s.k.Complete(s.e.Old) || s.misled() {
		return
	}
	first := ""
	for world := range s.worlds(s.e.New.GetUID(), true) {
		stray := s.k.stray(world, s.e.New)
		if stray == "" {
			return
		}
		first = cmp.Or(first, stray)
	}
	s.violationf("R4", "its status says that the rollout is over, but of %s", first)
}

// misled reports whether the update revision that the status names holds something else than the parent asks for. When
// its name was written it did not, that is updateMeans; somebody has made another one under that name since, and until
// the next pass finds out it is what children are compared with.
func (s *step) misled() bool {
	if s.k.Update == nil {
		return false
	}
	named := s.readable(s.e.New.GetUID(), s.k.Update(s.e.New))
	return len(named) > 0 && !slices.ContainsFunc(named, func(r client.Object) bool { return s.k.asked(s.e.New, r) })
}

// updateMeans is R4 for the name of the update revision: when it is written, or said to go for another generation, it
// is that of a revision which holds what the parent asks for in that generation. What takes the place of its duplicate
// is as right or wrong as that was.
func (s *step) updateMeans() {
	if s.k.Update == nil || !s.statusWritten() || s.k.Update(s.e.New) == "" {
		return
	}
	name, observed := s.k.Update(s.e.New), s.k.ObservedGeneration(s.e.New)
	if old := s.e.Old; old != nil && observed == s.k.ObservedGeneration(old) && (s.k.Update(old) == name || s.equals(s.k.Update(old), name)) {
		return
	}
	versions := s.after.Generations(s.e.New.GetUID(), observed)
	if len(versions) == 0 {
		return // this is S1
	}
	for _, r := range s.readable(s.e.New.GetUID(), name) {
		if _, err := s.k.Snapshot(r); err != nil || s.k.asked(versions[0], r) {
			return // of what cannot be read, the author may know by its stamp
		}
	}
	s.violationf("R4", "its status says that %s is what generation %d asks for, and it holds something else or is not there", name, observed)
}

// stray returns a child that is not as the parent asks, and in what, "" if there is none.
func (k Kind) stray(world *State, parent client.Object) string {
	for _, u := range k.Units(world, parent) {
		for _, child := range k.alive(u) {
			if strays := k.StraysNow(child, parent); u.Wanted && strays != "" {
				return child.GetName() + ", " + strays
			}
		}
		if k.CompleteServes && u.Wanted && !k.serves(u, parent, nil, time.Time{}) {
			return u.Name + ", where nothing serves"
		}
	}
	return ""
}

// plausible is S1: no counter is negative, and none contradicts another.
func (s *step) plausible() {
	if !s.statusWritten() {
		return
	}
	for _, sentence := range s.k.Implausible(s.e.New) {
		s.violationf("S1", "%s", sentence)
	}
}

// observed is S2: the observed generation never falls.
func (s *step) observed() {
	if !s.statusWritten() || s.e.Old == nil {
		return
	}
	if old, now := s.k.ObservedGeneration(s.e.Old), s.k.ObservedGeneration(s.e.New); now < old {
		s.violationf("S2", "the observed generation fell from %d to %d", old, now)
	}
}

// statusWritten reports whether the controllers changed the status of a parent. Three rules ask; comparing costs more
// than they do.
func (s *step) statusWritten() bool {
	if !s.of(s.k.Parents) || s.e.New == nil || !s.byManager() {
		return false
	}
	if s.status == nil {
		s.status = new(s.e.Old == nil || !content.Same(s.e.Old, s.e.New, "status"))
	}
	return *s.status
}
