package sim

import (
	"testing"
)

// TestStatefulSetSeeds runs random worlds of StatefulSets. No promise may be broken in any.
func TestStatefulSetSeeds(t *testing.T) {
	options := Options{Kinds: []Kind{StatefulSet()}}
	if *oneSeed >= 0 {
		options.Trace = true
		r := Run(t, uint64(*oneSeed), options)
		t.Logf("\n%s\n%s", r.Trace, r.Stats)
		if len(r.Violations) > 0 {
			t.Error(r)
		}
		return
	}
	stats, broken := Stats{}, 0
	for seed := *firstSeed; seed < *firstSeed+seedsToRun(); seed++ {
		r := Run(t, seed, options)
		stats.Add(r.Stats)
		if len(r.Violations) == 0 {
			continue
		}
		if broken++; broken <= shown {
			t.Error(r)
		} else {
			v := r.Violations[0]
			t.Errorf("seed %d: %s at %d: %s: %s", r.Seed, v.Invariant, v.RV, v.Object, v.Sentence)
		}
	}
	t.Logf("what was reached:\n%s", stats)
}
