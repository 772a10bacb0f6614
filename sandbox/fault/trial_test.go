package fault

import (
	"fmt"
	"testing"
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
