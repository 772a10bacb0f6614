package composite

// This file holds the counts to what they may be. Times are for benchmarks; counts are the same on every machine.

import (
	"testing"
	"time"
)

// TestCostOfRollout: a child costs little more than its delete and its create, and several cost less when they move
// together. What happens is reported once a second, so how often depends on the machine: it is held to that.
func TestCostOfRollout(t *testing.T) {
	for _, c := range []struct {
		load            load
		requests, calls float64 // for each child, at most; requests without reports
	}{
		{load{parents: 1, children: 100}, 4.2, 2},
		{load{parents: 1, children: 100, maxUnavailable: 10}, 2.5, 0.5},
	} {
		t.Run(c.load.String(), func(t *testing.T) {
			cluster, p := newManagedCluster(t, c.load)
			cluster.Create()
			cluster.Served()
			cluster.Settled()
			cost := cluster.Measure(p, cluster.Edit)
			t.Logf("%.1f s, %d calls with %d bytes; %s", cost.Wall.Seconds(), cost.Calls, cost.Bytes, cost.Tally)
			children, statuses, events := float64(c.load.pods()), cost.Requests["patch parents/status"], cost.Requests["create events"]
			if got := float64(cost.Total()-statuses-events) / children; got > c.requests || got < 2 {
				t.Errorf("%.2f requests for each child, want 2 to %.2f", got, c.requests)
			}
			if most := int(cost.Wall.Seconds()) + 3; statuses > most || events > most || statuses == 0 {
				t.Errorf("%d times the status was written, and %d events, want some status and at most %d of each", statuses, events, most)
			}
			// One dry run gives leave to replace children that differ in nothing but their name, for a while.
			if got, most := cost.Requests["try create pods"], int(cost.Wall.Seconds()/10)+1; got < 1 || got > most {
				t.Errorf("%d dry runs, want 1 to %d", got, most)
			}
			if got := float64(cost.Calls) / children; got > c.calls || cost.Calls == 0 {
				t.Errorf("%.2f calls of the hook for each child, want some and at most %.2f", got, c.calls)
			}
			if len(cost.Refused) > 0 {
				t.Errorf("some requests were refused: %v", cost.Refused)
			}
		})
	}
}

// TestCostOfRest: who has nothing to do does nothing; who is to ask again asks the hook, once in each period for each
// parent, and nobody else.
func TestCostOfRest(t *testing.T) {
	for _, c := range []struct {
		load     load
		from, to int // calls of the hook
	}{
		{load{parents: 10, children: 10}, 0, 0},
		{load{parents: 10, children: 10, resync: 1}, 20, 40},
	} {
		t.Run(c.load.String(), func(t *testing.T) {
			cluster, p := newManagedCluster(t, c.load)
			cluster.Create()
			cluster.Served()
			cluster.Settled()
			cost := cluster.Idle(p, 3*time.Second)
			if cost.Total() > 0 || cost.Calls < c.from || cost.Calls > c.to {
				t.Errorf("%d calls of the hook, want %d to %d; requests: %s, want none", cost.Calls, c.from, c.to, cost.Tally)
			}
		})
	}
}
