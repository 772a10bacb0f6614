// Package authored measures a controller that somebody made with package builder beside cairn's StatefulSet controller,
// which does the same work: as many parents with as many pods of one template, one pod of a parent at a time.
//
//	make bench BENCH=Authored
//
// Both run as processes of their own on one API server, one after the other, and each comes first in every other round.
// What is printed is the median of the rounds, and how many times the StatefulSet controller's the builder's is.
//
// What may not come in: another budget, another template or another status for one of the two.
package authored

import (
	"os"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// counted is what the sandbox counts in.
var counted = lab.NewLedger()

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{
		Nodes: sandbox.NoNodes, Requests: counted.Request, Replaced: []string{sandbox.StatefulSet},
	})
	lab.RemoveBuilt()
	if err := printed.Write(os.Stdout, rounds); err != nil {
		code = 1
	}
	os.Exit(code)
}

const (
	// rounds is how often each of the two does everything.
	rounds = 3
	// restFor is how long both are left alone, passes how many passes are asked for that find nothing to do.
	restFor = 10 * time.Second
	passes  = 200
	// touchPause is the time between two edits of a parent that mean nothing. Passes that came faster than they are made
	// would be one.
	touchPause = 25 * time.Millisecond
)

// BenchmarkAuthored makes parents, leaves them alone, touches them, rolls them to another image and back.
func BenchmarkAuthored(b *testing.B) {
	loads := []lab.Load{{Parents: 20, Children: 10}, {Parents: 1, Children: 100}}
	if os.Getenv("FULL") != "" {
		loads = []lab.Load{{Parents: 500, Children: 4}}
	}
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			for b.Loop() {
				costs := map[string]map[string]lab.Rounds{}
				for round := range rounds {
					for i := range pair {
						s := pair[(round+i)%len(pair)]
						for phase, cost := range s.round(b, l) {
							if costs[s.name] == nil {
								costs[s.name] = map[string]lab.Rounds{}
							}
							costs[s.name][phase] = append(costs[s.name][phase], cost)
						}
					}
				}
				report(b, l, costs)
			}
		})
	}
}

// phases are what is measured, in this order.
var phases = []string{"created", "at rest", "touched", "rolled", "undone"}

// round returns what a subject takes for each phase, in a namespace and with a process of its own.
func (s *subject) round(tb testing.TB, l lab.Load) map[string]lab.Cost {
	tb.Helper()
	c, p := s.start(tb, l)
	out := map[string]lab.Cost{}
	out["created"] = c.Measure(p, c.Create)
	out["at rest"] = c.Idle(p, restFor)
	out["touched"] = c.Measure(p, func() { touch(c, passes/l.Parents) })
	out["rolled"] = c.Measure(p, c.Edit)
	out["undone"] = c.Measure(p, func() { c.EditTo(1) })
	c.Remove()
	c.Rested()
	p.Stop()
	return out
}

// touch edits what no controller looks at, in all parents, so many times.
func touch(c *lab.Cluster, times int) {
	c.Helper()
	pause := time.NewTicker(touchPause)
	defer pause.Stop()
	for range times {
		<-pause.C
		c.Patch(types.MergePatchType, `{"metadata":{"annotations":{"bench.cairn.dev/touched":"`+time.Now().Format(time.RFC3339Nano)+`"}}}`)
	}
}
