package check

import (
	"slices"
	"strings"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/proof/check/content"
	"github.com/cairn-dev/cairn/rollback"
)

// This file holds the rules about rollouts that fail: U1 to U3 about those that are undone by themselves, and U4 about
// what is said at rest.

// undone is U1 to U3: a controller changes what a parent asks for only to undo a rollout that has failed, where that is
// asked for, once, and to what is known to have worked.
func (s *step) undone() {
	if !s.of(s.k.Parents) || s.e.Old == nil || s.e.New == nil || !s.byManager() || s.e.New.GetGeneration() == s.e.Old.GetGeneration() ||
		s.e.New.GetDeletionTimestamp() != nil {
		return
	}
	back := rollback.NoteOf(s.e.New)
	does, deadline := s.e.Old.GetAnnotations()[rollback.OnDeadlineAnnotation], deadlineOf(s.e.Old)
	switch before := rollback.NoteOf(s.e.Old); {
	case back == nil || before != nil && *before == *back:
		s.violationf("U1", "a controller has changed what it asks for, and does not say why")
		return
	case !strings.HasPrefix(does, "undo") || deadline == 0:
		s.violationf("U1", "its rollout is undone, and nobody has asked for that (%q within %s)", does, deadline)
	case before != nil && before.From == back.From:
		s.violationf("U1", "the rollout to %s is undone a second time", back.From)
	case s.lastEdit() == "manager":
		s.violationf("U1", "what a controller has gone back to is undone, and nobody has edited it since")
	}
	if rollback.GoodOf(s.e.Old).Last.Name == back.From {
		s.violationf("U3", "the rollout to %s is undone, which was the last good one: a user went back to it", back.From)
	}
	s.wasGood(back.To)
	s.inTime(deadline)
	if !s.ever(s.e.Old, func(world *State) bool { return s.unfinished(world, s.e.Old) }) {
		s.violationf("U2", "its rollout to %s is undone, and every child that may be updated is updated and available", back.From)
	}
	s.stillStuck(back.From, deadline)
}

// unfinished reports whether some wanted unit that is not guarded lacks an available child of the wanted content. It
// looks at all resources of the parent's children. It is true if there is no such unit.
func (s *step) unfinished(world *State, parent client.Object) bool {
	units := 0
	for _, k := range s.kinds {
		if k.Parents != s.k.Parents {
			continue
		}
		for _, u := range k.Units(world, parent) {
			if !u.Wanted || u.Guarded {
				continue
			}
			units++
			if !slices.ContainsFunc(k.alive(u), func(child client.Object) bool {
				return k.Available(child, parent, s.decidedAt()) && k.StraysNow(child, parent) == ""
			}) {
				return true
			}
		}
	}
	return units == 0
}

// inTime is U2 for the edit that is undone: a whole deadline has passed since.
func (s *step) inTime(deadline time.Duration) {
	for _, e := range slices.Backward(s.h.Events[:s.index]) {
		if e.Key != s.e.Key || e.New == nil || e.New.GetUID() != s.e.New.GetUID() {
			continue
		}
		if e.Old != nil && s.k.Target(e.Old) == s.k.Target(e.New) {
			continue
		}
		if e.By != nil && s.e.By != nil && !e.By.At.IsZero() && s.e.By.At.Sub(e.By.At) < deadline {
			s.violationf("U2", "it is undone %s after its edit, and its deadline is %s", s.e.By.At.Sub(e.By.At), deadline)
		}
		return
	}
}

func deadlineOf(parent client.Object) time.Duration {
	d, _ := time.ParseDuration(parent.GetAnnotations()[rollback.ProgressDeadlineAnnotation]) // what is none is no deadline
	return d
}

// lastEdit says who made the generation that the parent had before this write.
func (s *step) lastEdit() string {
	for _, e := range slices.Backward(s.h.Events[:s.index]) {
		if e.Key != s.e.Key || e.New == nil || e.New.GetUID() != s.e.New.GetUID() {
			continue
		}
		if e.Old == nil || e.Old.GetGeneration() != e.New.GetGeneration() {
			if s.h.ByManager(e) && e.Old != nil {
				return "manager"
			}
			return "user"
		}
	}
	return "user"
}

// wasGood is U3: while the parent asked for the content that it is rolled back to, every wanted unit, of more than
// zero, was available with that content. The units may have been available at different times: a manager reads one
// child before another.
func (s *step) wasGood(to string) {
	wanted, seen, world := s.k.Target(s.e.New), map[string]bool{}, newState(s.h)
	for _, e := range s.h.Events[:s.index] {
		world.apply(e)
		parent := world.ByUID(s.e.New.GetUID())
		if parent == nil || s.k.Target(parent) != wanted {
			clear(seen)
		} else if s.allWorked(world, parent, seen) {
			return
		}
	}
	s.violationf("U3", "it is rolled back to %s, and not all children of that content were available", to)
}

// allWorked adds the units that are available with the content that parent asks for to seen, and reports whether all
// wanted units, of more than zero, are there. A node of a DaemonSet counts once it has a pod: before that the manager's
// cache may not have it.
func (s *step) allWorked(world *State, parent client.Object, seen map[string]bool) bool {
	wanted, worked := 0, 0
	for _, u := range s.k.Units(world, parent) {
		if !u.Wanted || s.k.Most == nil && len(u.Children) == 0 {
			continue
		}
		wanted++
		for _, child := range s.k.alive(u) {
			if s.k.Available(child, parent, time.Time{}) && s.k.StraysNow(child, parent) == "" {
				seen[u.Name] = true
			}
		}
		if seen[u.Name] {
			worked++
		}
	}
	return wanted > 0 && worked == wanted
}

// stillStuck is U2: when a rollout is undone, no more children of it are available than were a whole deadline before,
// as far as its author has looked. Of children that are available only after a while nobody can tell from the outside.
func (s *step) stillStuck(from string, deadline time.Duration) {
	if content.Int64At(s.e.Old, "spec", "minReadySeconds") > 0 || s.e.By == nil || s.e.By.At.IsZero() || s.pass() == nil {
		return
	}
	most, atPass, latest, at := 0, 0, 0, time.Time{}
	world := newState(s.h)
	for _, e := range s.h.Events[:s.index] {
		world.apply(e)
		if e.By != nil && !e.By.At.IsZero() {
			at = e.By.At // a write of which nobody knows the time is not before the one before it
		}
		latest = s.availableOf(world, from)
		if s.e.By.At.Sub(at) >= deadline {
			most = max(most, latest)
		}
		if !at.After(s.pass().At) {
			atPass = latest
		}
	}
	if now := min(atPass, latest); now > most {
		s.violationf("U2", "its rollout to %s is undone while it gets on: %d children are available, and %s before %d were",
			from, now, deadline, most)
	}
}

// availableOf counts the available children of a revision.
func (s *step) availableOf(world *State, revision string) (n int) {
	parent := world.ByUID(s.e.New.GetUID())
	if parent == nil {
		return 0
	}
	for _, r := range world.Owned(s.k.Revisions, parent.GetUID()) {
		if r.GetName() != revision {
			continue
		}
		for _, child := range world.Owned(s.k.Children, parent.GetUID()) {
			if child.GetDeletionTimestamp() == nil && s.k.Names(child, r) && s.k.Available(child, parent, time.Time{}) {
				n++
			}
		}
	}
	return n
}

// failed is U4: at rest, a rollout with a deadline is complete, held or has failed, and says so.
func (r *rest) failed(parent client.Object) {
	if deadlineOf(parent) == 0 || content.Condition(parent, pass.Updated)["status"] == "True" {
		return
	}
	if c := content.Condition(parent, rollback.Stalled); c == nil || c["reason"] == "RolloutProgressing" {
		r.violationf("U4", r.k.Parents, parent, "its rollout has a deadline, and neither ends nor fails")
	}
}
