package mutants

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/scenario"
	"github.com/cairn-dev/cairn/proof/sim"
)

// This file is the test that must fail in a mutated binary, and pass in this one: seeds of the simulation, in order,
// until one of them breaks a promise.

// few is how many seeds the healthy code runs where nobody asks for more.
const few = 20

var (
	seeds   = flag.Uint64("seeds", few, "run the seeds from 1 to this one")
	world   = flag.String("world", "", "the kind of world to run them in")
	trouble = flag.String("trouble", sim.NoTrouble, "what goes wrong in it for longer")
	until   = flag.String("until", "", "stop only where one of these invariants is broken; empty means any")
	script  = flag.String("script", "", "play this scenario instead")
)

// worlds are the kinds of worlds: those that make check runs, of which the one without a name is the first, and one of
// DaemonSets that all select the same pods, against all advice: two parents want one orphan.
func worlds() map[string]sim.Options {
	out := map[string]sim.Options{"": {}, "overlapping": {Kinds: []sim.Kind{sim.Shared(sim.DaemonSet())}}}
	for _, w := range sim.Worlds() {
		out[w.Name] = sim.Options{Kinds: w.Kinds}
	}
	return out
}

// find is what the seeds found, as one process tells another.
type find struct {
	// Seed is the first one that broke such a promise.
	Seed uint64
	// Broken are the promises that it broke, Sentence is what the checker says of the first.
	Broken   []string
	Sentence string
	// Also are others that it broke, or that seeds before it did.
	Also []string
}

// found marks the line with the find in the output of a test binary.
const found = "found: "

func TestSeeds(t *testing.T) {
	options, ok := worlds()[*world]
	if !ok {
		t.Fatalf("there is no world %q", *world)
	}
	options.Trouble = *trouble
	run := func(seed uint64) []check.Violation { return sim.Run(t, seed, options).Violations }
	if *script != "" {
		*seeds, run = 1, func(uint64) []check.Violation { return play(t, *script) }
	}
	wanted := strings.Fields(*until)
	var f find
	for f.Seed = 1; f.Seed <= *seeds; f.Seed++ {
		violations := run(f.Seed)
		for _, v := range violations {
			f.note(v, len(wanted) == 0 || slices.Contains(wanted, v.Invariant))
		}
		if len(f.Broken) == 0 {
			continue
		}
		line, err := json.Marshal(f)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = fmt.Fprintf(os.Stdout, "%s%s\n", found, line)
		for _, v := range violations {
			t.Error(v)
		}
		t.FailNow()
	}
	if len(f.Also) > 0 {
		t.Logf("broken, but not looked for: %v", f.Also)
	}
}

// note takes down a violation.
func (f *find) note(v check.Violation, wanted bool) {
	switch {
	case !wanted && !slices.Contains(f.Also, v.Invariant):
		f.Also = append(f.Also, v.Invariant)
	case wanted && len(f.Broken) == 0:
		f.Sentence = fmt.Sprintf("%s: %s", v.Object, v.Sentence)
		fallthrough
	case wanted && !slices.Contains(f.Broken, v.Invariant):
		f.Broken = append(f.Broken, v.Invariant)
	default:
	}
}

// play plays a scenario in the simulation.
func play(t *testing.T, file string) (violations []check.Violation) {
	t.Helper()
	f, err := os.Open(file)
	if err != nil {
		t.Fatal(err)
	}
	s, err := scenario.Parse(file, f)
	if err := errors.Join(err, f.Close()); err != nil {
		t.Fatal(err)
	}
	kinds, err := s.Kinds()
	if err != nil {
		t.Fatal(err)
	}
	synctest.Test(t, func(t *testing.T) {
		stage := sim.Open(sim.KindsOf(s.Controllers...)...)
		t.Cleanup(stage.Close)
		p, err := s.Play(t.Context(), stage)
		if err != nil {
			t.Error(err)
		}
		ctx := context.WithoutCancel(t.Context())
		verdict, err := p.Judge(ctx, kinds...)
		if err == nil {
			violations = verdict.Violations
			return
		}
		t.Error(err)
		// A world that never rests cannot be judged at rest; what was written until now can.
		if _, err := stage.Sync(ctx); err != nil {
			t.Fatal(err)
		}
		history, err := stage.History()
		if err != nil {
			t.Fatal(err)
		}
		violations = check.Check(history, kinds...)
	})
	return violations
}
