package rollout_test

// What holds for every set and every budget: the promises of New, and the agreement with a planner that is written
// without any counting ahead.

import (
	"cmp"
	"fmt"
	"slices"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/rollout"
)

// sets generates whole sets, in every state that a unit can be in.
func sets() *rapid.Generator[[]rollout.Unit] {
	return rapid.Custom(func(t *rapid.T) []rollout.Unit {
		instance := func(name string) *rollout.Instance {
			// The last one is what a kind without readiness gives.
			return rapid.SampledFrom([]*rollout.Instance{
				nil, up(name), up(name), warm(name), down(name),
				{Name: name, Revision: "r1", NeverReady: true},
				{Name: name, Revision: "r1", Available: true},
			}).Draw(t, name)
		}
		units := make([]rollout.Unit, rapid.IntRange(0, 8).Draw(t, "size"))
		for i := range units {
			units[i] = rollout.Unit{
				Key:     fmt.Sprintf("n%d", i),
				Old:     instance(fmt.Sprintf("a%d", i)),
				New:     instance(fmt.Sprintf("b%d", i)),
				Crowded: oneIn(t, 10, "crowded"),
				Held:    oneIn(t, 6, "held"),
				Refused: max(0, rapid.IntRange(-8, 3).Draw(t, "refused")),
				Leaving: oneIn(t, 3, "leaving"),
				Vacant:  oneIn(t, 6, "vacant"),
				Keeps:   oneIn(t, 6, "keeps"),
			}
			if rapid.Bool().Draw(t, "not begun") {
				units[i].New = nil
			}
			if oneIn(t, 8, "stays") {
				units[i].Stays = "the test wants it"
			}
		}
		return units
	})
}

func strategies() *rapid.Generator[rollout.Strategy] {
	return rapid.Custom(func(t *rapid.T) rollout.Strategy {
		return rollout.Strategy{
			MaxUnavailable: rapid.IntRange(0, 5).Draw(t, "maxUnavailable"),
			MaxSurge:       max(0, rapid.IntRange(-3, 4).Draw(t, "maxSurge")),
			Ordered:        rapid.Bool().Draw(t, "ordered"),
			Beside:         rapid.Bool().Draw(t, "beside"),
			Paused:         oneIn(t, 10, "paused"),
		}
	})
}

func oneIn(t *rapid.T, n int, label string) bool { return rapid.IntRange(1, n).Draw(t, label) == 1 }

func available(i *rollout.Instance) bool { return i != nil && i.Available }

func serving(i *rollout.Instance) bool { return i != nil && (i.Ready || i.Available) }

// costs reports whether a unit uses up the budget.
func costs(u rollout.Unit) bool {
	empty := u.Vacant && u.Old == nil && u.New == nil && !u.Crowded
	return !u.Leaving && !serves(u) && !empty
}

func serves(u rollout.Unit) bool { return !u.Crowded && (available(u.Old) || available(u.New)) }

// tally counts the units for which is holds.
func tally(units []rollout.Unit, is func(rollout.Unit) bool) (n int) {
	for _, u := range units {
		if is(u) {
			n++
		}
	}
	return n
}

func find(units []rollout.Unit, key string) rollout.Unit {
	return units[slices.IndexFunc(units, func(u rollout.Unit) bool { return u.Key == key })]
}

// R1: all deletes of a plan that take something away, together with what is unavailable, fit the budget. That their sum
// fits means that every part of them does, in any order, also when the manager dies in the middle.
func TestDeletesKeepTheBudgetOverTheWholeSet(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		lost := tally(units, costs)
		costs, fromLeaving := 0, 0
		for _, step := range rollout.New(units, s).Steps {
			u := find(units, step.Unit)
			switch {
			case step.Verb != rollout.Delete, !available(u.Old), available(u.New):
			case u.Leaving:
				fromLeaving++
			default:
				costs++
			}
		}
		if s.MaxSurge == 0 && costs+fromLeaving > 0 && lost+costs+fromLeaving > s.MaxUnavailable {
			t.Errorf("%d unavailable, and %d + %d leaving deleted, with maxUnavailable %d", lost, costs, fromLeaving, s.MaxUnavailable)
		}
		if costs > 0 && lost+costs > s.MaxUnavailable {
			t.Errorf("%d unavailable, and %d deleted, with maxUnavailable %d", lost, costs, s.MaxUnavailable)
		}
		// With surge, leaving places stand in for what the set lacks.
		spare := tally(units, func(u rollout.Unit) bool { return u.Leaving && serves(u) })
		if s.MaxSurge > 0 && fromLeaving > 0 && spare-fromLeaving < lost {
			t.Errorf("%d of %d leaving ones deleted, while %d of the set are unavailable", fromLeaving, spare, lost)
		}
	})
}

// R2: no step makes more units hold two instances than the surge allows.
func TestCreatesKeepTheSurge(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		surging := tally(units, func(u rollout.Unit) bool { return u.Crowded || u.Old != nil && u.New != nil })
		creates := 0
		for _, step := range rollout.New(units, s).Steps {
			if step.Verb == rollout.Create && (!s.Beside || find(units, step.Unit).Old.Available) {
				creates++
			}
		}
		if creates > 0 && surging+creates > s.MaxSurge {
			t.Errorf("%d surging, and %d created, with maxSurge %d", surging, creates, s.MaxSurge)
		}
	})
}

// A broken rollout can be repaired: whatever the budgets say, what does not serve is replaced at once.
func TestWhatDoesNotServeIsReplacedAtNoCost(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		s.Paused = false
		steps := rollout.New(units, s).Steps
		for _, u := range units {
			stopped := u.Crowded || (u.Held || u.Stays != "") && u.New == nil
			expendable := u.Old != nil && !u.Old.Available && (!u.Old.Ready || s.MaxSurge == 0 && u.New == nil)
			if s.Beside && s.MaxSurge > 0 && u.Old != nil && u.New != nil && !serving(u.Old) {
				expendable = u.Old.NeverReady || serving(u.New)
			}
			deleted := slices.ContainsFunc(steps, func(step rollout.Step) bool {
				return step.Unit == u.Key && (step.Verb == rollout.Delete || s.Beside && s.MaxSurge > 0 && u.New == nil && !u.Leaving)
			})
			if expendable && !stopped && !deleted {
				t.Errorf("%s stays although it does not serve", u.Old.Name)
			}
		}
	})
}

// Every unit that is not updated has either one step or one wait, unless nothing is asked for it; and no step is for
// anything but an old instance in a unit that may change.
func TestEveryUnitHasOneAnswerAndNewInstancesAreNeverTouched(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		plan := rollout.New(units, s)
		answers := map[string]int{}
		for _, step := range plan.Steps {
			u := find(units, step.Unit)
			answers[step.Unit]++
			if u.Old == nil || s.Paused || u.Crowded || (u.Held || u.Stays != "") && u.New == nil || step.Reason == "" {
				t.Errorf("a step where nothing may happen, or without a reason: %+v", step)
			}
			if step.Verb == rollout.Delete && step.Instance != u.Old.Name {
				t.Errorf("it deletes what is not the old one: %+v", step)
			}
			if step.Verb == rollout.Create && (step.Instance != "" || u.New != nil || u.Leaving) {
				t.Errorf("it creates where none is wanted: %+v", step)
			}
		}
		var waiting []string
		for _, wait := range plan.Waiting {
			answers[wait.Unit]++
			waiting = append(waiting, wait.Unit)
		}
		if !slices.IsSorted(waiting) {
			t.Errorf("the waiting units are not in the order of the set: %v", waiting)
		}
		for _, u := range units {
			want := 1
			if u.Old == nil && !u.Crowded || u.Held && u.New == nil {
				want = 0
			}
			if answers[u.Key] != want {
				t.Errorf("%s has %d answers, want %d", u.Key, answers[u.Key], want)
			}
		}
	})
}

// R3: in an ordered rollout, nothing that is available goes, and nothing is put beside it, after a unit that waits.
func TestOrderedRolloutsSkipNobody(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		s.Ordered = true
		plan := rollout.New(units, s)
		for _, step := range plan.Steps {
			u := find(units, step.Unit)
			if !available(u.Old) || u.New != nil || u.Leaving {
				continue
			}
			for _, wait := range plan.Waiting {
				if wait.Unit < step.Unit {
					t.Errorf("%s goes before %s, which waits: %s", step.Unit, wait.Unit, wait.Reason)
				}
			}
		}
	})
}

// A plan is a function of what it is given, which it does not change.
func TestPlansDependOnNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		before := fmt.Sprintf("%+v", clone(units))
		given := clone(units)
		first := rollout.New(given, s)
		rollout.New(sets().Draw(t, "others"), strategies().Draw(t, "other strategy"))
		if diff := gocmp.Diff(first, rollout.New(clone(units), s)); diff != "" {
			t.Errorf("the second plan of one picture differs\n%s", diff)
		}
		if diff := gocmp.Diff(units, given); diff != "" {
			t.Errorf("%s was changed\n%s", before, diff)
		}
	})
}

func clone(units []rollout.Unit) []rollout.Unit {
	out := slices.Clone(units)
	for i := range out {
		if out[i].Old != nil {
			o := *out[i].Old
			out[i].Old = &o
		}
		if out[i].New != nil {
			n := *out[i].New
			out[i].New = &n
		}
	}
	return out
}

// New chooses just what the naive planner chooses, and counts what one can count by looking.
func TestAgreesWithTheNaivePlanner(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		units, s := sets().Draw(t, "units"), strategies().Draw(t, "strategy")
		plan := rollout.New(units, s)
		var got []string
		for _, step := range plan.Steps {
			got = append(got, string(step.Verb)+" "+step.Unit)
		}
		want := naive(units, s)
		slices.SortFunc(got, cmp.Compare)
		slices.SortFunc(want, cmp.Compare)
		if diff := gocmp.Diff(want, got); diff != "" {
			t.Errorf("(-naive +New)\n%s", diff)
		}
		counts := []int{
			tally(units, func(u rollout.Unit) bool { return !u.Leaving }),
			tally(units, func(u rollout.Unit) bool { return !u.Leaving && u.New != nil && u.Old == nil && !u.Crowded }),
			tally(units, func(u rollout.Unit) bool { return !u.Leaving && serves(u) }),
			tally(units, costs),
		}
		if diff := gocmp.Diff(counts, []int{plan.Total, plan.Updated, plan.Available, plan.Unavailable}); diff != "" {
			t.Errorf("total, updated, available, unavailable\n%s", diff)
		}
	})
}
