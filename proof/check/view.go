package check

import (
	"iter"
	"slices"
	"strconv"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file says what the author of a write may have acted on. A controller reads from caches that lag, and what others
// do while its request is on its way it cannot know: a write breaks a promise only if it does so in every world that
// its author may have seen. Its own earlier writes it must know of, in all of them.

// mostSurroundings bounds how many states of a parent's surroundings, nodes say, are tried.
const mostSurroundings = 16

func (s *step) pass() *Pass {
	if s.e.By == nil {
		return nil
	}
	return s.e.By.Pass
}

// own reports whether another event was written by the process that wrote this one; without passes, by a manager of the
// same user and user agent. Two that act at once have two.
func (s *step) own(e Event) bool {
	if p := s.pass(); p != nil {
		return e.By != nil && e.By.Pass != nil && e.By.Pass.Instance == p.Instance
	}
	return e.By != nil && s.h.ByManager(e) && (s.e.By == nil || e.By.User == s.e.By.User && e.By.UserAgent == s.e.By.UserAgent)
}

// since returns the resource version from which on the author may have read a resource: what was written up to there it
// has seen. With known views that is what its cache had reached. With passes only, it is the last write to the resource
// by an earlier pass of the same process for this parent: a pass begins when the caches show those. With neither, it is
// the last write for this parent, and of anything but children, now.
func (s *step) since(resource schema.GroupVersionResource, parent types.UID) uint64 {
	if known, ok := s.views[resource]; ok {
		return known
	}
	from := s.look(resource, parent)
	if s.views == nil {
		s.views = map[schema.GroupVersionResource]uint64{}
	}
	s.views[resource] = from
	return from
}

func (s *step) look(resource schema.GroupVersionResource, parent types.UID) uint64 {
	p, from := s.pass(), s.h.Origin
	switch {
	case p == nil && (!s.h.Audited || resource != s.k.Children && (s.k.Asked == nil || resource != s.k.Revisions)):
		return s.e.RV - 1
	case p != nil && p.Views != nil:
		from = max(from, p.Views[resource])
	default:
		from = max(from, s.wroteBefore(resource, parent))
	}
	if s.of(resource) && s.e.Old != nil && s.e.By != nil {
		from = max(from, s.insistedOn(parent))
	}
	if p != nil {
		from = max(from, s.insistedAtBirth(p, resource))
	}
	return min(from, s.e.RV-1)
}

// insistedAtBirth returns up to where a pass must have seen children, and parents that do nothing but scale, although
// its caches may not show them: a process that just began must not act by the past.
func (s *step) insistedAtBirth(p *Pass, resource schema.GroupVersionResource) uint64 {
	switch {
	case resource == s.k.Children:
		return s.lookedPast(p)
	case resource == s.k.Parents && s.of(s.k.Children) && !s.k.HasRevisions():
		return p.Born
	}
	return 0
}

// lookedPast returns up to where a pass must have seen children although its caches may not show them: a list past the
// caches told it, or, before it writes a child or a revision, its process had to ask for one.
func (s *step) lookedPast(p *Pass) uint64 {
	from := uint64(0)
	if s.dependent() {
		from = p.Born
	}
	return max(from, s.record.listed(s.e.By, s.k.Children, s.e.Key.Namespace))
}

// insistedOn returns the version of the object that a delete insisted on, zero if none, or if its author has that from
// the answer to a write of its own and not from its cache.
func (s *step) insistedOn(parent types.UID) uint64 {
	read, err := strconv.ParseUint(s.e.By.PreconditionRV, 10, 64)
	if err != nil {
		return 0
	}
	for e := range s.record.before(parent, s.e.RV) {
		if e.RV == read && s.own(e) {
			return 0
		}
	}
	return read
}

// wroteBefore returns the last write to a resource by an earlier pass of the same process for this parent; without
// passes, the last write for this parent by any manager.
func (s *step) wroteBefore(resource schema.GroupVersionResource, parent types.UID) uint64 {
	p := s.pass()
	for e := range s.record.before(parent, s.e.RV) {
		if s.own(e) && (p == nil || e.Key.Resource == resource && e.By.Pass.ID != p.ID) {
			return e.RV
		}
	}
	return 0
}

// possible returns the versions of a parent that a controller may have acted on: the one of now, and those that it has
// not seen a successor of; without passes, those that no status says to have seen a successor of.
func (s *step) possible(parent client.Object) []client.Object {
	seen := min(s.k.ObservedGeneration(parent), parent.GetGeneration())
	switch {
	case s.pass() == nil && s.k.Runs != nil: // their status says nothing of what was observed
		seen = 0
		if then := s.record.at(parent.GetUID(), s.wroteBefore(s.k.Parents, parent.GetUID())); then != nil {
			seen = then.GetGeneration()
		}
	case s.pass() != nil:
		seen = 0
		if then := s.record.at(parent.GetUID(), s.since(s.k.Parents, parent.GetUID())); then != nil {
			seen = then.GetGeneration()
		}
	}
	return s.before.Generations(parent.GetUID(), seen)
}

// worlds are those that the author of the write may have acted on, with its own writes in each: the present one first,
// then every one that its caches may have shown. What it made or wrote is in them if done is true.
func (s *step) worlds(parent types.UID, done bool) iter.Seq[*State] {
	return func(yield func(*State) bool) {
		if !yield(s.around(done)) {
			return
		}
		if s.pass() == nil && !s.h.Audited {
			return
		}
		for _, cut := range s.surroundings(parent) {
			if !s.grow(parent, cut, done, yield) {
				return
			}
		}
	}
}

// around is the world right before or after the write.
func (s *step) around(done bool) *State {
	if done {
		return s.after
	}
	return s.before
}

// ever reports whether something holds in a world that the author of the write may have acted on.
func (s *step) ever(parent client.Object, holds func(*State) bool) bool {
	for world := range s.worlds(parent.GetUID(), false) {
		if holds(world) {
			return true
		}
	}
	return false
}

// surroundings returns up to where the author may have seen what is neither a parent, a child nor a revision: up to
// now, or not the newest of it.
func (s *step) surroundings(parent types.UID) []uint64 {
	cuts := []uint64{s.e.RV - 1}
	if s.pass() == nil {
		return cuts
	}
	from := map[schema.GroupVersionResource]uint64{}
	for _, e := range slices.Backward(s.h.Events[:s.index]) {
		if len(cuts) > mostSurroundings {
			break
		}
		if !s.surrounds(e) {
			continue
		}
		if _, known := from[e.Key.Resource]; !known {
			from[e.Key.Resource] = s.since(e.Key.Resource, parent)
		}
		if e.RV > from[e.Key.Resource] {
			cuts = append(cuts, e.RV-1)
		}
	}
	return cuts
}

func (s *step) surrounds(e Event) bool {
	switch e.Key.Resource {
	case s.k.Parents, s.k.Children, s.k.Revisions, s.k.Claims:
		return false
	}
	return true
}

// grow yields the worlds with one state of the surroundings: first with the children as the author must have seen them
// and its own writes, then with one more write by somebody else in each. It reports whether to go on.
func (s *step) grow(parent types.UID, cut uint64, done bool, yield func(*State) bool) bool {
	mine, others := s.unread(parent)
	if len(others) == 0 && cut == s.e.RV-1 {
		return true // that is the present
	}
	from := s.since(s.k.Children, parent)
	world := newState(s.h)
	world.places = s.after.places
	for _, e := range s.h.Events[:s.index] {
		switch {
		case s.surrounds(e) && e.RV > cut && e.RV > s.since(e.Key.Resource, parent):
		case e.Key.Resource != s.k.Children || e.RV <= from:
			world.apply(e)
		}
	}
	last := map[Key]uint64{}
	for _, e := range mine {
		world.apply(e)
		last[e.Key] = e.RV
	}
	if done {
		world.apply(s.e)
		last[s.e.Key] = s.e.RV
	}
	if !yield(world) {
		return false
	}
	for _, e := range others {
		if e.RV < last[e.Key] {
			continue
		}
		if world.apply(e); !yield(world) {
			return false
		}
	}
	return true
}

// unread returns the writes to the parent's children that the author's cache need not have shown: its own, and others'.
func (s *step) unread(parent types.UID) (mine, others []Event) {
	from := s.since(s.k.Children, parent)
	for e := range s.record.before(parent, s.e.RV) {
		switch {
		case e.RV <= from, e.Key.Resource != s.k.Children:
		case s.own(e):
			mine = append(mine, e)
		default:
			others = append(others, e)
		}
	}
	slices.Reverse(mine)
	slices.Reverse(others)
	return mine, others
}
