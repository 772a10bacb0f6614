package sim

import (
	"strings"
	"testing"

	"github.com/cairn-dev/cairn/proof/scenario"
)

// What the random user did can be put into a script: every line of it in a trace is a step that package scenario reads
// back.
func TestTheRandomUserSpeaksInSteps(t *testing.T) {
	for _, w := range Worlds() {
		t.Run(w.Name, func(t *testing.T) {
			steps := 0
			for seed := range uint64(4) {
				trace := Run(t, seed, Options{Kinds: w.Kinds, Trouble: AnyTrouble, Trace: true}).Trace
				for line := range strings.Lines(trace) {
					_, step, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " user: ")
					if !ok {
						continue
					}
					steps++
					script, err := scenario.Parse("trace", strings.NewReader(step))
					if err != nil || len(script.Steps) != 1 || script.Steps[0].String() != step {
						t.Errorf("no script can say this: %s: %v", step, err)
					}
				}
			}
			if steps == 0 {
				t.Error("the user did nothing")
			}
		})
	}
}
