package workload

// This file holds the writes to the floor. Times are for the benchmark; these are the same on every machine.

import (
	"strings"
	"testing"
	"time"

	"github.com/cairn-dev/cairn/proof/bench/lab"
)

// TestCostOfWorkloads: each pod is created once, and deleted once if it is replaced. Beside that there are a status at
// most once a second, twenty events at first and then a few, and a handful of requests for the revision and against
// stale reads. At rest there is none at all. The status of a ReplicaSet is written at once: a Deployment waits for it.
func TestCostOfWorkloads(t *testing.T) {
	const pods = 40
	for _, k := range kinds {
		if !k.simple() {
			continue
		}
		t.Run(k.name, func(t *testing.T) {
			c, p := k.start(t, lab.Load{Parents: 1, Children: pods}, cairn)
			for _, phase := range k.phases {
				cost := c.Measure(p, func() { phase.do(c) })
				t.Logf("%s: %s", phase.name, cost.Tally)
				creates, deletes := pods, 0
				switch phase.name {
				case rolled.name:
					deletes = pods
				case toZero.name:
					creates, deletes = 0, pods
				}
				k.floor(t, phase.name, cost, creates, deletes)
			}
			if cost := c.Idle(p, 3*time.Second); cost.Total() > 0 {
				t.Errorf("at rest: %s", cost.Tally)
			}
			c.Remove()
			p.Stop()
		})
	}
}

// floor fails the test if a cost is more than what cannot be done without.
func (k *workload) floor(t *testing.T, phase string, cost lab.Cost, creates, deletes int) {
	t.Helper()
	if len(cost.Refused) > 0 {
		t.Errorf("%s: some requests were refused: %v", phase, cost.Refused)
	}
	statuses, events, others := 0, 0, 0
	for what, n := range cost.Requests {
		switch {
		case what == "create pods":
			creates -= n
		case what == "delete pods":
			deletes -= n
		case strings.HasSuffix(what, "/status"):
			statuses += n
		case strings.HasSuffix(what, " events"):
			events += n
		default:
			others += n
		}
	}
	if creates != 0 || deletes != 0 {
		t.Errorf("%s: pods created or deleted that need not be, or not as counted: %s", phase, cost.Tally)
	}
	if most := int(cost.Wall.Seconds()) + 3; statuses > most && k.name != "replicaset" {
		t.Errorf("%s: %d statuses in %s", phase, statuses, cost.Wall)
	}
	most := 3
	if phase == created.name {
		most = 20
	}
	if events > most || others > 6 {
		t.Errorf("%s: %d events and %d other requests: %s", phase, events, others, cost.Tally)
	}
}
