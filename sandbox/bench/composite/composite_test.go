// Package composite measures composite controllers: what the manager asks of the API server, of a hook and of a processor
// for each child, while parents are made, while they are rolled, and while nothing happens.
//
//	make bench BENCH=Composite
//
// Every figure stands beside the floor (a delete and a create for each child) and beside what Metacontroller 4.17.2 took
// for the same load (published_test.go). The manager is a process of its own; requests are counted by the API server's audit,
// calls by the hook.
//
// What may not come in: figures that the manager reports of itself.
package composite

import (
	"os"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{Nodes: sandbox.NoNodes, Requests: counted.request})
	removeBinary()
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
			c.create()
			c.served()
			c.settled()
			var costs []cost
			for b.Loop() {
				costs = append(costs, c.measure(p, c.edit))
			}
			report(b, ours, "rolled "+l.String(), l, costs)
		})
	}
}

// BenchmarkCompositeCreate makes parents, and their children with them.
func BenchmarkCompositeCreate(b *testing.B) {
	for _, l := range []load{{parents: 1, children: 100}, {parents: 100, children: 10}} {
		b.Run(l.String(), func(b *testing.B) {
			c, p := newManagedCluster(b, l)
			var costs []cost
			for b.Loop() {
				costs = append(costs, c.measure(p, c.create))
				b.StopTimer()
				c.remove()
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
			c.create()
			c.served()
			c.settled()
			var costs []cost
			for b.Loop() {
				costs = append(costs, c.idle(p, time.Minute))
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
			c.served()
			var costs []cost
			for b.Loop() {
				before, start := counted.read(), time.Now()
				f.roll()
				costs = append(costs, cost{tally: counted.since(before), wall: c.served().Sub(start)})
			}
			report(b, "floor", "rolled "+l.String(), l, costs)
		})
	}
}

// cost is what one thing that was measured took.
type cost struct {
	tally

	// wall is the time until the last pod served, cpu the processor time of the manager until nothing happened any more.
	wall, cpu time.Duration
	// peak is the most memory that the manager ever had, in bytes.
	peak int64
}

// newManagedCluster is newCluster with a controller and a manager that runs it already.
func newManagedCluster(tb testing.TB, l load) (*cluster, *manager) {
	tb.Helper()
	c := newCluster(tb, l)
	c.control()
	p := startManager(tb, c.subject)
	c.controlled()
	return c, p
}

// measure returns what it takes until the load is as it is to be after a change.
func (c *cluster) measure(p *manager, change func()) cost {
	c.Helper()
	before, cpu, start := counted.read(), p.cpu(), time.Now()
	change()
	end := c.served()
	c.settled()
	return cost{tally: counted.since(before), wall: end.Sub(start), cpu: p.cpu() - cpu, peak: p.peak()}
}

// idle returns what it takes to do nothing for a while.
func (c *cluster) idle(p *manager, d time.Duration) cost {
	c.Helper()
	before, cpu, start := counted.read(), p.cpu(), time.Now()
	over := time.NewTimer(d)
	defer over.Stop()
	select {
	case <-over.C:
	case <-c.Context().Done():
		c.Fatal(c.Context().Err())
	}
	return cost{tally: counted.since(before), wall: time.Since(start), cpu: p.cpu() - cpu, peak: p.peak()}
}
