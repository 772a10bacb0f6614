package sim

import (
	"cmp"
	"flag"
	"fmt"
	"maps"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// This file runs many seeds. CAIRN_CHECK=full runs all of them, -sim.seed=N one, with its trace. Both are about all
// worlds, or about the one that -sim.world names; a single seed is of the first one, if none is named.

const (
	fewSeeds  = 400
	fullSeeds = 14_000
	// shown is how many seeds of a world that found something are told in full.
	shown = 3
)

var oneTrouble = flag.String("sim.trouble", AnyTrouble, "what goes wrong for longer: one of them, or none, instead of what the seed chooses")

var oneWorld = flag.String("sim.world", "", "run this world only; -sim.seed without it means "+Worlds()[0].Name)

// full reports whether this is make check.
func full() bool { return os.Getenv("CAIRN_CHECK") == "full" }

// seedsToRun is how many seeds of a world are to be run: its share, or, if it is the only one, as many as are asked
// for.
func (w World) seedsToRun() uint64 {
	all := uint64(fewSeeds)
	if full() {
		all = fullSeeds
	}
	if *seedCount > 0 {
		all = *seedCount
		if *oneWorld != "" {
			return all
		}
	}
	return all * w.Share / 100
}

// troubleToRun is what the flags ask for.
func troubleToRun() string {
	if *oneTrouble == "none" {
		return NoTrouble
	}
	return *oneTrouble
}

// worldsToRun are those that the flags ask for.
func worldsToRun(t *testing.T) []World {
	t.Helper()
	all := Worlds()
	if *oneWorld == "" {
		return all
	}
	i := slices.IndexFunc(all, func(w World) bool { return w.Name == *oneWorld })
	if i < 0 {
		t.Fatalf("there is no world %q", *oneWorld)
	}
	return all[i : i+1]
}

// TestSeeds runs random worlds, as many at once as there are processors. No promise may be broken in any.
func TestSeeds(t *testing.T) {
	worlds := worldsToRun(t)
	if *oneSeed >= 0 {
		replay(t, uint64(*oneSeed), worlds[0])
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(1600)) // worlds are small, and there are many
	for _, w := range worlds {
		t.Run(w.Name, func(t *testing.T) { w.test(t) })
	}
}

// test runs the seeds of one world.
func (w World) test(t *testing.T) {
	t.Helper()
	start := time.Now()
	seeds := w.seedsToRun()
	stats, broken := w.runAll(t, seeds)
	found := 0
	for _, r := range broken {
		found += len(r.Violations)
	}
	// hack/check.sh makes a table of lines like this one.
	_, _ = fmt.Fprintf(os.Stdout, "check: L0 %s, %d seeds: %d faults injected, %d states checked, %d violations, %.0f s\n",
		w.Name, stats["seeds"], stats.faults(), stats["writes"], found, time.Since(start).Seconds())
	t.Logf("what was reached:\n%s", stats)
	w.perTrouble(stats, broken)
	for i, r := range broken {
		if i < shown {
			t.Error(r)
		} else {
			v := r.Violations[0]
			t.Errorf("seed %d: %s at %d: %s: %s", r.Seed, v.Invariant, v.RV, v.Object, v.Sentence)
		}
	}
	for _, what := range w.reached(seeds) {
		if stats[what] == 0 {
			t.Errorf("none of %d seeds came to this: %s", seeds, what)
		}
	}
}

// perTrouble prints what was found in the seeds of each trouble, so that one can see where seeds are well spent.
func (w World) perTrouble(stats Stats, broken []Result) {
	found := map[string]map[string]int{}
	for _, r := range broken {
		name := cmp.Or(r.Trouble, "none")
		if found[name] == nil {
			found[name] = map[string]int{}
		}
		seen := map[string]bool{}
		for _, v := range r.Violations {
			if !seen[v.Invariant] {
				seen[v.Invariant] = true
				found[name][v.Invariant]++
			}
		}
	}
	for _, name := range append([]string{"none"}, Troubles()...) {
		seeds := stats["seeds with trouble "+name]
		if seeds == 0 {
			continue
		}
		_, _ = fmt.Fprintf(os.Stdout, "    %s, %s: %d seeds", w.Name, name, seeds)
		for _, invariant := range slices.Sorted(maps.Keys(found[name])) {
			n := found[name][invariant]
			_, _ = fmt.Fprintf(os.Stdout, ", %s in %d (%d of a thousand)", invariant, n, 1000*n/seeds)
		}
		_, _ = fmt.Fprintln(os.Stdout)
	}
}

// runAll runs seeds and returns what happened in all, and those that broke a promise, in their order.
func (w World) runAll(t *testing.T, seeds uint64) (stats Stats, broken []Result) {
	t.Helper()
	var mu sync.Mutex
	stats = Stats{}
	t.Run("seeds", func(t *testing.T) {
		shards := uint64(runtime.GOMAXPROCS(0))
		for shard := range shards {
			t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
				t.Parallel()
				for seed := *firstSeed + shard; seed < *firstSeed+seeds; seed += shards {
					r := Run(t, seed, Options{Kinds: w.Kinds, Trouble: troubleToRun()})
					r.World = w.Name
					mu.Lock()
					stats.Add(r.Stats)
					stats.count("seeds with trouble " + cmp.Or(r.Trouble, "none"))
					if len(r.Violations) > 0 {
						r.History = nil // it is large
						broken = append(broken, r)
					}
					mu.Unlock()
				}
			})
		}
	})
	slices.SortFunc(broken, func(a, b Result) int { return cmp.Compare(a.Seed, b.Seed) })
	return stats, broken
}

func replay(t *testing.T, seed uint64, w World) {
	t.Helper()
	r := Run(t, seed, Options{Kinds: w.Kinds, Trouble: troubleToRun(), Trace: true})
	r.World = w.Name
	t.Logf("\n%s\n%s", r.Trace, r.Stats)
	if len(r.Violations) > 0 {
		t.Error(r)
	}
}

// TestCalm: without faults, a rollout comes to its end, and the whole way there is what one expects.
func TestCalm(t *testing.T) {
	r := Run(t, 1, Options{Calm: true, Edits: 1, Parents: 1, Trace: true})
	if len(r.Violations) > 0 {
		t.Error(r)
	}
	if r.Stats["event SuccessfulCreate"] == 0 || r.Stats["writes"] == 0 {
		t.Errorf("nothing happened:\n%s", r.Trace)
	}
}

// TestOneSeedOneHistory: chance comes from the seed only, not from goroutines, maps or select.
func TestOneSeedOneHistory(t *testing.T) {
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) { w.repeat(t) })
	}
}

func (w World) repeat(t *testing.T) {
	t.Helper()
	seeds := 40 * w.Share / 100
	if full() {
		seeds *= 3
	}
	differ := 0
	var last string
	for seed := range seeds {
		options := Options{Kinds: w.Kinds, Trouble: AnyTrouble, Trace: true}
		first, second := Run(t, seed, options), Run(t, seed, options)
		if first.Trace != second.Trace {
			t.Errorf("seed %d: two runs are different\n%s", seed, firstDifference(first.Trace, second.Trace))
		}
		if first.Trace != last {
			differ++
		}
		last = first.Trace
	}
	if differ < int(seeds) {
		t.Errorf("of %d seeds, only %d have a history of their own", seeds, differ)
	}
}
