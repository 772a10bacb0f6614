package check

import (
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file holds the rules about children that are runs of a schedule, at every resource version: J1 to J5. A decision
// is judged by the parent that its author has read past the cache in that pass, if it has read any: that is how no run
// is started twice.

// Runs tells what the rules must know of a kind whose children are runs.
type Runs struct {
	// Of is what a parent asks for, and what its status knows.
	Of func(parent client.Object) Schedule
	// Run is what a child is to a parent, which need not be its own.
	Run func(child, parent client.Object) Run
	// Owner is the UID of the parent that a child belongs to, by its ControllerRef or, without one, by what an old cluster
	// wrote.
	Owner func(child client.Object) types.UID
	// Next is the first time that is due after one, zero if none is. counts says that times are counted from a start, so
	// that more than those are due.
	Next func(parent client.Object, after time.Time) (at time.Time, counts bool)
	// Latest is the last time that is due after one time and not after another, zero if none is.
	Latest func(parent client.Object, after, now time.Time) time.Time
}

// Schedule is a parent of runs.
type Schedule struct {
	Suspended bool
	// Forbids says that no run is started beside another one, Replaces that another one is deleted for it.
	Forbids, Replaces bool
	// Deadline is how late a run may be started, nil if that does not matter.
	Deadline *time.Duration
	// Keeps is how many finished runs are kept, by how they ended. All are kept of those that it does not have.
	Keeps map[string]int
	// Says is the schedule as users write it.
	Says string
	// Name is the name of the run for a time.
	Name func(at time.Time) string
	// Served is the last time for which the status says that a run was started, Succeeded when one succeeded last. Zero if
	// never.
	Served, Succeeded time.Time
	// Active are the runs that the status calls active.
	Active []types.UID
}

// Run is a child that is a run.
type Run struct {
	// At is the time of the schedule that it was started for, zero if its name does not follow from one. Exact is what it
	// says of that itself.
	At, Exact time.Time
	// ByHand says that a person made it from the parent: no schedule is about it.
	ByHand bool
	// Ended says how it has ended, empty if it has not. Started is when it began, Succeeded when it ended well; zero if it
	// has not.
	Ended              string
	Started, Succeeded time.Time
}

// scheduled reports whether a run is the schedule's.
func (r Run) scheduled() bool { return !r.At.IsZero() && !r.ByHand }

// runs are the runs of a parent.
func (k Kind) runs(s *State, parent client.Object) []client.Object {
	return slices.DeleteFunc(slices.Clone(s.List(k.Children, parent.GetNamespace())), func(child client.Object) bool {
		return k.Runs.Owner(child) != parent.GetUID()
	})
}

// parentOf returns the parent of a run, nil if it is gone.
func (s *step) parentOf(in *State, child client.Object) client.Object {
	uid := s.k.Runs.Owner(child)
	if was, ok := in.Identity(uid); !ok || was.Resource != s.k.Parents {
		return nil
	}
	return in.ByUID(uid)
}

// readOf returns the parent as the last read past the cache showed it to the author of the write, in that pass; nil if
// none did.
func (s *step) readOf(parent types.UID) client.Object {
	if s.pass() == nil || !s.h.Reads {
		return nil
	}
	for _, read := range slices.Backward(s.record.reads(s.e.By)) {
		if read.Verb == "get" && read.Succeeded() && read.UID == parent {
			return s.record.at(parent, read.RV)
		}
	}
	return nil
}

// decided are the versions of a parent by which its author may have decided: the one that it has read, or any that it
// may have seen.
func (s *step) decided(parent client.Object) []client.Object {
	if read := s.readOf(parent.GetUID()); read != nil {
		return []client.Object{read}
	}
	return s.possible(parent)
}

// started is about a run that the controllers start: J1, J2, J3 and J5.
func (s *step) started() {
	if s.k.Runs == nil {
		return
	}
	parent := s.made()
	if parent == nil {
		return
	}
	run, versions := s.k.Runs.Run(s.e.New, parent), s.decided(parent)
	s.timedName(run, parent, versions)
	s.onceOnly(run, parent)
	s.latestOnly(run, versions)
	s.beside(parent, versions)
	first := ""
	for _, version := range versions {
		why := s.k.StraysNow(s.e.New, version)
		if s.k.Runs.Of(version).Suspended {
			why = "it is suspended"
		}
		if why == "" {
			return
		}
		first = why
	}
	s.violationf("J5", "it is started by a spec of %s that was another one by then: %s", parent.GetName(), first)
}

// timedName is J2: the name of a run and what it says of its time follow from one time, which is of the schedule, and
// has come by its author's clock.
func (s *step) timedName(run Run, parent client.Object, versions []client.Object) {
	of := s.k.Runs.Of(parent)
	switch {
	case run.Exact.IsZero(), of.Name(run.Exact) != s.e.Key.Name:
		s.violationf("J2", "its name does not follow from the time that it says it is for, %s", stamp(run.Exact))
		return
	case !s.e.By.Clock.IsZero() && run.Exact.After(s.e.By.Clock):
		s.violationf("J2", "it is for %s, and the clock of who started it has never shown more than %s", stamp(run.Exact), stamp(s.e.By.Clock))
	}
	for _, version := range versions {
		if at, counts := s.k.Runs.Next(version, run.Exact.Add(-time.Second)); counts || at.Equal(run.Exact) {
			return
		}
	}
	s.violationf("J2", "it is for %s, which is no time of the schedule", stamp(run.Exact))
}

func stamp(at time.Time) string { return at.UTC().Format(time.RFC3339) }

// onceOnly is J1: no run is started for a time of which the status, as its author has read it, says that it was served.
// Without reads, what its author has written itself it knows, and what was stored for longer than a request takes.
func (s *step) onceOnly(run Run, parent client.Object) {
	uid := parent.GetUID()
	then := s.readOf(uid)
	if then == nil {
		then = s.storedLongBefore(parent)
	}
	if then != nil && !s.k.Runs.Of(then).Served.Before(run.At) {
		s.violationf("J1", "it is started for %s, and the status said that %s was served", stamp(run.At), stamp(s.k.Runs.Of(then).Served))
	}
}

// requestTakes is how long a request takes at most that is not lost.
const requestTakes = 5 * time.Second

// storedLongBefore returns the parent as whoever has not read it must know it.
func (s *step) storedLongBefore(parent client.Object) client.Object {
	if s.pass() != nil {
		return parent
	}
	for e := range s.record.before(parent.GetUID(), s.e.RV) {
		if e.Key.Resource != s.k.Parents || e.New == nil {
			continue
		}
		long := e.By != nil && s.e.By != nil && !e.By.At.IsZero() && s.e.By.At.Sub(e.By.At) > requestTakes
		if s.own(e) || long {
			return e.New
		}
	}
	return nil
}

// latestOnly is J2 for what was missed: it is served once, for the latest time that was due.
func (s *step) latestOnly(run Run, versions []client.Object) {
	p := s.pass()
	if p == nil || p.Clock.IsZero() {
		return
	}
	later := time.Time{}
	for _, version := range versions {
		at, _ := s.k.Runs.Next(version, run.Exact)
		if at.IsZero() || at.After(p.Clock) {
			return
		}
		later = at
	}
	s.violationf("J2", "it is for %s, and %s is due as well", stamp(run.Exact), stamp(later))
}

// beside is J3: where no run may be beside another, none is started while one runs that its author knows of: from the
// status, from its cache, or because it has started it itself. Where the next one replaces it, that one is deleted
// first.
func (s *step) beside(parent client.Object, versions []client.Object) {
	replaces := false
	for _, version := range versions {
		of := s.k.Runs.Of(version)
		if !of.Forbids && !of.Replaces {
			return
		}
		replaces = replaces || of.Replaces
	}
	for _, other := range s.k.runs(s.before, parent) {
		run := s.k.Runs.Run(other, parent)
		if run.Ended != "" || !run.scheduled() || replaces && other.GetDeletionTimestamp() != nil {
			continue
		}
		listed := func(version client.Object) bool { return slices.Contains(s.k.Runs.Of(version).Active, other.GetUID()) }
		if !slices.ContainsFunc(versions, func(v client.Object) bool { return !listed(v) }) || s.knewRun(parent, other) {
			s.violationf("J3", "it is started beside %s, which runs, and none may be beside another", other.GetName())
			return
		}
	}
}

// knewRun reports whether the author of the write knew that a run was its parent's. One that says so by a mark of old
// clusters only is shown by caches: none has been made for years.
func (s *step) knewRun(parent, child client.Object) bool {
	uid := parent.GetUID()
	for e := range s.record.before(child.GetUID(), s.e.RV) {
		if s.own(e) && e.Type == Added && !e.By.Late { // what arrived after it was given up is like another's
			return true
		}
	}
	from := s.since(s.k.Children, uid)
	if p := s.pass(); p != nil && ownerUID(child) == "" {
		from = p.Views[s.k.Children]
	}
	then := s.record.at(child.GetUID(), from)
	return then != nil && s.k.Runs.Owner(then) == uid
}

// replacedRun is J3 for a run that is deleted while it runs: a run of the schedule, to make room for the next one.
func (s *step) replacedRun() {
	parent, run := s.retired()
	if parent == nil || run.Ended != "" {
		return
	}
	if !run.scheduled() {
		s.violationf("J3", "it is deleted while it runs, and no schedule has started it")
		return
	}
	if !slices.ContainsFunc(s.decided(parent), func(version client.Object) bool {
		of := s.k.Runs.Of(version)
		return of.Replaces && !of.Suspended
	}) {
		s.violationf("J3", "it is deleted while it runs, and no other one is to replace it")
	}
}

// retired returns the parent of a run that the controllers deleted, and the run; nil if they deleted none.
func (s *step) retired() (client.Object, Run) {
	if s.k.Runs == nil || !s.of(s.k.Children) || !recording.StartsToGo(s.e) || !s.h.Audited || !s.byManager() {
		return nil, Run{}
	}
	parent := s.parentOf(s.before, s.e.Old)
	if parent == nil {
		return nil, Run{}
	}
	return parent, s.k.Runs.Run(s.e.Old, parent)
}

// surplusRun is J4: a run that has ended is deleted only if enough of those that began later are there, and only after
// the status accounts for it.
func (s *step) surplusRun() {
	parent, run := s.retired()
	if parent == nil || run.Ended == "" {
		return
	}
	of := s.k.Runs.Of(parent)
	switch {
	case run.scheduled() && of.Served.Before(run.At):
		s.violationf("J4", "it is deleted before the status says that %s was served", stamp(run.At))
	case of.Succeeded.Before(run.Succeeded):
		s.violationf("J4", "it is deleted before the status says that it succeeded")
	case s.alwaysActive(parent):
		s.violationf("J4", "it is deleted while the status calls it active")
	}
	for world := range s.worlds(parent.GetUID(), false) {
		if s.beyond(world, parent, run) {
			return
		}
	}
	// Runs without a ControllerRef are in no family, so that those worlds show them as they are now, and no list past the
	// cache is about them.
	if p := s.pass(); p != nil && s.beyond(worldAt(s.h, p.Views[s.k.Children]), parent, run) {
		return
	}
	s.violationf("J4", "it is deleted, and it is not beyond the limit: %d that are younger are there, and %v are kept",
		s.younger(s.before, parent, run), of.Keeps[run.Ended])
}

// beyond reports whether in a world enough runs are younger than the deleted one, by any limit that its author may have
// read.
func (s *step) beyond(world *State, parent client.Object, run Run) bool {
	younger := s.younger(world, parent, run)
	return slices.ContainsFunc(s.possible(parent), func(version client.Object) bool {
		limit, limited := s.k.Runs.Of(version).Keeps[run.Ended]
		return limited && younger >= limit
	})
}

// alwaysActive reports whether every status that the author of the write may have read calls the run active that was
// deleted. Another manager may say so again that has not seen its end.
func (s *step) alwaysActive(parent client.Object) bool {
	active := func(o client.Object) bool { return slices.Contains(s.k.Runs.Of(o).Active, s.e.Old.GetUID()) }
	from := s.since(s.k.Parents, parent.GetUID())
	for e := range s.record.before(parent.GetUID(), s.e.RV) {
		if e.RV > from && e.Key.Resource == s.k.Parents && e.Old != nil && !active(e.Old) {
			return false
		}
	}
	return active(parent)
}

// younger counts the runs that ended as the deleted one did, and began after it.
func (s *step) younger(world *State, parent client.Object, run Run) (n int) {
	for _, other := range s.k.runs(world, parent) {
		o := s.k.Runs.Run(other, parent)
		if o.Ended != run.Ended || other.GetUID() == s.e.Old.GetUID() || other.GetDeletionTimestamp() != nil {
			continue
		}
		if o.Started.IsZero() || o.Started.After(run.Started) || o.Started.Equal(run.Started) && other.GetName() > s.e.Key.Name {
			n++
		}
	}
	return n
}

// servedRises is J1 for the status: what was served stays so.
func (s *step) servedRises() {
	if s.k.Runs == nil || !s.statusWritten() || s.e.Old == nil {
		return
	}
	was, now := s.k.Runs.Of(s.e.Old), s.k.Runs.Of(s.e.New)
	if now.Served.Before(was.Served) || now.Succeeded.Before(was.Succeeded) {
		s.violationf("J1", "its status said that %s was served and that one succeeded at %s, and says %s and %s now",
			stamp(was.Served), stamp(was.Succeeded), stamp(now.Served), stamp(now.Succeeded))
	}
}
