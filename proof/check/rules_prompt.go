package check

import (
	"fmt"
	"slices"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file is A1 for what it does not cost: beside a failure that lasts, what needs none of the failing writes gets
// there in its own time.

// Failing says what fails, and so what need not be done.
type Failing struct {
	// What it is, for the sentence.
	What string
	// Observes is true if an edit can be observed: whoever cannot record a revision, or claim children, may not say that
	// it has seen the edit. Deletes is true if children can be deleted.
	Observes, Deletes bool
	// Creates reports whether a child can be made at a place. Nil means that none can.
	Creates func(place string) bool
}

// Prompt evaluates what must be so a while after the last thing happened, although something fails: the status counts
// what there is, the last edit was observed, places are filled and children replaced as far as that can be. The caller
// says that the wait was longer than every timer, that managers run and see everything, and that statuses can be
// written.
func Prompt(h *History, rv uint64, failing Failing, kinds ...Kind) []Violation {
	s := worldAt(h, rv)
	var found []Violation
	for _, k := range eachRemembering(kinds) {
		r := &rest{h: h, s: s, k: k}
		for _, parent := range s.List(k.Parents, "") {
			if parent.GetDeletionTimestamp() == nil {
				r.prompt(parent, failing)
			}
		}
		found = append(found, r.found...)
	}
	return once(found)
}

func (r *rest) prompt(parent client.Object, failing Failing) {
	violationf := func(format string, args ...any) {
		r.violationf("A1", r.k.Parents, parent, "beside a failure (%s), for minutes: %s", failing.What, fmt.Sprintf(format, args...))
	}
	if observed := r.k.ObservedGeneration(parent); observed < parent.GetGeneration() {
		if failing.Observes {
			violationf("generation %d is observed, and there is %d", observed, parent.GetGeneration())
		}
		return
	}
	for _, sentence := range r.k.Miscounted(r.s, parent) {
		violationf("%s", sentence)
	}
	if r.k.Served != nil {
		if said, counted, ok := r.k.Served(r.s, parent); ok && said != counted {
			violationf("%d are called available, and %d are", said, counted)
		}
	}
	if r.k.Ordered == nil && r.k.Asked == nil {
		r.goesOn(parent, failing, violationf)
	}
}

// goesOn is about kinds whose places do not wait for each other: what is missing is made, and what is old is replaced
// while the budget lasts.
func (r *rest) goesOn(parent client.Object, failing Failing, violationf func(string, ...any)) {
	units := r.k.Units(r.s, parent)
	wanted, unavailable := r.k.wanted(units, parent, time.Time{})
	creates := failing.Creates != nil && (failing.Observes || r.some(parent))
	for _, u := range units {
		if u.Wanted && !u.Taken && len(u.Children) == 0 && creates && failing.Creates(u.Name) {
			violationf("nothing is at %s, and it could be made", u.Name)
		}
	}
	budget := r.k.Budget(parent, wanted)
	for _, u := range units {
		if stray := r.stray(u, parent); u.Wanted && stray != "" && failing.Deletes && failing.Observes && unavailable < budget.MaxUnavailable {
			violationf("the rollout has stopped, with %d of %d unavailable: of %s", unavailable, budget.MaxUnavailable, stray)
			return
		}
	}
}

// some reports whether a child comes from a revision that can be read: a lost one can be made from that where no other
// can be recorded.
func (r *rest) some(parent client.Object) bool {
	return !r.k.HasRevisions() || slices.ContainsFunc(r.s.Owned(r.k.Revisions, parent.GetUID()), func(revision client.Object) bool {
		_, err := r.k.Snapshot(revision)
		return err == nil && r.k.user(r.s, revision) != nil
	})
}

// Mended evaluates what must be so soon after an edit that asks for something which works, when all that was asked for
// before has failed: a child that has failed is still there only while one that replaces another is on its way. The
// caller says that every write can be made, what time it is, and how long ago the edit was. Where children wait for
// each other, what comes before may fail on.
func Mended(h *History, rv uint64, at time.Time, after time.Duration, kinds ...Kind) []Violation {
	s := worldAt(h, rv)
	var found []Violation
	for _, k := range eachRemembering(kinds) {
		r := &rest{h: h, s: s, k: k}
		for _, parent := range s.List(k.Parents, "") {
			if parent.GetDeletionTimestamp() == nil && (k.Ordered == nil || !k.Ordered(parent)) {
				r.mended(parent, at, after)
			}
		}
		found = append(found, r.found...)
	}
	return once(found)
}

func (r *rest) mended(parent client.Object, at time.Time, after time.Duration) {
	failed, way := "", false
	for _, u := range r.k.Units(r.s, parent) {
		for _, child := range u.Children {
			switch {
			case child.GetDeletionTimestamp() != nil || !u.Wanted || u.Guarded || u.Taken:
			case r.k.StraysNow(child, parent) == "":
				way = way || !r.k.Available(child, parent, at)
			case r.k.Ended(child):
				failed = child.GetName()
			}
		}
	}
	if failed != "" && !way {
		r.violationf("A1", r.k.Parents, parent, "%s has failed, and waits for a back-off %s after it is not asked for any more", failed, after)
	}
}
