package daemonset

// Who runs where: what a plan does about nodes and pods before any rollout comes into it.

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
)

func TestPlanWhoRunsWhere(t *testing.T) {
	noSchedule, noExecute := taint(corev1.TaintEffectNoSchedule), taint(corev1.TaintEffectNoExecute)
	failed, succeeded := phase(corev1.PodFailed), phase(corev1.PodSucceeded)
	surge := rolling(0, 1)
	for name, c := range map[string]struct {
		ds    dsOption
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  []string
	}{
		"a pod for each node": {nil, nodes("n1", "n2"), nil, []string{"create n1", "create n2"}},
		"all is well":         {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew)}, nil},
		"a pod that waits":    {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, unscheduled)}, nil},
		"no nodes":            {nil, nil, nil, nil},

		"tainted NoSchedule, without a pod":           {nil, []*corev1.Node{node("n1", noSchedule)}, nil, nil},
		"tainted NoSchedule, with a pod":              {nil, []*corev1.Node{node("n1", noSchedule)}, []*corev1.Pod{pod("n1", hashNew)}, nil},
		"tainted NoSchedule, with a pod that failed":  {nil, []*corev1.Node{node("n1", noSchedule)}, []*corev1.Pod{pod("n1", hashNew, failed)}, []string{"delete failed n1-new"}},
		"tainted NoExecute, with pods":                {nil, []*corev1.Node{node("n1", noExecute)}, []*corev1.Pod{pod("n1", hashNew), pod("n1", hashOld)}, []string{"delete n1-new", "delete n1-old"}},
		"tainted NoExecute, with one that goes":       {nil, []*corev1.Node{node("n1", noExecute)}, []*corev1.Pod{pod("n1", hashNew, terminating)}, nil},
		"tainted NoExecute, with a pod that failed":   {nil, []*corev1.Node{node("n1", noExecute)}, []*corev1.Pod{pod("n1", hashNew, failed)}, []string{"delete n1-new"}},
		"tainted NoExecute, with a pod that waits":    {nil, []*corev1.Node{node("n1", noExecute)}, []*corev1.Pod{pod("n1", hashNew, unscheduled)}, []string{"delete n1-new"}},
		"one node is not selected, another one is":    {nil, []*corev1.Node{node("n1", noExecute), node("n2")}, []*corev1.Pod{pod("n1", hashNew)}, []string{"create n2", "delete n1-new"}},
		"an old pod on a node that takes no pod":      {onDelete, []*corev1.Node{node("n1", noExecute)}, []*corev1.Pod{pod("n1", hashOld)}, []string{"delete n1-old"}},
		"an unknown revision on a node that does not": {onDelete, nodes("n1"), []*corev1.Pod{pod("n1", "", named("stray"))}, nil},

		"a pod that failed":                {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, failed)}, []string{"delete failed n1-new"}},
		"a pod that ended":                 {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, succeeded)}, []string{"delete succeeded n1-new"}},
		"a pod that failed, and goes":      {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, failed, terminating)}, []string{"create n1"}},
		"a pod that ended, and goes":       {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, succeeded, terminating)}, []string{"create n1"}},
		"one that failed, one that runs":   {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew, failed), pod("n1", hashNew, named("b"))}, []string{"delete failed n1-new"}},
		"an old pod that failed, OnDelete": {onDelete, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, failed)}, []string{"delete failed n1-old"}},

		// Without surge, a pod that goes holds its place, so that no node ever has two.
		"a pod that goes":                {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating)}, nil},
		"a pod that goes, with surge":    {surge, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating)}, []string{"create n1"}},
		"two pods that go, with surge":   {surge, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating), pod("n1", hashNew, terminating)}, []string{"create n1"}},
		"one that goes, one that stays":  {surge, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating), pod("n1", hashNew)}, nil},
		"one that goes, one that failed": {surge, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating), pod("n1", hashNew, failed)}, []string{"delete failed n1-new"}},
		"tainted, with one that goes":    {surge, []*corev1.Node{node("n1", noSchedule)}, []*corev1.Pod{pod("n1", hashOld, terminating)}, nil},
		"a pod that goes, OnDelete":      {onDelete, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, terminating)}, nil},

		"a node that is gone, its pod ran":   {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew), pod("n2", hashNew)}, nil},
		"a node that is gone, its pod waits": {nil, nodes("n1"), []*corev1.Pod{pod("n1", hashNew), pod("n2", hashNew, unscheduled)}, []string{"delete n2-new"}},
		"a node that is gone, its pod goes":  {nil, nil, []*corev1.Pod{pod("n2", hashNew, unscheduled, terminating)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent()
			if c.ds != nil {
				c.ds(ds)
			}
			p := mustPlan(t, given(ds, c.nodes, c.pods...))
			wantSteps(t, p, c.want...)
			for _, d := range p.Deletes {
				if d.reason == "" || d.node == "" {
					t.Errorf("delete of %s has node %q and reason %q", d.pod.Name, d.node, d.reason)
				}
			}
			for _, create := range p.Creates {
				if create.reason == "" {
					t.Errorf("create on %s has no reason", create.node)
				}
			}
			if got := p.Writes(); got != (len(c.want) > 0) {
				t.Errorf("risky: %v", got)
			}
		})
	}
}

// Of the pods of one revision on one node, the one that serves best stays, then the one that has served longest.
func TestPlanSurplus(t *testing.T) {
	for name, c := range map[string]struct {
		ds   dsOption
		pods []*corev1.Pod
		want []string
	}{
		"the oldest stays":       {nil, []*corev1.Pod{pod("n1", hashNew, age(time.Hour)), pod("n1", hashNew, named("b"), age(2*time.Hour))}, []string{"delete n1-new"}},
		"by name":                {nil, []*corev1.Pod{pod("n1", hashNew, named("b")), pod("n1", hashNew, named("a"))}, []string{"delete b"}},
		"a ready one stays":      {nil, []*corev1.Pod{pod("n1", hashNew, named("a"), notReady, age(9*time.Hour)), pod("n1", hashNew, named("b"))}, []string{"delete a"}},
		"an available one stays": {minReady(60), []*corev1.Pod{pod("n1", hashNew, named("a"), ready(time.Second), age(9*time.Hour)), pod("n1", hashNew, named("b"))}, []string{"delete a"}},
		"a scheduled one stays":  {nil, []*corev1.Pod{pod("n1", hashNew, named("a"), unscheduled, age(9*time.Hour)), pod("n1", hashNew, named("b"), notReady)}, []string{"delete a"}},
		"one that goes is none":  {nil, []*corev1.Pod{pod("n1", hashNew, named("a"), terminating), pod("n1", hashNew, named("b"), notReady)}, nil},
		"three":                  {nil, []*corev1.Pod{pod("n1", hashNew, named("a")), pod("n1", hashNew, named("b")), pod("n1", hashNew, named("c"))}, []string{"delete b", "delete c"}},
		"with surge":             {rolling(0, 1), []*corev1.Pod{pod("n1", hashNew, named("a")), pod("n1", hashNew, named("b"))}, []string{"delete b"}},
		"two old, with surge":    {rolling(0, 1), []*corev1.Pod{pod("n1", hashOld, named("a")), pod("n1", hashOld, named("b"))}, []string{"delete b"}},
		"of two old revisions":   {onDelete, []*corev1.Pod{pod("n1", "older", age(2*time.Hour)), pod("n1", hashOld)}, []string{"delete n1-old"}},
		"where none may start":   {nil, []*corev1.Pod{pod("tainted", hashNew, named("a")), pod("tainted", hashNew, named("b"))}, []string{"delete b"}},
	} {
		t.Run(name, func(t *testing.T) {
			ds := agent()
			if c.ds != nil {
				c.ds(ds)
			}
			all := []*corev1.Node{node("tainted", taint(corev1.TaintEffectNoSchedule))}
			if c.pods[0].Spec.NodeName != "tainted" {
				all = append(all, node("n1"))
			}
			wantSteps(t, mustPlan(t, given(ds, all, c.pods...)), c.want...)
		})
	}
}

// TestPlanBackOff: a failed pod stays for as long as the back-off of its node says, and nothing is put beside it
// (kubernetes#124388 for surge); the pass is repeated when the first of them is over.
func TestPlanBackOff(t *testing.T) {
	failed := phase(corev1.PodFailed)
	for name, budget := range map[string]dsOption{"rolling": rolling(1, 0), "surge": rolling(0, 1), "OnDelete": onDelete} {
		t.Run(name, func(t *testing.T) {
			f := given(agent(budget), nodes("n1", "n2", "n3"), pod("n1", hashNew, failed), pod("n2", hashNew, failed), pod("n3", hashNew, failed))
			f.backoff = func(node string) pass.Wait {
				return pass.Wait{Length: map[string]time.Duration{"n1": 8 * time.Second, "n2": 4 * time.Second}[node]}
			}
			p := mustPlan(t, f)
			wantSteps(t, p, "delete failed n3-new")
			if p.Again != 4*time.Second {
				t.Errorf("again in %s", p.Again)
			}
			if p.rollout.Unavailable != 3 {
				t.Errorf("%d unavailable", p.rollout.Unavailable)
			}
		})
	}
}

// A plan depends on what is there, not on the order in which a cache lists it, and changes none of it.
func TestPlanIsStable(t *testing.T) {
	pods := []*corev1.Pod{
		pod("n1", hashOld), pod("n1", hashNew, notReady), pod("n2", hashOld), pod("n2", hashOld, named("b")),
		pod("n3", hashOld, notReady), pod("n4", hashNew, terminating),
	}
	ds, all := agent(rolling(2, 0)), nodes("n1", "n2", "n3", "n4", "n5")
	var before []*corev1.Pod
	for _, p := range pods {
		before = append(before, p.DeepCopy())
	}
	first := mustPlan(t, given(ds, all, pods...))
	for range 10 {
		pods = append(pods[1:], pods[0])
		all = append(all[1:], all[0])
		again := mustPlan(t, given(ds, append([]*corev1.Node{}, all...), pods...))
		if diff := cmp.Diff(first, again, cmp.AllowUnexported(plan{}, creation{}, deletion{}, counts{}), cmpopts.IgnoreFields(plan{}, "from")); diff != "" {
			t.Fatalf("another order gives another plan:\n%s", diff)
		}
	}
	for _, want := range before {
		for _, got := range pods {
			if diff := cmp.Diff(want, got); got.Name == want.Name && diff != "" {
				t.Errorf("pod %s changed:\n%s", got.Name, diff)
			}
		}
	}
}

// TestHold: where the revision that the spec asks for could not be recorded, only what is lost comes back. A surge that
// has begun is not finished: its pods may be the wrong ones.
func TestHold(t *testing.T) {
	f := given(agent(rolling(0, 1)), nodes("n1", "n2", "n3"),
		pod("n1", hashNew), pod("n1", hashOld), pod("n2", hashOld), pod("n2", hashOld, named("n2-twin")))
	f.hold = true
	p := mustPlan(t, f)
	if len(p.Deletes) != 0 || len(p.Creates) != 1 || p.Creates[0].node != "n3" || p.counts.updated != 0 {
		t.Errorf("creates %v, deletes %v, counts %+v", p.Creates, p.Deletes, p.counts)
	}
	f.hold = false
	if p := mustPlan(t, f); len(p.Deletes) == 0 {
		t.Error("nothing is deleted without it either")
	}
}
