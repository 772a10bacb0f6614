package sim

import (
	"math/rand/v2"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file gives every world a temper of its own. Worlds that are all equally wild never hold one watch back for long
// while everything else goes smoothly, and that is when caches disagree most.

// temper says how likely what is. Weights are against each other.
type temper struct {
	// faults is how many of a thousand requests fail.
	faults int
	// late says that a request whose manager gave up may still be acted on later.
	late bool
	// stale says that the first lists of a manager may be old.
	stale bool
	// two says that a second manager may be active at the same time.
	two bool
	// weights are those of the scheduler's choices.
	weights weights
	// slow are resources whose events seldom arrive, by how seldom: one of so many times.
	slow map[schema.GroupVersionResource]int
	// clocks says that those of managers are off, and jump.
	clocks bool
	// hasty is how many of ten edits follow the one before at once.
	hasty int
}

// weights are how often the scheduler does what, if there is a choice.
type weights struct {
	serve, store, notify, bookmark, relist, resync int
	kubelet, collect, machines                     int
	instant, moment, while                         int
	kill, restart, outage, mend                    int
}

func newTemper(chance *rand.Rand, o Options) temper {
	t := temper{
		hasty: chance.IntN(10),
		slow:  map[schema.GroupVersionResource]int{},
		weights: weights{
			serve: 40, store: 30, notify: 30, bookmark: 2,
			kubelet: 10 + chance.IntN(20), collect: 3, machines: chance.IntN(2),
			instant: 12, moment: 3, while: 1, restart: 10,
		},
	}
	if o.Calm {
		return t
	}
	t.weights.relist, t.weights.resync = chance.IntN(3), chance.IntN(3)
	t.faults = []int{0, 20, 60, 150, 400}[chance.IntN(5)]
	t.late = chance.IntN(4) == 0
	t.stale = chance.IntN(2) == 0
	t.two = chance.IntN(5) == 0 && !slices.ContainsFunc(o.kinds(), func(k Kind) bool { return len(k.Releases) > 0 }) // they take turns
	t.weights.kill = []int{0, 0, 1, 3}[chance.IntN(4)]
	if chance.IntN(4) == 0 {
		t.weights.outage, t.weights.mend = 1, 4
	}
	for _, r := range slowable(o.kinds()) {
		if chance.IntN(4) == 0 {
			t.slow[r] = []int{5, 20, 100}[chance.IntN(3)]
		}
	}
	if slices.ContainsFunc(o.kinds(), func(k Kind) bool { return k.Timed }) {
		t.clocks = chance.IntN(2) == 0
	}
	return t
}

// slowable are the resources of the kinds, each once, in a fixed order.
func slowable(kinds []Kind) []schema.GroupVersionResource {
	var out []schema.GroupVersionResource
	seen := map[schema.GroupVersionResource]bool{}
	for _, k := range kinds {
		for _, r := range k.resources() {
			if !seen[r] {
				seen[r] = true
				out = append(out, r)
			}
		}
	}
	return out
}
