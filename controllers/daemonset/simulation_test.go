package daemonset

// Whole rollouts as golden files: makePlan in a loop over a table of nodes and pods in memory. A pod that is deleted
// goes one tick later; one that is created becomes available one tick after it has started.

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
	"github.com/cairn-dev/cairn/revision"
)

// simulation is a small cluster.
type simulation struct {
	ds    *appsv1.DaemonSet
	nodes []*corev1.Node
	pods  []*corev1.Pod
	born  int
	out   strings.Builder
	// person does something before a tick, and says what.
	person func(tick int, s *simulation) string
}

const maxTicks = 30

// run goes on until the rollout is complete and nothing is left to do.
func (s *simulation) run(t *testing.T, least int) string {
	t.Helper()
	for tick := range maxTicks {
		if s.person != nil {
			if did := s.person(tick, s); did != "" {
				fmt.Fprintf(&s.out, "     %s\n", did)
			}
		}
		f := given(s.ds, slices.Clone(s.nodes), s.pods...)
		p := mustPlan(t, f)
		rep := report{plan: p, recorded: &pass.Recorded{Update: &revision.Revision{Name: "agent-new"}}}
		condition := rep.rollout(s.ds, now).Updated
		fmt.Fprintf(&s.out, "%2d   %s\n", tick, s.table())
		fmt.Fprintf(&s.out, "     desired %d, updated %d, available %d; Updated=%s %s: %s\n",
			p.counts.desired, p.counts.updated, p.counts.available, condition.Status, condition.Reason, condition.Message)
		if got := s.serving(); got < least {
			t.Fatalf("tick %d: %d nodes are served, want at least %d\n%s", tick, got, least, s.out.String())
		}
		if p.rollout.Complete() && len(p.Creates)+len(p.Deletes) == 0 && s.serving() == len(s.nodes) {
			return s.out.String()
		}
		s.tick(p)
	}
	t.Fatalf("no end after %d ticks:\n%s", maxTicks, s.out.String())
	return ""
}

// table shows each node with its pods: + available, . not yet, x going.
func (s *simulation) table() string {
	var cells []string
	for _, n := range s.nodes {
		var on []string
		for _, pod := range s.pods {
			if name, _ := nodeOf(pod); name != n.Name {
				continue
			}
			sign := "."
			switch {
			case pod.DeletionTimestamp != nil:
				sign = "x"
			case isReady(pod):
				sign = "+"
			}
			on = append(on, pod.Labels["controller-revision-hash"]+sign)
		}
		slices.Sort(on)
		cells = append(cells, fmt.Sprintf("%s[%s]", n.Name, strings.Join(on, " ")))
	}
	return strings.Join(cells, " ")
}

func (s *simulation) serving() int {
	served := map[string]bool{}
	for _, pod := range s.pods {
		if pod.DeletionTimestamp == nil && isReady(pod) {
			served[pod.Spec.NodeName] = true
		}
	}
	return len(served)
}

// tick lets time pass, and then carries a plan out.
func (s *simulation) tick(p *plan) {
	s.pods = slices.DeleteFunc(s.pods, func(pod *corev1.Pod) bool { return pod.DeletionTimestamp != nil })
	for _, pod := range s.pods {
		if pod.Status.Phase == corev1.PodRunning {
			ready(time.Minute)(pod)
		}
		if pod.Status.Phase == corev1.PodPending {
			pod.Status.Phase = corev1.PodRunning
		}
	}
	for _, c := range p.Creates {
		s.born++
		s.pods = append(s.pods, pod(c.node, hashNew, phase(corev1.PodPending), named(fmt.Sprintf("%s-new-%d", c.node, s.born)), age(time.Minute)))
		fmt.Fprintf(&s.out, "     create on %s: %s\n", c.node, c.reason)
	}
	for _, d := range p.Deletes {
		terminating(d.pod)
		fmt.Fprintf(&s.out, "     delete %s: %s\n", d.pod.Name, d.reason)
	}
}

func TestSimulatedRollouts(t *testing.T) {
	deleting := func(at map[int]string) func(int, *simulation) string {
		return func(tick int, s *simulation) string {
			for _, pod := range s.pods {
				if pod.Name == at[tick] {
					terminating(pod)
					return "somebody deletes " + pod.Name
				}
			}
			return ""
		}
	}
	for name, c := range map[string]struct {
		budget dsOption
		broken string // a pod that is not ready when the rollout begins
		least  int    // how many of the four nodes are served at any time
		person func(int, *simulation) string
	}{
		"max-unavailable-1":      {rolling(1, 0), "", 3, nil},
		"max-unavailable-2":      {rolling(2, 0), "", 2, nil},
		"max-unavailable-broken": {rolling(1, 0), "n3-old", 3, nil},
		"max-surge-1":            {rolling(0, 1), "", 4, nil},
		"on-delete":              {onDelete, "", 2, deleting(map[int]string{1: "n2-old", 2: "n4-old", 5: "n1-old", 8: "n3-old"})},
	} {
		t.Run(name, func(t *testing.T) {
			s := &simulation{ds: agent(c.budget), nodes: nodes("n1", "n2", "n3", "n4"), person: c.person}
			for _, n := range s.nodes {
				s.pods = append(s.pods, pod(n.Name, hashOld))
			}
			for _, p := range s.pods {
				if p.Name == c.broken {
					notReady(p)
					p.Status.Phase = corev1.PodUnknown // it never becomes ready by itself
				}
			}
			golden(t, name+".golden", s.run(t, c.least))
		})
	}
}
