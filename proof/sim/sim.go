package sim

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/cairn-dev/cairn/proof/check"
)

// This file runs one seed.

// Options say what a world is like. The zero value is what make check runs.
type Options struct {
	// Kinds are what the managers run and the user works with. Empty means DaemonSets.
	Kinds []Kind
	// Parents is how many parents of a kind there can be: 1 or 2. Zero means 2.
	Parents int
	// Workers is how many parents a controller works on at once. Zero means 4. With fewer than there are parents, the
	// goroutines of a manager would race for them, and two runs of a seed would differ.
	Workers int
	// Edits is how often the user does something. Zero means 10 to 25, by the seed.
	Edits int
	// Calm worlds have no faults: no request fails, no watch breaks, no manager ends.
	Calm bool
	// Trouble is what goes wrong for longer than a request takes: one of Troubles, AnyTrouble, or NoTrouble.
	Trouble string
	// Trace writes down everything that happens. It costs time.
	Trace bool
}

func (o Options) kinds() []Kind {
	if len(o.Kinds) == 0 {
		return []Kind{DaemonSet()}
	}
	return o.Kinds
}

// Result is what came of one seed.
type Result struct {
	Seed uint64
	// World is its name, empty for one that has none. Trouble is what went wrong in it, empty if nothing did, and About
	// says what that was.
	World, Trouble, About string
	History               *check.History
	// Trace is empty unless it was asked for.
	Trace string
	// Violations are the promises that were broken. There should be none.
	Violations []check.Violation
	Stats      Stats
}

// String is the whole story of a seed that found something, and how to see it again.
func (r Result) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "seed %d: %d violations\n", r.Seed, len(r.Violations))
	if r.Trouble != NoTrouble {
		fmt.Fprintf(&b, "trouble: %s: %s\n", r.Trouble, r.About)
	}
	for _, v := range r.Violations {
		fmt.Fprintf(&b, "%s\n", v)
	}
	fmt.Fprintf(&b, "replay: cd proof && go test -count=1 -run '^TestSeeds$' ./sim -sim.world=%s -sim.seed=%d\n", r.World, r.Seed)
	return b.String()
}

// Run makes the world of a seed, lets it go on until the user has done everything and all is at rest, and checks what
// happened. t only lends its bubble; nothing fails it.
func Run(t *testing.T, seed uint64, o Options) Result {
	t.Helper()
	if o.Parents == 0 {
		o.Parents = len(parentNames)
	}
	if o.Workers == 0 {
		o.Workers = 4
	}
	result := Result{Seed: seed}
	synctest.Test(t, func(*testing.T) {
		w := newWorld(seed, o)
		defer w.stop()
		w.run()
		result.History, result.Violations = w.report()
		result.Trace, result.Stats = w.trace.lines.String(), w.stats
		if w.trouble != nil {
			result.Trouble, result.About = w.trouble.name, w.trouble.about
		}
	})
	return result
}

// run is the whole life of a world.
func (w *world) run() {
	for n := range 1 + w.chance.IntN(maxMachines) {
		w.addMachine(n)
	}
	for _, k := range w.kinds {
		for _, o := range k.Before {
			w.make(o)
		}
	}
	w.startNext()
	edits := w.options.Edits
	if edits == 0 {
		edits = 10 + w.chance.IntN(16)
	}
	for range edits {
		w.flip()
		w.user()
		w.wait()
		if w.chance.IntN(10) < w.temper.hasty {
			continue
		}
		for range w.chance.IntN(60) {
			w.once()
		}
	}
	w.endure()
}

// report brings the world to rest, and checks its history.
func (w *world) report() (*check.History, []check.Violation) {
	kinds := w.checkKinds()
	h := &w.history
	rested := w.calm()
	if rested {
		from, to := w.rest()
		h.Events = w.history.Events
		w.found = append(w.found, check.Rest(h, from, kinds...)...)
		w.found = append(w.found, check.Quiet(h, from, to, kinds...)...)
	}
	w.found = append(w.found, check.Check(h, kinds...)...)
	w.found = append(w.found, check.Rate(h, kinds...)...)
	w.found = append(w.found, check.Idle(h)...)
	w.found = append(w.found, check.Invalid(h)...)
	w.unchanged()
	w.stats["writes"] += len(h.Events)
	w.stats["steps"] += w.step
	w.stats["seeds"]++
	return h, w.found
}

// stop ends all goroutines of the world.
func (w *world) stop() {
	for len(w.processes) > 0 {
		w.kill(w.processes[0])
	}
}

func isManager(e *check.Entry) bool { return strings.HasPrefix(e.User, "manager-") }
