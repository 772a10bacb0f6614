package rollout_test

// A planner for comparison. It keeps no counters: it tries each thing that could be done on a copy of the set, looks at
// the whole result, and keeps what breaks no promise.

import (
	"slices"

	"github.com/cairn-dev/cairn/rollout"
)

// trial is a set in which some steps are done.
type trial struct {
	now, begin []rollout.Unit
	created    []string
	s          rollout.Strategy
}

// naive returns what to do, as "Verb key".
func naive(units []rollout.Unit, s rollout.Strategy) []string {
	var out []string
	if !s.Ordered {
		units = slices.SortedStableFunc(slices.Values(units), func(a, b rollout.Unit) int {
			return a.Refused - b.Refused
		})
	}
	t := trial{now: slices.Clone(units), begin: units, s: s}
	for i, u := range units {
		if u.Old == nil || u.Crowded || s.Paused || (u.Held || u.Stays != "") && u.New == nil {
			continue
		}
		worth := u.Old.Available || s.MaxSurge > 0 && u.Old.Ready && !s.Beside
		if s.Ordered && u.New == nil && !u.Leaving && worth && waits(units[:i], out) {
			continue
		}
		if deleted, fine := t.without(i); fine {
			t, out = deleted, append(out, "Delete "+u.Key)
			continue
		}
		if surged, may := t.with(i); may {
			t, out = surged, append(out, "Create "+u.Key)
		}
	}
	for i, u := range units { // the rest of MaxUnavailable ends surges
		if u.Old == nil || u.New == nil || u.Crowded || s.Paused || u.Held || u.Stays != "" || u.Leaving || t.now[i].Old == nil {
			continue
		}
		after := t
		after.now = slices.Clone(t.now)
		after.now[i].Old = nil
		if u.Old.Available && t.unavailable(after.now)+after.gone() <= s.MaxUnavailable || !u.Old.Available && s.MaxSurge == 0 {
			t, out = after, append(out, "Delete "+u.Key)
		}
	}
	return out
}

// waits reports whether some unit has an old instance that is neither held nor in one of the steps.
func waits(units []rollout.Unit, steps []string) bool {
	return slices.ContainsFunc(units, func(u rollout.Unit) bool {
		return (u.Old != nil || u.Crowded) && (!u.Held || u.New != nil) &&
			!slices.Contains(steps, "Delete "+u.Key) && !slices.Contains(steps, "Create "+u.Key)
	})
}

// without deletes the old instance of a unit, if the set stays as it was promised.
func (t trial) without(i int) (trial, bool) {
	u := t.begin[i]
	after := t
	after.now = slices.Clone(t.now)
	after.now[i].Old = nil
	switch {
	case u.New != nil && t.s.Beside && t.s.MaxSurge > 0:
		return after, u.New.Available || !u.Old.Ready && !u.Old.Available && (u.New.Ready || u.Old.NeverReady)
	case u.New != nil:
		return after, u.New.Available || !u.Old.Ready && !u.Old.Available
	case t.s.Beside && t.s.MaxSurge > 0 && !u.Old.Available && !u.Leaving:
		return after, false // it gets one beside it
	case t.s.MaxSurge > 0 && u.Old.Ready && !u.Old.Available && !u.Leaving:
		return after, false // it serves, and will be available soon
	case !u.Old.Available:
		return after, true
	case u.Leaving && t.s.MaxSurge > 0:
		return after, after.standIns() >= t.unavailable(t.begin)
	default:
		return after, t.unavailable(after.now)+after.gone() <= t.s.MaxUnavailable
	}
}

// with creates a new instance beside the old one of a unit, if the surge allows it.
func (t trial) with(i int) (trial, bool) {
	after, u := t, t.begin[i]
	if t.s.Beside && t.s.MaxSurge > 0 && !u.Old.Available {
		return after, u.New == nil && !u.Leaving
	}
	after.created = append(slices.Clone(t.created), u.Key)
	surging := len(after.created)
	for _, u := range t.begin {
		if u.Crowded || u.Old != nil && u.New != nil {
			surging++
		}
	}
	return after, t.begin[i].New == nil && !t.begin[i].Leaving && surging <= t.s.MaxSurge
}

// unavailable counts the units that use up the budget: a vacant one does once its instance is deleted.
func (t trial) unavailable(units []rollout.Unit) (n int) {
	for i, u := range units {
		if !u.Leaving && !serves(u) && (costs(t.begin[i]) || t.begin[i].Old != nil) {
			n++
		}
	}
	return n
}

// standIns counts the leaving places that serve.
func (t trial) standIns() int {
	return tally(t.now, func(u rollout.Unit) bool { return u.Leaving && serves(u) })
}

// gone counts the leaving places that served before and do not now: without surge they are paid for by the budget.
func (t trial) gone() (n int) {
	if t.s.MaxSurge > 0 {
		return 0
	}
	for i, u := range t.begin {
		if u.Leaving && serves(u) && !serves(t.now[i]) {
			n++
		}
	}
	return n
}
