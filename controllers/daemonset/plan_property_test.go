package daemonset

// What holds for every plan, whatever the nodes and pods look like: the counters agree with each other and with what is
// there (S1), nothing is done twice, conforming pods stay (P3), no node gets more than it may have (P1, P2), and the
// budget is kept over the whole set (R1, R2).

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"pgregory.net/rapid"
)

type situation struct {
	facts
	unavailable, surge int
	all                []*corev1.Pod
}

func situations() *rapid.Generator[situation] {
	return rapid.Custom(func(t *rapid.T) situation {
		var s situation
		var all []*corev1.Node
		s.unavailable, s.surge = rapid.IntRange(0, 3).Draw(t, "maxUnavailable"), 0
		if s.unavailable == 0 {
			s.surge = rapid.IntRange(1, 3).Draw(t, "maxSurge")
		}
		for i := range rapid.IntRange(0, 5).Draw(t, "nodes") {
			n := node(fmt.Sprintf("n%d", i))
			switch rapid.IntRange(0, 5).Draw(t, "taint") {
			case 0:
				taint(corev1.TaintEffectNoSchedule)(n)
			case 1:
				taint(corev1.TaintEffectNoExecute)(n)
			}
			if rapid.IntRange(0, 9).Draw(t, "vanished") > 0 {
				all = append(all, n)
			}
			for j := range rapid.IntRange(0, 3).Draw(t, "pods") {
				hash := rapid.SampledFrom([]string{hashOld, hashNew, "older", ""}).Draw(t, "hash")
				p := pod(n.Name, hash, named(fmt.Sprintf("%s-%d", n.Name, j)))
				for _, option := range []podOption{
					notReady, ready(5 * time.Second), terminating, phase(corev1.PodFailed), phase(corev1.PodSucceeded), unscheduled, age(time.Minute),
				} {
					if rapid.IntRange(0, 4).Draw(t, "option") == 0 {
						option(p)
					}
				}
				s.all = append(s.all, p)
			}
		}
		s.facts = given(agent(rolling(s.unavailable, s.surge), minReady(10)), all, s.all...)
		return s
	})
}

// look is what the test itself sees of one node, counted in another way than the plan does.
type look struct {
	start, stay               bool
	pods, alive, aliveAfter   int
	available, availableAfter int
}

func (s situation) look(n *corev1.Node, p *plan) look {
	deleted := map[string]bool{}
	for _, d := range p.Deletes {
		deleted[d.pod.Name] = true
	}
	l := look{start: len(n.Spec.Taints) == 0, stay: len(n.Spec.Taints) == 0 || n.Spec.Taints[0].Effect == corev1.TaintEffectNoSchedule}
	for _, pod := range s.pods[n.Name] {
		l.pods++
		if pod.DeletionTimestamp != nil {
			continue
		}
		available := false
		for _, c := range pod.Status.Conditions {
			available = available || c.Type == corev1.PodReady && c.Status == corev1.ConditionTrue && now.Sub(c.LastTransitionTime.Time) >= 10*time.Second
		}
		ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
		l.alive++
		if available && !ended {
			l.available++
		}
		if !deleted[pod.Name] {
			l.aliveAfter++
			if available && !ended {
				l.availableAfter++
			}
		}
	}
	return l
}

func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := situations().Draw(t, "situation")
		p, err := makePlan(s.facts)
		if err != nil {
			t.Fatal(err)
		}
		known, created, seen := map[string]look{}, map[string]int{}, map[string]bool{}
		for _, n := range s.nodes {
			known[n.Name] = s.look(n, p)
		}
		for _, c := range p.Creates {
			created[c.node]++
		}
		for _, d := range p.Deletes {
			if seen[d.pod.Name] || d.pod.DeletionTimestamp != nil {
				t.Fatalf("%s is deleted twice", d.pod.Name)
			}
			seen[d.pod.Name] = true
		}

		var desired, down, downAfter, double, doubleAfter int32
		for name, l := range known {
			before, after := l.pods, l.aliveAfter+created[name]
			switch {
			case created[name] > 1, created[name] > 0 && !l.start:
				t.Fatalf("%d creates on %s (%+v)", created[name], name, l)
			case s.surge == 0 && created[name] > 0 && before > 0:
				t.Fatalf("a second pod on %s without surge (%+v)", name, l)
			case !l.stay && l.aliveAfter > 0:
				t.Fatalf("%d pods stay on %s, which takes none", l.aliveAfter, name)
			case after > 2 && created[name] > 0:
				t.Fatalf("%d pods on %s", after, name)
			}
			if l.alive > 1 && l.start {
				double++
			}
			if after > 1 && l.start && l.available > 0 { // the surge does not limit pods beside unavailable ones
				doubleAfter++
			}
			if !l.start {
				continue
			}
			desired++
			if l.available == 0 {
				down++
			}
			if l.availableAfter == 0 {
				downAfter++
			}
		}
		if limit := max(down, int32(s.unavailable)); downAfter > limit {
			t.Fatalf("%d of %d unavailable after the deletes, %d before, %d allowed: %v", downAfter, desired, down, s.unavailable, steps(p))
		}
		if limit := max(double, int32(s.surge)); doubleAfter > limit {
			t.Fatalf("%d nodes with two pods, %d before, %d allowed: %v", doubleAfter, double, s.surge, steps(p))
		}
		for _, pod := range s.all {
			s.mayGo(t, pod, known, seen)
		}
		s.consistent(t, p.counts, desired)
	})
}

// mayGo fails if a conforming pod that nothing is wrong with goes.
func (s situation) mayGo(t *rapid.T, pod *corev1.Pod, known map[string]look, deleted map[string]bool) {
	name, _ := nodeOf(pod)
	ended := pod.Status.Phase == corev1.PodFailed || pod.Status.Phase == corev1.PodSucceeded
	if l, ok := known[name]; !ok || !l.stay || ended || !deleted[pod.Name] || pod.Labels["controller-revision-hash"] != hashNew {
		return
	}
	for _, other := range s.pods[name] {
		if other.Labels["controller-revision-hash"] == hashNew && other.DeletionTimestamp == nil && !deleted[other.Name] {
			return // it was one too many
		}
	}
	t.Fatalf("conforming pod %s goes, and no other one stays", pod.Name)
}

func (s situation) consistent(t *rapid.T, c counts, desired int32) {
	for _, n := range []int32{c.desired, c.current, c.misscheduled, c.ready, c.updated, c.available, c.desired - c.available} {
		if n < 0 {
			t.Fatalf("a negative counter: %+v", c)
		}
	}
	if c.desired != desired || c.current > c.desired || c.ready > c.current || c.available > c.ready || c.updated > c.current {
		t.Fatalf("%d nodes want a pod: %+v", desired, c)
	}
	var current, misscheduled int32
	for _, n := range s.nodes {
		switch holds := len(s.pods[n.Name]) > 0; {
		case holds && len(n.Spec.Taints) == 0:
			current++
		case holds:
			misscheduled++
		}
	}
	if c.current != current || c.misscheduled != misscheduled {
		t.Fatalf("%d nodes hold a pod that they want and %d one that they do not: %+v", current, misscheduled, c)
	}
}

// TestCounts shows each counter by itself.
func TestCounts(t *testing.T) {
	tainted := node("tainted", taint(corev1.TaintEffectNoSchedule))
	for name, c := range map[string]struct {
		node *corev1.Node
		pods []*corev1.Pod
		want counts
	}{
		"none":                   {node("n1"), nil, counts{desired: 1}},
		"available":              {node("n1"), []*corev1.Pod{pod("n1", hashNew)}, counts{desired: 1, current: 1, ready: 1, updated: 1, available: 1}},
		"ready for too short":    {node("n1"), []*corev1.Pod{pod("n1", hashNew, ready(time.Second))}, counts{desired: 1, current: 1, ready: 1, updated: 1}},
		"not ready":              {node("n1"), []*corev1.Pod{pod("n1", hashNew, notReady)}, counts{desired: 1, current: 1, updated: 1}},
		"old":                    {node("n1"), []*corev1.Pod{pod("n1", hashOld)}, counts{desired: 1, current: 1, ready: 1, available: 1}},
		"waiting":                {node("n1"), []*corev1.Pod{pod("n1", hashNew, unscheduled)}, counts{desired: 1, current: 1, updated: 1}},
		"going":                  {node("n1"), []*corev1.Pod{pod("n1", hashOld, terminating)}, counts{desired: 1, current: 1, ready: 1, available: 1}},
		"the oldest one counts":  {node("n1"), []*corev1.Pod{pod("n1", hashNew, notReady), pod("n1", hashOld, age(2*time.Hour))}, counts{desired: 1, current: 1, ready: 1, available: 1}},
		"a waiting one does not": {node("n1"), []*corev1.Pod{pod("n1", hashOld, unscheduled, age(2*time.Hour)), pod("n1", hashNew)}, counts{desired: 1, current: 1, ready: 1, available: 1}},
		"what waits beside it":   {node("n1"), []*corev1.Pod{pod("n1", hashNew), pod("n1", hashNew, unscheduled, named("b"))}, counts{desired: 1, current: 1, ready: 1, updated: 1, available: 1}},
		"an old one beside it":   {node("n1"), []*corev1.Pod{pod("n1", hashNew, age(2*time.Hour)), pod("n1", hashOld)}, counts{desired: 1, current: 1, ready: 1, available: 1}},
		"an old one that goes":   {node("n1"), []*corev1.Pod{pod("n1", hashNew, age(2*time.Hour)), pod("n1", hashOld, terminating)}, counts{desired: 1, current: 1, ready: 1, updated: 1, available: 1}},
		"misplaced":              {tainted, []*corev1.Pod{pod("tainted", hashNew)}, counts{misscheduled: 1}},
		"two misplaced":          {tainted, []*corev1.Pod{pod("tainted", hashNew), pod("tainted", hashOld)}, counts{misscheduled: 1}},
		"not wanted, none":       {tainted, nil, counts{}},
		"of an unknown node":     {node("n1"), []*corev1.Pod{pod("n2", hashNew)}, counts{desired: 1}},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, given(agent(minReady(10)), []*corev1.Node{c.node}, c.pods...))
			if diff := cmp.Diff(c.want, p.counts, cmp.AllowUnexported(counts{})); diff != "" {
				t.Errorf("counters (-want +got):\n%s", diff)
			}
		})
	}
}
