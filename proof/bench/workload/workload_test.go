// Package workload measures cairn's DaemonSet, StatefulSet and ReplicaSet controllers beside those of
// kube-controller-manager, which do the same work.
//
//	make bench BENCH=Workload          # small loads
//	make bench BENCH=Workload FULL=1   # thousands of pods
//
// Both run as processes of their own on one API server, one after the other, and each comes first in every other round.
// kube-controller-manager is built from its published module, and runs the one controller.
//
// What may not come in: another budget, another template or another limit of requests for one of the two.
package workload

import (
	"context"
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
		Replaced: []string{sandbox.DaemonSet, sandbox.StatefulSet, sandbox.ReplicaSet},
	})
	lab.RemoveBuilt()
	if err := printed.Write(os.Stdout, rounds); err != nil {
		code = 1
	}
	os.Exit(code)
}

// rounds is how often each of the two does everything.
const rounds = 3

// BenchmarkWorkload makes parents, and rolls them to another image or scales them to nothing.
func BenchmarkWorkload(b *testing.B) {
	for _, k := range kinds {
		load := k.load
		if os.Getenv("FULL") != "" {
			load = k.full
		}
		b.Run(k.name+"/"+load.String(), func(b *testing.B) {
			for b.Loop() {
				k.compare(b, load)
			}
			b.ReportMetric(0, "ns/op") // it holds the waits for rest
		})
	}
}

// compare measures both subjects in each round, and adds what was found to the table.
func (k *workload) compare(b *testing.B, load lab.Load) {
	b.Helper()
	costs := map[string][2]lab.Rounds{}
	for round := range rounds {
		for i := range subjects {
			which := (round + i) % len(subjects)
			for phase, cost := range k.round(b, load, which) {
				of := costs[phase]
				of[which] = append(of[which], cost)
				costs[phase] = of
				b.Logf("%s %s, %s, round %d: CPU %.2f s; %s", k.name, phase, subjects[which].name, round+1, cost.CPU.Seconds(), cost.Tally)
			}
		}
	}
	for _, phase := range k.phases {
		printed.Add(k.name+" "+phase.name+" "+load.String(), [2]string{subjects[0].name, subjects[1].name}, costs[phase.name])
	}
}

// round returns what a subject takes for each phase, in a namespace and with a process of its own.
func (k *workload) round(tb testing.TB, load lab.Load, which int) map[string]lab.Cost {
	tb.Helper()
	c, p := k.start(tb, load, which)
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
func (k *workload) start(tb testing.TB, load lab.Load, which int) (*lab.Cluster, *lab.Process) {
	tb.Helper()
	if k.nodes {
		needNodes(tb, load.Children)
	}
	c := lab.NewCluster(tb, counted, load, k.kind)
	before := counted.Read()
	s := subjects[which]
	p := lab.Start(tb, c.Subject, lab.Build(tb, s.program), s.arguments(k)...)
	watches := "watch " + k.kind.Resource.Resource
	c.Eventually(watches, func(context.Context) (bool, error) {
		p.Runs()
		return counted.Since(before).Requests[watches] > 0, nil
	})
	c.Rested()
	return c, p
}
