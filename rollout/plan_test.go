package rollout_test

// What each kind of unit gets, and why: every branch of the planner, with the words that a user reads.

import (
	"fmt"
	"strconv"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/cairn-dev/cairn/rollout"
)

// up, warm and down are instances that are available, only ready, and neither.
func up(name string) *rollout.Instance {
	return &rollout.Instance{Name: name, Revision: "r1", Ready: true, Available: true}
}

func warm(name string) *rollout.Instance {
	return &rollout.Instance{Name: name, Revision: "r1", Ready: true}
}

func down(name string) *rollout.Instance { return &rollout.Instance{Name: name, Revision: "r1"} }

// lines renders a plan, one line for each step and wait, in the plan's order.
func lines(p rollout.Plan) []string {
	out := []string{fmt.Sprintf("%d/%d updated, %d available, %d not", p.Updated, p.Total, p.Available, p.Unavailable)}
	for _, s := range p.Steps {
		out = append(out, fmt.Sprintf("%s %q on %s: %s", s.Verb, s.Instance, s.Unit, s.Reason))
	}
	for _, w := range p.Waiting {
		out = append(out, fmt.Sprintf("wait %s: %s", w.Unit, w.Reason))
	}
	return out
}

type planCase struct {
	name  string
	units []rollout.Unit
	s     rollout.Strategy
	want  []string
}

func (c planCase) run(t *testing.T) {
	t.Helper()
	if diff := cmp.Diff(c.want, lines(rollout.New(c.units, c.s))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

func TestWhatNeedsNothing(t *testing.T) {
	for _, c := range []planCase{
		{"an empty set is complete", nil, rollout.Strategy{MaxUnavailable: 1}, []string{"0/0 updated, 0 available, 0 not"}},
		{
			"a place without an instance is somebody else's, and unavailable",
			[]rollout.Unit{{Key: "n1"}},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{"0/1 updated, 0 available, 1 not"},
		},
		{
			"a conforming instance is never touched, whatever its state",
			[]rollout.Unit{{Key: "n1", New: up("b1")}, {Key: "n2", New: down("b2")}, {Key: "n3", New: warm("b3"), Leaving: true}},
			rollout.Strategy{MaxUnavailable: 3, MaxSurge: 3},
			[]string{"2/2 updated, 1 available, 1 not"},
		},
		{
			"a held unit keeps its old instance without waiting for anything, even a broken one",
			[]rollout.Unit{{Key: "n1", Old: up("a1"), Held: true}, {Key: "n2", Old: down("a2"), Held: true}, {Key: "n3", Old: down("a3"), Held: true, Leaving: true}},
			rollout.Strategy{MaxUnavailable: 3},
			[]string{"0/2 updated, 1 available, 1 not"},
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestWhatIsStopped(t *testing.T) {
	for _, c := range []planCase{
		{
			"paused: nothing moves, not even what costs nothing",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1")},
				{Key: "n2", Old: down("a2")},
				{Key: "n3", Old: up("a3"), New: up("b3")},
				{Key: "n4", Old: up("a4"), Leaving: true},
				{Key: "n5", Crowded: true},
				{Key: "n6", New: up("b6")},
				{Key: "n7", Old: up("a7"), Held: true},
			},
			rollout.Strategy{MaxUnavailable: 9, MaxSurge: 9, Paused: true},
			[]string{
				"1/6 updated, 4 available, 2 not",
				"wait n1: the rollout is paused",
				"wait n2: the rollout is paused",
				"wait n3: the rollout is paused",
				"wait n4: the rollout is paused",
				"wait n5: the rollout is paused",
			},
		},
		{
			"crowded: unavailable and surging until it is thinned out, and not updated",
			[]rollout.Unit{
				{Key: "n1", New: up("b1"), Crowded: true},
				{Key: "n2", Old: up("a2")},
			},
			rollout.Strategy{MaxSurge: 1, MaxUnavailable: 1},
			[]string{
				"0/2 updated, 1 available, 1 not",
				"wait n1: it holds more instances than one of each revision; the surplus goes first",
				"wait n2: the surge is 1 of 1",
			},
		},
		{
			"refused: the others come first",
			[]rollout.Unit{{Key: "n1", Old: up("a1"), Refused: 1}, {Key: "n2", Old: up("a2")}},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{
				"0/2 updated, 2 available, 0 not",
				`Delete "a2" on n2: it comes from revision r1 (unavailable 1 of 1)`,
				"wait n1: 1 of 2 may be unavailable, and 1 are",
			},
		},
		{
			"but not where the order counts",
			[]rollout.Unit{{Key: "n1", Old: up("a1"), Refused: 1}, {Key: "n2", Old: up("a2")}},
			rollout.Strategy{MaxUnavailable: 1, Ordered: true},
			[]string{
				"0/2 updated, 2 available, 0 not",
				`Delete "a1" on n1: it comes from revision r1 (unavailable 1 of 1)`,
				"wait n2: 1 of 2 may be unavailable, and 1 are",
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestReplaceInPlace(t *testing.T) {
	for _, c := range []planCase{
		{
			"one at a time, in the order that is given",
			[]rollout.Unit{{Key: "n2", Old: up("a2")}, {Key: "n1", Old: up("a1")}, {Key: "n3", Old: up("a3")}},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{
				"0/3 updated, 3 available, 0 not",
				`Delete "a2" on n2: it comes from revision r1 (unavailable 1 of 1)`,
				"wait n1: 1 of 3 may be unavailable, and 1 are",
				"wait n3: 1 of 3 may be unavailable, and 1 are",
			},
		},
		{
			"what is unavailable anyway goes first and costs nothing, ready or not",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}, {Key: "n2", Old: warm("a2")}, {Key: "n3", Old: down("a3")}},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{
				"0/3 updated, 1 available, 2 not",
				`Delete "a2" on n2: it comes from revision r1 and is not available anyway`,
				`Delete "a3" on n3: it comes from revision r1 and is not available anyway`,
				"wait n1: 1 of 3 may be unavailable, and 2 are",
			},
		},
		{
			"a broken unit that comes later counts (kruise#1480), and so does a conforming, a held, an empty one",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}, {Key: "n2", New: down("b2")}, {Key: "n3"}, {Key: "n4", Old: down("a4"), Held: true}},
			rollout.Strategy{MaxUnavailable: 3},
			[]string{"1/4 updated, 1 available, 3 not", "wait n1: 3 of 4 may be unavailable, and 3 are"},
		},
		{
			"the steps of one plan share the budget",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}, {Key: "n2", Old: up("a2")}, {Key: "n3", Old: up("a3")}, {Key: "n4"}},
			rollout.Strategy{MaxUnavailable: 3},
			[]string{
				"0/4 updated, 3 available, 1 not",
				`Delete "a1" on n1: it comes from revision r1 (unavailable 2 of 3)`,
				`Delete "a2" on n2: it comes from revision r1 (unavailable 3 of 3)`,
				"wait n3: 3 of 4 may be unavailable, and 3 are",
			},
		},
		{
			"no budget at all",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}},
			rollout.Strategy{},
			[]string{"0/1 updated, 1 available, 0 not", "wait n1: 0 of 1 may be unavailable, and 0 are"},
		},
	} {
		t.Run(c.name, c.run)
	}
}

// Nothing goes from a place that is given twice: each would be planned as if it were alone.
func TestOnePlaceTwice(t *testing.T) {
	units := []rollout.Unit{{Key: "a", Old: up("a1")}, {Key: "b", Old: up("b1")}, {Key: "a", Old: up("a2")}}
	plan := rollout.New(units, rollout.Strategy{MaxUnavailable: 3})
	if len(plan.Steps) != 1 || plan.Steps[0].Unit != "b" || len(plan.Waiting) != 2 || units[0].Crowded {
		t.Errorf("%+v", plan)
	}
}

// Units that are held are counted as that where they keep an old instance, and only there.
func TestHeld(t *testing.T) {
	plan := rollout.New([]rollout.Unit{
		{Key: "a", Old: up("a1"), Held: true},
		{Key: "b", New: up("b2"), Held: true},
		{Key: "c", Old: up("c1"), New: up("c2"), Held: true},
		{Key: "d", Old: up("d1")},
		{Key: "e", Held: true},
	}, rollout.Strategy{MaxUnavailable: 1, Paused: true})
	if plan.Held != 3 || len(plan.Waiting) != 2 {
		t.Errorf("%+v", plan)
	}
	plan = rollout.New([]rollout.Unit{
		{Key: "a", Old: up("a1"), Held: true},
		{Key: "b", New: up("b2"), Held: true},
		{Key: "c", Old: up("c1"), New: up("c2"), Held: true},
		{Key: "d", Old: up("d1")},
	}, rollout.Strategy{MaxUnavailable: 1})
	if plan.Held != 1 || len(plan.Waiting) != 0 {
		t.Errorf("not paused: %+v", plan)
	}
	plan = rollout.New([]rollout.Unit{
		{Key: "a", Held: true, Keeps: true},
		{Key: "b", Keeps: true, Vacant: true},
		{Key: "c", Keeps: true, New: up("c2")},
		{Key: "d"},
	}, rollout.Strategy{MaxUnavailable: 1})
	if plan.Held != 2 || plan.Unavailable != 2 {
		t.Errorf("without an instance: %+v", plan)
	}
}

// TestProgress: what is done is counted by unit, and the most that was ever reached is what progress is measured by.
func TestProgress(t *testing.T) {
	plan := rollout.New([]rollout.Unit{
		{Key: "old", Old: up("a1")},
		{Key: "empty"},
		{Key: "down", New: down("b2")},
		{Key: "ready", New: &rollout.Instance{Name: "b3", Ready: true}},
		{Key: "both", Old: up("a4"), New: up("b4")},
		{Key: "crowded", New: down("b5"), Crowded: true},
		{Key: "leaving", New: up("b6"), Leaving: true},
	}, rollout.Strategy{})
	if want := (rollout.Progress{Gone: 3, Made: 4, Ready: 2, Available: 1}); plan.Done != want {
		t.Errorf("%+v, want %+v", plan.Done, want)
	}
	best := rollout.Progress{Gone: 2, Made: 5, Ready: 2}
	if got, want := plan.Done.Max(best), (rollout.Progress{Gone: 3, Made: 5, Ready: 2, Available: 1}); got != want {
		t.Errorf("%+v, want %+v", got, want)
	}
}

// A rollout is complete when every unit of the set conforms; that they are available is another question.
func TestComplete(t *testing.T) {
	for _, c := range []struct {
		name  string
		units []rollout.Unit
		want  bool
	}{
		{"nothing to do", nil, true},
		{"all conform", []rollout.Unit{{New: up("b1")}, {New: down("b2")}}, true},
		{"one is old", []rollout.Unit{{New: up("b1")}, {Old: up("a2")}}, false},
		{"one is old and held", []rollout.Unit{{New: up("b1")}, {Old: up("a2"), Held: true}}, false},
		{"one is empty", []rollout.Unit{{New: up("b1")}, {}}, false},
		{"one has both", []rollout.Unit{{Old: up("a1"), New: up("b1")}}, false},
		{"one is crowded", []rollout.Unit{{New: up("b1"), Crowded: true}}, false},
		{"an old one is leaving", []rollout.Unit{{New: up("b1")}, {Old: up("a2"), Leaving: true}}, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			for i := range c.units {
				c.units[i].Key = strconv.Itoa(i)
			}
			if got := rollout.New(c.units, rollout.Strategy{MaxUnavailable: 1}).Complete(); got != c.want {
				t.Errorf("got %v, want %v", got, c.want)
			}
		})
	}
}
