package check

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file holds the rules about rollouts and status that hold at every resource version: R1, R2, R4, S1, S2.

// unavailable is R1: when the controllers delete a child that serves, no more units than allowed are without one
// afterwards, of the whole set. A child that does not serve may be replaced at no cost.
func (s *step) unavailable() {
	if !s.of(s.k.Children) || !startsToGo(s.e) || !s.byManager() {
		return
	}
	parent := s.parent(s.before, s.e.Old)
	if parent == nil || parent.GetDeletionTimestamp() != nil {
		return
	}
	when := deletedAt(s.e)
	var worst [3]int
	for _, version := range s.possible(parent) {
		units := s.k.Units(s.before, version)
		u, ok := unitOf(units, s.e.Old)
		if !ok || !u.Wanted || s.k.Ended(s.e.Old) || !s.k.Available(s.e.Old, version, when) || s.k.serves(u, version, s.e.Old, when) {
			return
		}
		wanted, down := s.k.wanted(units, version, when)
		allowed := s.k.Budget(version, wanted).MaxUnavailable
		if down+1 <= allowed || s.knew(version, when)+1 <= allowed {
			return
		}
		worst = [3]int{down, wanted, allowed}
	}
	s.violationf("R1", "it serves and is deleted when %d of %d are unavailable already, and %d may be", worst[0], worst[1], worst[2])
}

// knew is how many units were unavailable for all that the controllers must have seen: the world at their own last write
// for this parent. What others broke after that, they could not know.
func (s *step) knew(parent client.Object, when time.Time) int {
	last := s.e.RV - 1
	if s.h.Audited {
		last = s.h.Origin
		for _, e := range s.h.Events {
			if e.RV >= s.e.RV {
				break
			}
			if o := e.Object(); e.By != nil && s.h.byManager(e) && (o.GetUID() == parent.GetUID() || ownerUID(o) == parent.GetUID()) {
				last = e.RV
			}
		}
	}
	_, down := s.k.wanted(s.k.Units(s.h.At(last), parent), parent, when)
	return down
}

// deletedAt is when the server took a delete: the deletion timestamp says when the grace period will be over. Objects
// without one are deleted at an unknown time.
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

// surge is R2: not more units than allowed hold a child more than they need.
func (s *step) surge() {
	if !s.of(s.k.Children) || s.e.Type != Added || !s.byManager() {
		return
	}
	parent := s.parent(s.after, s.e.New)
	if parent == nil {
		return
	}
	extra, allowed := 0, 0
	for _, version := range s.possible(parent) {
		units := s.k.Units(s.after, version)
		wanted, _ := s.k.wanted(units, version, time.Time{})
		allowed, extra = s.k.Budget(version, wanted).MaxSurge, 0
		for _, u := range units {
			if n := len(s.k.alive(u)); n > 1 {
				extra += n - 1
			}
		}
		u, ok := unitOf(units, s.e.New)
		// A surplus at one place without any surge is P1.
		if extra <= allowed || allowed == 0 || !ok || len(s.k.alive(u)) != 2 {
			return
		}
	}
	s.violationf("R2", "it is one of %d that are there in addition, and %d may be", extra, allowed)
}

// completeMeans is R4: a status that says that the rollout is over says so of the content of every child.
func (s *step) completeMeans() {
	if !s.statusWritten() || !s.k.Complete(s.e.New) || s.e.Old != nil && s.k.Complete(s.e.Old) {
		return
	}
	for _, u := range s.k.Units(s.after, s.e.New) {
		for _, child := range s.k.alive(u) {
			if strays := s.k.StraysNow(child, s.e.New); u.Wanted && strays != "" {
				s.violationf("R4", "its status says that the rollout is over, but of %s, %s", child.GetName(), strays)
				return
			}
		}
	}
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

// statusWritten reports whether the write changed the status of a parent. Three rules ask; comparing costs more than they
// do.
func (s *step) statusWritten() bool {
	if !s.of(s.k.Parents) || s.e.New == nil {
		return false
	}
	if s.status == nil {
		s.status = new(s.e.Old == nil || !sameTree(s.e.Old, s.e.New, "status"))
	}
	return *s.status
}
