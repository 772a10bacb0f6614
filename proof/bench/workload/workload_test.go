// Package workload measures cairn's DaemonSet, StatefulSet, ReplicaSet and CronJob controllers beside those of
// kube-controller-manager, which do the same work.
//
//	make bench BENCH=Workload          # small loads
//	make bench BENCH=Workload FULL=1   # thousands of pods; bin/bench has figures and a picture
//
// They run as processes of their own on one API server, one after the other, in another order in each round.
// kube-controller-manager is built from its published module, and runs the one controller. Beside them is the floor:
// a client that makes the requests which the work needs, and thinks about nothing (cmd/floor).
//
// What may not come in: another budget, another template or another limit of requests for one of the two.
package workload

import (
	"context"
	"errors"
	"os"
	"testing"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// counted is what the sandbox counts in.
var counted = lab.NewLedger()

var printed = &lab.Table{}

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{
		Nodes: sandbox.NoNodes, Requests: counted.Request,
		Replaced: []string{sandbox.DaemonSet, sandbox.StatefulSet, sandbox.ReplicaSet, sandbox.CronJob},
	})
	lab.RemoveBuilt()
	if err := errors.Join(printed.Write(os.Stdout, rounds), printed.Save("../../../bin/bench", "workload")); err != nil {
		code = 1
	}
	os.Exit(code)
}

// rounds is how often each subject does everything.
const rounds = 3

// BenchmarkWorkload makes parents, and rolls them to another image or scales them to nothing.
func BenchmarkWorkload(b *testing.B) {
	for _, k := range kinds {
		loads := k.loads
		if os.Getenv("FULL") != "" {
			loads = k.full
		}
		for _, load := range loads {
			b.Run(k.title()+"/"+load.String(), func(b *testing.B) {
				for b.Loop() {
					k.compare(b, load)
				}
				b.ReportMetric(0, "ns/op") // it holds the waits for rest
			})
		}
	}
}

// compare measures all subjects in each round, and adds what was found to the table.
func (k *workload) compare(b *testing.B, load lab.Load) {
	b.Helper()
	costs := map[string]map[string]lab.Rounds{}
	for round := range rounds {
		for i := range k.subjects {
			s := k.subjects[(round+i)%len(k.subjects)]
			for phase, cost := range k.round(b, load, s) {
				if costs[phase] == nil {
					costs[phase] = map[string]lab.Rounds{}
				}
				costs[phase][s.name] = append(costs[phase][s.name], cost)
				b.Logf("%s %s, %s, round %d: CPU %.2f s; %s", k.title(), phase, s.name, round+1, cost.CPU.Seconds(), cost.Tally)
			}
		}
	}
	for _, phase := range k.phases {
		measured := make([]lab.Measured, 0, len(k.subjects))
		for _, s := range k.subjects {
			measured = append(measured, lab.Measured{Name: s.name, Rounds: costs[phase.name][s.name]})
		}
		printed.Add(k.title()+" "+phase.name, load, measured...)
	}
}

// round returns what a subject takes for each phase, in a namespace and with a process of its own.
func (k *workload) round(tb testing.TB, load lab.Load, s subject) map[string]lab.Cost {
	tb.Helper()
	c, p := k.start(tb, load, s)
	out := map[string]lab.Cost{}
	for _, phase := range k.phases {
		out[phase.name] = c.Measure(p, func() { phase.do(c) })
	}
	c.Remove()
	c.Rested()
	p.Stop()
	return out
}

// start prepares a load and the process that looks after it.
func (k *workload) start(tb testing.TB, load lab.Load, s subject) (*lab.Cluster, *lab.Process) {
	tb.Helper()
	c := k.cluster(tb, load)
	return c, k.run(c, s)
}

// cluster prepares a load.
func (k *workload) cluster(tb testing.TB, load lab.Load) *lab.Cluster {
	tb.Helper()
	if k.nodes {
		needNodes(tb, load.Children)
	}
	return lab.NewCluster(tb, counted, load, k.kind)
}

// run starts the process that looks after a load, and waits until it has nothing to do.
func (k *workload) run(c *lab.Cluster, s subject) *lab.Process {
	c.Helper()
	before := counted.Read()
	p := lab.Start(c.TB, c.Subject, lab.Build(c.TB, s.program), s.arguments(k)...)
	watches := "watch pods"
	if !k.pods() {
		watches = "watch " + k.kind.Resource.Resource
	}
	c.Eventually(watches, func(context.Context) (bool, error) {
		p.Runs()
		return counted.Since(before).Requests[watches] > 0, nil
	})
	c.Rested()
	return p
}
