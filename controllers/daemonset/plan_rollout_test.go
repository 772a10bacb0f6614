package daemonset

// The rolling update as a DaemonSet does it: budgets in numbers and percent, surge, OnDelete, broken rollouts, and the
// clock.

import (
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

func TestPlanBudget(t *testing.T) {
	for _, c := range []struct {
		unavailable, surge any
		nodes              int
		deletes, creates   int
	}{
		{1, 0, 10, 1, 0},
		{3, 0, 10, 3, 0},
		{30, 0, 10, 10, 0},
		{"10%", 0, 10, 1, 0},
		{"11%", 0, 10, 2, 0}, // rounded up
		{"50%", 0, 3, 2, 0},
		{"100%", 0, 10, 10, 0},
		{"0%", 0, 10, 1, 0}, // a rollout that may do nothing would never end
		{0, 0, 10, 1, 0},
		{0, 1, 10, 0, 1},
		{0, 4, 10, 0, 4},
		{0, "25%", 10, 0, 3},
		{0, "100%", 10, 0, 10},
		{0, "0%", 10, 1, 0},
	} {
		t.Run(fmt.Sprintf("%v and %v of %d", c.unavailable, c.surge, c.nodes), func(t *testing.T) {
			// The tainted node is not one of those that percentages are of.
			all, pods := []*corev1.Node{node("tainted", taint(corev1.TaintEffectNoExecute))}, []*corev1.Pod(nil)
			for i := range c.nodes {
				name := fmt.Sprintf("n%02d", i)
				all, pods = append(all, node(name)), append(pods, pod(name, hashOld))
			}
			p := mustPlan(t, given(agent(rolling(c.unavailable, c.surge)), all, pods...))
			if len(p.Deletes) != c.deletes || len(p.Creates) != c.creates {
				t.Errorf("%d deletes, %d creates: %v", len(p.Deletes), len(p.Creates), steps(p))
			}
		})
	}
}

func TestPlanInvalidBudget(t *testing.T) {
	for field, ds := range map[string]*appsv1.DaemonSet{
		"maxUnavailable": agent(rolling("many", 0)),
		"maxSurge":       agent(rolling(0, "1.5%")),
	} {
		p, err := makePlan(given(ds, nodes("n1"), pod("n1", hashOld)))
		if p != nil || err == nil || !strings.HasPrefix(err.Error(), "spec.updateStrategy.rollingUpdate."+field+": ") {
			t.Errorf("%v, %v", p, err)
		}
	}
	// OnDelete has no budget that could be wrong.
	ds := agent(rolling("many", 0))
	ds.Spec.UpdateStrategy.Type = appsv1.OnDeleteDaemonSetStrategyType
	if _, err := makePlan(given(ds, nodes("n1"))); err != nil {
		t.Error(err)
	}
	// Neither is one that is not there.
	only := agent(func(ds *appsv1.DaemonSet) {
		two := intstr.FromInt32(2)
		ds.Spec.UpdateStrategy.RollingUpdate = &appsv1.RollingUpdateDaemonSet{MaxUnavailable: &two}
	})
	wantSteps(t, mustPlan(t, given(only, nodes("n1", "n2", "n3"), pod("n1", hashOld), pod("n2", hashOld), pod("n3", hashOld))), "delete n1-old", "delete n2-old")
}

func TestPlanRollout(t *testing.T) {
	noSchedule := taint(corev1.TaintEffectNoSchedule)
	for name, c := range map[string]struct {
		ds    []dsOption
		nodes []*corev1.Node
		pods  []*corev1.Pod
		want  []string
	}{
		"the next one":                     {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashNew), pod("n2", hashOld)}, []string{"delete n2-old"}},
		"a new pod is not ready":           {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashOld)}, nil},
		"a new pod waits for a node":       {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashNew, unscheduled), pod("n2", hashOld)}, nil},
		"an old pod goes":                  {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld, terminating), pod("n2", hashOld)}, nil},
		"a node has none":                  {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n2", hashOld)}, []string{"create n1"}},
		"the unavailable one is seen last": {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n2", hashNew, notReady)}, nil}, // kruise#1480
		"room for one more":                {[]dsOption{rolling(2, 0)}, nodes("n1", "n2", "n3"), []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashOld), pod("n3", hashOld)}, []string{"delete n2-old"}},
		"a pod without a revision is old":  {nil, nodes("n1"), []*corev1.Pod{pod("n1", "", named("stray"))}, []string{"delete stray"}},
		"not available for long enough":    {[]dsOption{minReady(60)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashNew, ready(59*time.Second)), pod("n2", hashOld)}, nil},
		"available for long enough":        {[]dsOption{minReady(60)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashNew, ready(60*time.Second)), pod("n2", hashOld)}, []string{"delete n2-old"}},

		// kubernetes#123232: a broken old pod uses the budget up, and is free to replace itself.
		"broken old pods go first":                 {nil, nodes("n1", "n2", "n3"), []*corev1.Pod{pod("n1", hashOld), pod("n2", hashOld, notReady), pod("n3", hashOld)}, []string{"delete n2-old"}},
		"all broken old pods go":                   {nil, nodes("n1", "n2", "n3"), []*corev1.Pod{pod("n1", hashOld, notReady), pod("n2", hashOld, noConditions), pod("n3", hashOld, unscheduled)}, []string{"delete n1-old", "delete n2-old", "delete n3-old"}},
		"a broken old pod beside a broken new one": {nil, nodes("n1", "n2", "n3"), []*corev1.Pod{pod("n1", hashNew, notReady), pod("n2", hashOld, notReady), pod("n3", hashOld)}, []string{"delete n2-old"}},

		"OnDelete deletes nothing":             {[]dsOption{onDelete}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n2", hashOld, notReady)}, nil},
		"OnDelete fills what somebody deleted": {[]dsOption{onDelete}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld)}, []string{"create n2"}},
		"OnDelete finishes a surge":            {[]dsOption{onDelete}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew), pod("n2", hashOld)}, []string{"delete n1-old"}},
		"OnDelete waits with it":               {[]dsOption{onDelete}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew, notReady)}, nil},

		"surge begins":                        {[]dsOption{rolling(0, 1)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n2", hashOld)}, []string{"create n1"}},
		"surge waits":                         {[]dsOption{rolling(0, 1)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew, notReady), pod("n2", hashOld)}, nil},
		"surge goes on":                       {[]dsOption{rolling(0, 2)}, nodes("n1", "n2", "n3"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew, notReady), pod("n2", hashOld), pod("n3", hashOld)}, []string{"create n2"}},
		"surge ends":                          {[]dsOption{rolling(0, 1)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew), pod("n2", hashOld)}, []string{"delete n1-old"}},
		"surge, minReadySeconds are not over": {[]dsOption{rolling(0, 1), minReady(60)}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew, ready(time.Second))}, nil},
		"surge, the old one is not ready":     {[]dsOption{rolling(0, 1)}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, notReady), pod("n1", hashNew, notReady)}, nil},
		"surge, the old one was never ready":  {[]dsOption{rolling(0, 1)}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, noConditions), pod("n1", hashNew, notReady)}, []string{"delete n1-old"}},
		"surge, a broken old one is alone":    {[]dsOption{rolling(0, 1)}, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld, notReady), pod("n2", hashOld)}, []string{"create n1", "create n2"}},
		"surge, a fresh old one serves":       {[]dsOption{rolling(0, 1), minReady(60)}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld, ready(time.Second))}, []string{"create n1"}},
		"the surge was switched off":          {nil, nodes("n1", "n2"), []*corev1.Pod{pod("n1", hashOld), pod("n1", hashNew, notReady), pod("n2", hashOld)}, []string{"delete n2-old"}},
		"two old ones beside a new one":       {[]dsOption{rolling(0, 1)}, nodes("n1"), []*corev1.Pod{pod("n1", hashOld), pod("n1", "older", age(2*time.Hour)), pod("n1", hashNew, notReady)}, []string{"delete n1-old"}},

		"a node that takes no new pod, unavailable": {nil, []*corev1.Node{node("n1", noSchedule), node("n2")}, []*corev1.Pod{pod("n1", hashOld, notReady), pod("n2", hashNew)}, []string{"delete n1-old"}},
		"a node that takes no new pod, available":   {nil, []*corev1.Node{node("n1", noSchedule), node("n2")}, []*corev1.Pod{pod("n1", hashOld), pod("n2", hashNew)}, []string{"delete n1-old"}},
		"a node that takes no new pod, others down": {nil, []*corev1.Node{node("n1", noSchedule), node("n2")}, []*corev1.Pod{pod("n1", hashOld), pod("n2", hashNew, notReady)}, nil},
		"a node that takes no new pod, surge":       {[]dsOption{rolling(0, 1)}, []*corev1.Node{node("n1", noSchedule), node("n2")}, []*corev1.Pod{pod("n1", hashOld), pod("n2", hashNew)}, []string{"delete n1-old"}},
		"a node that takes no new pod, surge, down": {[]dsOption{rolling(0, 1)}, []*corev1.Node{node("n1", noSchedule), node("n2")}, []*corev1.Pod{pod("n1", hashOld), pod("n2", hashNew, notReady)}, nil},
		"a node that takes no new pod, OnDelete":    {[]dsOption{onDelete}, []*corev1.Node{node("n1", noSchedule)}, []*corev1.Pod{pod("n1", hashOld)}, nil},
		"a node that takes no new pod, conforming":  {nil, []*corev1.Node{node("n1", noSchedule)}, []*corev1.Pod{pod("n1", hashNew, notReady)}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			wantSteps(t, mustPlan(t, given(agent(c.ds...), c.nodes, c.pods...)), c.want...)
		})
	}
}

// Without a recorded revision no pod conforms. What is planned then is only counted with, never carried out.
func TestPlanWithoutARevision(t *testing.T) {
	f := given(agent(), nodes("n1", "n2"), pod("n1", hashNew), pod("n2", "", named("stray")))
	f.hash = ""
	if p := mustPlan(t, f); p.counts.updated != 0 || p.rollout.Updated != 0 {
		t.Errorf("%+v, %+v", p.counts, p.rollout)
	}
}

// TestPlanLooksAgain: no event marks the moment at which a pod becomes available.
func TestPlanLooksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		minReady int32
		pods     []*corev1.Pod
		want     time.Duration
	}{
		"not asked for":              {0, []*corev1.Pod{pod("n1", hashNew, ready(time.Second))}, 0},
		"not asked for, clock ahead": {0, []*corev1.Pod{pod("n1", hashNew, ready(-time.Hour))}, 0},
		"over":                       {60, []*corev1.Pod{pod("n1", hashNew, ready(time.Minute))}, 0},
		"not over":                   {60, []*corev1.Pod{pod("n1", hashNew, ready(20*time.Second))}, 40 * time.Second},
		"the next of two":            {60, []*corev1.Pod{pod("n1", hashNew, ready(20*time.Second)), pod("n2", hashNew, ready(50*time.Second))}, 10 * time.Second},
		"not ready":                  {60, []*corev1.Pod{pod("n1", hashNew, notReady)}, 0},
		"no condition yet":           {60, []*corev1.Pod{pod("n1", hashNew, noConditions)}, 0},
		// The kubelet's clock is ahead of ours (kubernetes#77203): wait for one period, not for the difference.
		"clock ahead":     {60, []*corev1.Pod{pod("n1", hashNew, ready(-10*time.Minute))}, time.Minute},
		"clock behind":    {60, []*corev1.Pod{pod("n1", hashNew, ready(10*time.Minute))}, 0},
		"an old one also": {60, []*corev1.Pod{pod("n1", hashOld, ready(30*time.Second))}, 30 * time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, given(agent(onDelete, minReady(c.minReady)), nodes("n1", "n2"), c.pods...))
			if p.Again != c.want {
				t.Errorf("again in %s, want %s", p.Again, c.want)
			}
			if available := c.want == 0 && p.counts.ready > 0; (p.counts.available > 0) != available {
				t.Errorf("%d available", p.counts.available)
			}
		})
	}
}
