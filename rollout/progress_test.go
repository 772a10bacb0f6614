package rollout_test

// Rollouts from their begin to their end, under everything that happens meanwhile: pods that fail and vanish, places
// that die, passes that are cut off in the middle, edits and reverts. The promises hold at each step, and when things
// calm down the rollout ends.

import (
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/cairn-dev/cairn/rollout"
)

// worlds generates a set that serves revision A and some budget that is not zero.
func worlds(t *rapid.T) *world {
	n := rapid.IntRange(1, 6).Draw(t, "places")
	s := rollout.Strategy{
		MaxUnavailable: rapid.IntRange(0, n).Draw(t, "maxUnavailable"),
		MaxSurge:       rapid.IntRange(0, n).Draw(t, "maxSurge"),
	}
	if s.MaxUnavailable == 0 && s.MaxSurge == 0 {
		s.MaxUnavailable = 1
	}
	w := newWorld(n, s)
	w.minReady = rapid.Bool().Draw(t, "minReady")
	w.linger = rapid.IntRange(0, 2).Draw(t, "linger")
	return w
}

// pass is one pass of the controller; of the steps, which may come in any order, it does as many as limit says.
func pass(t *rapid.T, w *world, limit int) {
	steps := w.plan().Steps
	if limit < len(steps) {
		steps = rapid.Permutation(steps).Draw(t, "order")[:limit]
	}
	w.thin()
	for _, step := range steps {
		if err := w.do(step); err != nil {
			t.Fatalf("%v\n%+v\n%s", err, w.strategy, w.picture())
		}
	}
	w.fill()
	for _, p := range w.places {
		if len(p.pods) > 2 {
			t.Fatalf("P1: %s holds %d pods", p.key, len(p.pods))
		}
	}
}

// calm lets the rollout come to its end, and fails if it does not.
func calm(t *rapid.T, w *world) {
	limit := 12 * (len(w.places) + 2)
	for range limit {
		w.grow()
		pass(t, w, 99)
		if w.settled() == nil && w.unavailable() == 0 {
			return
		}
	}
	t.Fatalf("not done after %d passes: %s\n%+v", limit, w.picture(), w.plan())
}

// A revision that works reaches every place, through edits A->B->C and reverts A->B->A in the middle, and as nothing
// fails by itself no more than maxUnavailable are ever down.
func TestEditsInMidRolloutEndWithTheBudgetHeld(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		for _, target := range rapid.SampledFrom([][]string{{"B"}, {"B", "C"}, {"B", "A"}, {"B", "A", "C", "B"}}).Draw(t, "edits") {
			w.target = target
			for range rapid.IntRange(0, 8).Draw(t, "passes") {
				w.grow()
				pass(t, w, 99)
				if down := w.unavailable(); down > w.strategy.MaxUnavailable {
					t.Fatalf("%d are down with maxUnavailable %d: %s", down, w.strategy.MaxUnavailable, w.picture())
				}
			}
		}
		calm(t, w)
		if plan := w.plan(); !plan.Complete() || len(plan.Steps)+len(plan.Waiting) > 0 {
			t.Fatalf("it is done, and yet: %+v", plan)
		}
	})
}

// A broken revision takes no more than maxUnavailable with it, however long it is left alone, and the next edit repairs
// it without waiting for anything.
func TestABrokenRevisionIsContainedAndRepaired(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		w.broken["B"] = true
		w.target = "B"
		for range 40 {
			w.grow()
			pass(t, w, 99)
			if down := w.unavailable(); down > w.strategy.MaxUnavailable {
				t.Fatalf("%d are down with maxUnavailable %d: %s", down, w.strategy.MaxUnavailable, w.picture())
			}
		}
		w.target = rapid.SampledFrom([]string{"A", "C"}).Draw(t, "repair")
		pass(t, w, 99)
		pass(t, w, 99)
		for _, p := range w.places {
			if slices.ContainsFunc(p.pods, func(pod *pod) bool { return pod.rev == "B" }) {
				t.Fatalf("%s still has a pod of the broken revision two passes after the repair", p.key)
			}
		}
		calm(t, w)
	})
}

// Whatever goes wrong by itself, our own steps keep the budgets, and once it stops going wrong the rollout ends.
func TestRolloutEndsOnceThingsCalmDown(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		w := worlds(t)
		w.broken["X"] = true
		for _, p := range w.places {
			p.held, p.leaving = oneIn(t, 6, "held"), oneIn(t, 6, "leaving")
		}
		for range rapid.IntRange(0, 25).Draw(t, "ticks") {
			trouble(t, w)
			if rapid.Bool().Draw(t, "time goes by") {
				w.grow()
			}
			pass(t, w, rapid.SampledFrom([]int{0, 1, 2, 99}).Draw(t, "steps"))
		}
		w.strategy.Paused = false
		for _, p := range w.places {
			p.dead = false
		}
		w.target = rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "in the end")
		// A held place keeps what it has. If that is broken, a person has to let go of it.
		for _, p := range w.places {
			p.held = p.held && !slices.ContainsFunc(p.pods, func(pod *pod) bool { return w.broken[pod.rev] })
		}
		calm(t, w)
	})
}

// trouble is what may happen between two passes.
func trouble(t *rapid.T, w *world) {
	p := w.places[rapid.IntRange(0, len(w.places)-1).Draw(t, "where")]
	switch rapid.SampledFrom([]string{"", "edit", "fail", "vanish", "die", "pause", "hold", "leave", "budget"}).Draw(t, "what") {
	case "edit":
		w.target = rapid.SampledFrom([]string{"A", "B", "C", "X"}).Draw(t, "target")
	case "fail":
		for _, pod := range p.pods {
			pod.ready, pod.available = false, false
		}
	case "vanish":
		p.pods = nil
	case "die":
		p.dead = !p.dead
	case "pause":
		w.strategy.Paused = !w.strategy.Paused
	case "hold":
		p.held = !p.held
	case "leave":
		p.leaving = !p.leaving
	case "budget":
		w.strategy.MaxUnavailable = rapid.IntRange(1, len(w.places)).Draw(t, "maxUnavailable")
		w.strategy.MaxSurge = rapid.IntRange(0, len(w.places)).Draw(t, "maxSurge")
	}
}
