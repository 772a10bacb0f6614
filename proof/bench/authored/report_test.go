package authored

// This file prints the medians of the rounds as a table, with how many times the StatefulSet controller's the builder's
// is.

import (
	"testing"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

var printed = &lab.Table{}

// report gives out the medians of a load.
func report(b *testing.B, l lab.Load, costs map[string]map[string]lab.Rounds) {
	b.Helper()
	b.ReportMetric(0, "ns/op") // it holds the waits for rest
	for _, phase := range phases {
		printed.Add(phase, l, lab.Measured{Name: statefulSet, Rounds: costs[statefulSet][phase]},
			lab.Measured{Name: authored, Rounds: costs[authored][phase]})
		for _, s := range pair {
			for i, c := range costs[s.name][phase] {
				b.Logf("%s, %s, round %d: CPU %.2f s; %s", phase, s.name, i+1, c.CPU.Seconds(), c.Tally)
			}
		}
	}
}
