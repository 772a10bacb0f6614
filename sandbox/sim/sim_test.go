package sim

import (
	"fmt"
	"os"
	"runtime"
	"runtime/debug"
	"slices"
	"sync"
	"testing"
	"time"
)

// This file runs many seeds. CAIRN_CHECK=full runs all of them, -sim.seed=N one, with its trace.

const (
	fewSeeds  = 400
	fullSeeds = 20_000
	// shown is how many seeds that found something are told in full.
	shown = 3
)

// full reports whether this is make check.
func full() bool { return os.Getenv("CAIRN_CHECK") == "full" }

func seedsToRun() uint64 {
	switch {
	case *seedCount > 0:
		return *seedCount
	case full():
		return fullSeeds
	default:
		return fewSeeds
	}
}

// reached are the situations that every run of many seeds must have come to. A fault that is never injected is a defect
// of the simulation.
var reached = []string{
	"AlreadyExists", "bookmarks", "conflicts", "errors of passes", "events", "garbage collected", "kills between requests",
	"late requests", "managers that gave up", "nodes change", "nodes come", "nodes go", "notices", "old lists", "outages",
	"relists", "resyncs", "starts", "two managers",
	"event FailedDaemonPod", "event RecordFailed", "event RolledBack", "event SuccessfulCreate", "event SuccessfulDelete",
	"fault 409 conflict", "fault 429 without Retry-After", "fault 500", "fault hang", "fault kill after", "fault kill before",
	"fault request lost", "fault response lost", "fault outage 403", "fault outage 422", "fault outage 429", "fault outage 500",
	"user: copy a revision", "user: copy a revision with its owner", "user: create", "user: delete Background",
	"user: delete Foreground", "user: delete Orphan", "user: delete a child", "user: delete a revision", "user: disown a child",
	"user: disown a revision", "user: plant a child", "user: relabel a child", "user: undo",
}

// TestSeeds runs random worlds, as many at once as there are processors. No promise may be broken in any.
func TestSeeds(t *testing.T) {
	if *oneSeed >= 0 {
		replay(t, uint64(*oneSeed))
		return
	}
	defer debug.SetGCPercent(debug.SetGCPercent(400)) // worlds are small, and there are many
	start := time.Now()
	var mu sync.Mutex
	stats, broken := Stats{}, []Result{}
	t.Run("seeds", func(t *testing.T) {
		shards := uint64(runtime.GOMAXPROCS(0))
		for shard := range shards {
			t.Run(fmt.Sprint("shard ", shard), func(t *testing.T) {
				t.Parallel()
				for seed := *firstSeed + shard; seed < *firstSeed+seedsToRun(); seed += shards {
					r := Run(t, seed, Options{})
					mu.Lock()
					stats.Add(r.Stats)
					if len(r.Violations) > 0 {
						r.History = nil // it is large
						broken = append(broken, r)
					}
					mu.Unlock()
				}
			})
		}
	})
	found := 0
	for _, r := range broken {
		found += len(r.Violations)
	}
	// hack/check.sh makes a table of lines like this one.
	_, _ = fmt.Fprintf(os.Stdout, "check: L0 daemonset, %d seeds: %d faults injected, %d states checked, %d violations, %.0f s\n",
		stats["seeds"], stats.faults(), stats["writes"], found, time.Since(start).Seconds())
	t.Logf("what was reached:\n%s", stats)
	slices.SortFunc(broken, func(a, b Result) int { return compare(fmt.Sprintf("%020d", a.Seed), fmt.Sprintf("%020d", b.Seed)) })
	for i, r := range broken {
		if i < shown {
			t.Error(r)
		} else {
			v := r.Violations[0]
			t.Errorf("seed %d: %s at %d: %s: %s", r.Seed, v.Invariant, v.RV, v.Object, v.Sentence)
		}
	}
	if seedsToRun() < fewSeeds {
		return
	}
	for _, what := range reached {
		if stats[what] == 0 {
			t.Errorf("none of %d seeds came to this: %s", seedsToRun(), what)
		}
	}
}

func replay(t *testing.T, seed uint64) {
	t.Helper()
	r := Run(t, seed, Options{Trace: true})
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
	seeds := uint64(40)
	if full() {
		seeds = 400
	}
	differ := 0
	var last string
	for seed := range seeds {
		first, second := Run(t, seed, Options{Trace: true}), Run(t, seed, Options{Trace: true})
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
