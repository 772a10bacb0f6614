package fault

import (
	"fmt"
	"reflect"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file is about which runs a sweep has.

// TestShare: where the ways to fail are shared among the requests, every request has some, every few requests have all,
// and the same goes for pairs.
func TestShare(t *testing.T) {
	const requests, share = 9, 3
	s := &Sweep{Pairs: [][2]Mode{{KillAfter, KillBefore}, {Unseen, KillAfter}}, Aimed: []Fault{{At: 1, Mode: Hang}}}
	whole := s.trials(&Scenario{Name: "all"}, requests)
	shared := s.trials(&Scenario{Name: "all", Share: share}, requests)
	if want := requests*(len(Modes())+1) + 1; len(whole) != want {
		t.Errorf("%d runs, want %d", len(whole), want)
	}
	if want := requests/share*(len(Modes())+1) + 1; len(shared) != want {
		t.Errorf("%d runs with a share, want %d", len(shared), want)
	}
	modes, points, pairs := map[string]int{}, map[int]int{}, map[string]int{}
	for _, run := range shared[:len(shared)-1] {
		points[run.faults[0].At]++
		if len(run.faults) == 2 {
			pairs[fmt.Sprint(run.faults[0].Mode, run.faults[1].Mode)]++
			continue
		}
		modes[fmt.Sprint((run.faults[0].At-1)/share, run.faults[0].Mode)]++
	}
	if len(modes) != requests/share*len(Modes()) || len(points) != requests || len(pairs) != len(s.Pairs) {
		t.Errorf("the modes of each %d requests: %v\nthe requests: %v\nthe pairs: %v", share, modes, points, pairs)
	}
	for _, n := range modes {
		if n != 1 {
			t.Errorf("a mode comes twice to the same requests: %v", modes)
		}
	}
}

// TestNamed: each run is found again by its name, also if the sweep would not pick it, and a name that is none is an
// error.
func TestNamed(t *testing.T) {
	configMaps := schema.GroupResource{Resource: "configmaps"}
	s := &Sweep{
		Pairs: [][2]Mode{{KillAfter, KillBefore}}, Aimed: []Fault{{At: 2, Mode: Hang, Resource: configMaps, Times: 3}},
		Refusals: []Refusal{{Resource: configMaps, Status: 403, After: 1}},
	}
	scenarios := []Scenario{{Name: "edited"}, {Name: "edited, again"}}
	want := append(s.trials(&scenarios[1], 3), trial{scenario: &scenarios[1]}, failAt(&scenarios[1], 19, KillStale), failAt(&scenarios[1], 4, Unseen, Hang))
	for _, w := range want {
		got, err := s.named(w.String(), scenarios)
		if err != nil {
			t.Error(err)
		} else if !reflect.DeepEqual(got, w) {
			t.Errorf("%s is taken for %+v", w, got)
		}
	}
	for _, none := range []string{"", "edited", "edited, hang", "edited, hang, k=x", "edited, hung, k=1", "deleted, hang, k=1"} {
		if got, err := s.named(none, scenarios); err == nil {
			t.Errorf("%q is taken for %s", none, got)
		}
	}
}

// TestOneOf: n-1 turns have all runs, each turn has about two of n, and some are in every turn.
func TestOneOf(t *testing.T) {
	const parts, runs = 20, 2000
	seen := map[string]int{}
	for turn := 40; turn < 40+parts-1; turn++ {
		picked := 0
		for i := range runs {
			if name := fmt.Sprint("run ", i); OneOf(parts, turn)(name) {
				picked++
				seen[name]++
			}
		}
		if want := 2 * runs / parts; picked < want/2 || picked > 2*want {
			t.Errorf("turn %d has %d runs, want some %d", turn, picked, want)
		}
	}
	always := 0
	for _, turns := range seen {
		if turns == parts-1 {
			always++
		}
	}
	if len(seen) != runs || always == 0 {
		t.Errorf("of %d runs %d were done, %d of them always", runs, len(seen), always)
	}
}
