// Package composite measures composite controllers: what the manager asks of the API server, of a hook and of a
// processor for each child, while parents are made, while they are rolled, and while nothing happens.
//
//	make bench BENCH=Composite
//
// Every figure stands beside the floor (a delete and a create for each child) and beside what Metacontroller 4.17.2
// took for the same load (published_test.go). The manager is a process of its own; requests are counted by the API
// server's audit, calls by the hook.
//
// What may not come in: figures that the manager reports of itself.
package composite

import (
	"os"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/proof/bench/lab"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

// counted is what the sandbox and all hooks of this process count in.
var counted = lab.NewLedger()

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{Nodes: sandbox.NoNodes, Requests: func(r sandbox.Request) {
		counted.Request(r)
		countWatches(r)
	}})
	lab.RemoveBuilt()
	if err := printed.write(os.Stdout); err != nil {
		code = 1
	}
	os.Exit(code)
}

// BenchmarkCompositeRolling rolls all parents to another image.
func BenchmarkCompositeRolling(b *testing.B) {
	for _, l := range []load{
		{parents: 1, children: 10},
		{parents: 1, children: 100},
		{parents: 10, children: 100},
		{parents: 1, children: 100, maxUnavailable: 10},
	} {
		b.Run(l.String(), func(b *testing.B) {
			c, p := newManagedCluster(b, l)
			c.Create()
			c.Served()
			c.Settled()
			var costs []lab.Cost
			for b.Loop() {
				costs = append(costs, c.Measure(p, c.Edit))
			}
			report(b, ours, "rolled "+l.String(), l, costs)
		})
	}
}

// BenchmarkCompositeCreate makes parents, and their children with them.
func BenchmarkCompositeCreate(b *testing.B) {
	loads := []load{{parents: 1, children: 100}, {parents: 100, children: 10}}
	if os.Getenv("FULL") != "" {
		loads = append(loads, load{parents: 1000, children: 3})
	}
	for _, l := range loads {
		b.Run(l.String(), func(b *testing.B) {
			c, p := newManagedCluster(b, l)
			var costs []lab.Cost
			for b.Loop() {
				costs = append(costs, c.Measure(p, c.Create))
				b.StopTimer()
				c.Remove()
				b.StartTimer()
			}
			report(b, ours, "created "+l.String(), l, costs)
		})
	}
}

// BenchmarkCompositeRest lets parents be for a minute.
func BenchmarkCompositeRest(b *testing.B) {
	for _, l := range []load{{parents: 100, children: 10}, {parents: 100, children: 10, resync: 10}} {
		b.Run(l.String(), func(b *testing.B) {
			c, p := newManagedCluster(b, l)
			c.Create()
			c.Served()
			c.Settled()
			var costs []lab.Cost
			for b.Loop() {
				costs = append(costs, c.Idle(p, time.Minute))
			}
			report(b, ours, "at rest for a minute "+l.String(), l, costs)
		})
	}
}

// BenchmarkCompositeFloor rolls pods without a controller, one at a time: what nobody can do without.
func BenchmarkCompositeFloor(b *testing.B) {
	for _, l := range []load{{parents: 1, children: 10}, {parents: 1, children: 100}} {
		b.Run(l.String(), func(b *testing.B) {
			c := newCluster(b, l)
			f := newFloor(c)
			f.create()
			c.Served()
			var costs []lab.Cost
			for b.Loop() {
				before, start := counted.Read(), time.Now()
				f.roll()
				costs = append(costs, lab.Cost{Tally: counted.Since(before), Wall: c.Served().Sub(start)})
			}
			report(b, "floor", "rolled "+l.String(), l, costs)
		})
	}
}

// newManagedCluster is newCluster with a controller and a manager that runs it already.
func newManagedCluster(tb testing.TB, l load) (*cluster, *lab.Process) {
	tb.Helper()
	c := newCluster(tb, l)
	c.control()
	p := startManager(c)
	c.controlled()
	return c, p
}

// startManager runs the composite controller until the test ends.
func startManager(c *cluster) *lab.Process {
	c.Helper()
	args := []string{
		"manager", "--controllers=composite", "--hosted-identity=shared", "--leader-elect=false", "--hook-allow-address=127.0.0.1",
		"--metrics-bind-address=off", "--health-probe-bind-address=off", "--log-level=debug",
	}
	if address := os.Getenv(lab.ProfileVariable); address != "" {
		args = append(args, "--pprof-bind-address="+address)
	}
	return lab.Start(c.TB, c.Subject, lab.Build(c.TB, lab.Cairn), args...)
}
