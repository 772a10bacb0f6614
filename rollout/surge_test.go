package rollout_test

// What a unit gets while there is surge, and when its place is to be given up.

import (
	"testing"

	"github.com/cairn-dev/cairn/rollout"
)

func TestSurge(t *testing.T) {
	for _, c := range []planCase{
		{
			"a new one first, up to the surge",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}, {Key: "n2", Old: up("a2")}, {Key: "n3", Old: up("a3")}},
			rollout.Strategy{MaxSurge: 2},
			[]string{
				"0/3 updated, 3 available, 0 not",
				`Create "" on n1: a1 on n1 comes from revision r1 (surge 1 of 2)`,
				`Create "" on n2: a2 on n2 comes from revision r1 (surge 2 of 2)`,
				"wait n3: the surge is 2 of 2",
			},
		},
		{
			"what is not ready is replaced in its place; what is ready is worth a stand-in, or a wait for one",
			[]rollout.Unit{{Key: "n1", Old: warm("a1")}, {Key: "n2", Old: warm("a2")}, {Key: "n3", Old: down("a3")}},
			rollout.Strategy{MaxSurge: 1, MaxUnavailable: 3},
			[]string{
				"0/3 updated, 0 available, 3 not",
				`Delete "a3" on n3: it comes from revision r1 and is not available anyway`,
				`Create "" on n1: a1 on n1 comes from revision r1 (surge 1 of 1)`,
				"wait n2: it is ready but not available yet, and the surge is 1 of 1",
			},
		},
		{
			"beside, what is not available gets a stand-in, and stays until that is ready or if it never served",
			[]rollout.Unit{
				{Key: "n1", Old: down("a1")},
				{Key: "n2", Old: warm("a2")},
				{Key: "n3", Old: down("a3"), New: down("b3")},
				{Key: "n4", Old: down("a4"), New: warm("b4")},
				{Key: "n5", Old: &rollout.Instance{Name: "a5", Revision: "r1", NeverReady: true}, New: down("b5")},
				{Key: "n6", Old: up("a6")},
			},
			rollout.Strategy{MaxSurge: 1, Beside: true},
			[]string{
				"0/6 updated, 1 available, 5 not",
				`Create "" on n1: a1 on n1 comes from revision r1 and is not available`,
				`Create "" on n2: a2 on n2 comes from revision r1 and is not available`,
				`Delete "a4" on n4: it is not ready, and b4 is there to take its place on n4`,
				`Delete "a5" on n5: it is not ready, and b5 is there to take its place on n5`,
				"wait n3: b3 is not available yet",
				"wait n6: the surge is 3 of 1",
			},
		},
		{
			"what is available serves, also where a kind knows no readiness",
			[]rollout.Unit{
				{Key: "n1", Old: &rollout.Instance{Name: "a1", Revision: "r1", Available: true}, New: down("b1")},
				{Key: "n2", Old: &rollout.Instance{Name: "a2", Revision: "r1", Available: true}},
			},
			rollout.Strategy{MaxSurge: 2},
			[]string{
				"0/2 updated, 2 available, 0 not",
				`Create "" on n2: a2 on n2 comes from revision r1 (surge 2 of 2)`,
				"wait n1: b1 is not available yet",
			},
		},
		{
			"both budgets are used, and both end",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}, {Key: "n2", Old: up("a2")}, {Key: "n3", Old: up("a3")}},
			rollout.Strategy{MaxSurge: 1, MaxUnavailable: 1},
			[]string{
				"0/3 updated, 3 available, 0 not",
				`Delete "a1" on n1: it comes from revision r1 (unavailable 1 of 1)`,
				`Create "" on n2: a2 on n2 comes from revision r1 (surge 1 of 1)`,
				"wait n3: the surge is 1 of 1",
			},
		},
		{
			"what may be unavailable comes before the surge, which a quota may refuse for ever",
			[]rollout.Unit{{Key: "n1", Old: up("a1")}},
			rollout.Strategy{MaxSurge: 1, MaxUnavailable: 1},
			[]string{"0/1 updated, 1 available, 0 not", `Delete "a1" on n1: it comes from revision r1 (unavailable 1 of 1)`},
		},
		{
			"the surge is counted over the whole set, leaving and held units included",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1")},
				{Key: "n2", Old: up("a2"), New: down("b2"), Leaving: true},
				{Key: "n3", Old: up("a3"), New: down("b3"), Held: true},
			},
			rollout.Strategy{MaxSurge: 2},
			[]string{
				"0/2 updated, 2 available, 0 not",
				"wait n1: the surge is 2 of 2",
				"wait n2: b2 is not available yet",
				"wait n3: b3 is not available yet",
			},
		},
		{
			"a surge is finished when the new one is available, or the old one does not serve; held and leaving ones too",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1"), New: up("b1")},
				{Key: "n2", Old: down("a2"), New: down("b2")},
				{Key: "n3", Old: up("a3"), New: warm("b3")},
				{Key: "n4", Old: warm("a4"), New: down("b4")},
				{Key: "n5", Old: up("a5"), New: up("b5"), Held: true},
				{Key: "n6", Old: up("a6"), New: up("b6"), Leaving: true},
			},
			rollout.Strategy{MaxSurge: 1},
			[]string{
				"0/5 updated, 3 available, 2 not",
				`Delete "a1" on n1: b1 took its place on n1 and is available`,
				`Delete "a2" on n2: it is not ready, and b2 is there to take its place on n2`,
				`Delete "a5" on n5: b5 took its place on n5 and is available`,
				`Delete "a6" on n6: b6 took its place on n6 and is available`,
				"wait n3: b3 is not available yet",
				"wait n4: b4 is not available yet",
			},
		},
		{
			"a surge that is left over from another strategy is finished without one",
			[]rollout.Unit{{Key: "n1", Old: up("a1"), New: up("b1")}},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{"0/1 updated, 1 available, 0 not", `Delete "a1" on n1: b1 took its place on n1 and is available`},
		},
		{
			"a new one that does not start beside the old one replaces it, once the surge is turned off",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1"), New: down("b1")},
				{Key: "n2", Old: up("a2"), New: down("b2")},
				{Key: "n3", Old: up("a3"), New: down("b3"), Held: true},
				{Key: "n4", Old: up("a4"), New: down("b4"), Stays: "its replacement failed"},
			},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{
				"0/4 updated, 4 available, 0 not", `Delete "a1" on n1: it comes from revision r1 (unavailable 1 of 1)`,
				"wait n2: b2 is not available yet", "wait n3: b3 is not available yet", "wait n4: b4 is not available yet",
			},
		},
		{
			"with both budgets, it does so when nothing else needs the budget",
			[]rollout.Unit{{Key: "n1", Old: up("a1"), New: down("b1")}, {Key: "n2", Old: up("a2")}},
			rollout.Strategy{MaxUnavailable: 1, MaxSurge: 1},
			[]string{
				"0/2 updated, 2 available, 0 not", `Delete "a2" on n2: it comes from revision r1 (unavailable 1 of 1)`,
				"wait n1: b1 is not available yet",
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}

func TestLeaving(t *testing.T) {
	for _, c := range []planCase{
		{
			"without surge it takes a part of the budget, and is no part of the set",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1"), Leaving: true},
				{Key: "n2", Old: down("a2"), Leaving: true},
				{Key: "n3", Old: up("a3")},
				{Key: "n4", Old: up("a4"), Leaving: true},
			},
			rollout.Strategy{MaxUnavailable: 1},
			[]string{
				"0/1 updated, 1 available, 0 not",
				`Delete "a2" on n2: it comes from revision r1, and n2 takes no new one`,
				`Delete "a1" on n1: it comes from revision r1, and n1 takes no new one`,
				"wait n3: 1 of 1 may be unavailable, and 1 are",
				"wait n4: it is kept until the rest of the set is available",
			},
		},
		{
			"with surge it stands in for one of the set that is unavailable",
			[]rollout.Unit{
				{Key: "n1", Old: up("a1"), Leaving: true},
				{Key: "n2", Old: up("a2"), Leaving: true},
				{Key: "n3", New: down("b3")},
				{Key: "n4", Old: warm("a4"), Leaving: true},
			},
			rollout.Strategy{MaxSurge: 1, MaxUnavailable: 9},
			[]string{
				"1/1 updated, 0 available, 1 not",
				`Delete "a4" on n4: it comes from revision r1, and n4 takes no new one`,
				`Delete "a1" on n1: it comes from revision r1, and n1 takes no new one`,
				"wait n2: it is kept until the rest of the set is available",
			},
		},
	} {
		t.Run(c.name, c.run)
	}
}
