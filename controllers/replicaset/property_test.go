package replicaset

import (
	"cmp"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"pgregory.net/rapid"
)

// drawPods draws pods from few values of each kind, so that ties are common.
func drawPods(t *rapid.T, atMost int) []*corev1.Pod {
	ages := []time.Duration{-time.Minute, 0, 3 * time.Second, 5 * time.Second, time.Minute, 70 * time.Second, 3 * time.Hour, 4 * time.Hour}
	age := func(label string) time.Duration { return rapid.SampledFrom(ages).Draw(t, label) }
	free := names("web", "web-uid", atMost, nil, func(string) bool { return false }, nil)
	var out []*corev1.Pod
	for i := range rapid.IntRange(0, atMost).Draw(t, "pods") {
		name := rapid.SampledFrom([]string{free[i], fmt.Sprintf("web-other%d", i)}).Draw(t, "name")
		out = append(out, pod(name, old(age("age")), readyFor(age("ready for")), func(p *corev1.Pod) {
			p.UID = types.UID(fmt.Sprintf("%d-%d", rapid.IntRange(0, 99).Draw(t, "uid"), i))
			p.Spec.NodeName = rapid.SampledFrom([]string{"", "x", "y"}).Draw(t, "node")
			p.Status.Phase = rapid.SampledFrom([]corev1.PodPhase{
				corev1.PodRunning, corev1.PodRunning, corev1.PodPending, corev1.PodUnknown, corev1.PodFailed, corev1.PodSucceeded,
			}).Draw(t, "phase")
			p.Status.Conditions[0].Status = rapid.SampledFrom([]corev1.ConditionStatus{corev1.ConditionTrue, corev1.ConditionFalse}).Draw(t, "ready")
			p.Annotations = map[string]string{corev1.PodDeletionCost: rapid.SampledFrom([]string{"", "0", "-1", "x"}).Draw(t, "cost")}
			restarted(rapid.Int32Range(0, 1).Draw(t, "restarts"))(p)
			if rapid.IntRange(0, 3).Draw(t, "going") == 0 {
				p.DeletionTimestamp = new(metav1.NewTime(now))
			}
		}))
	}
	return out
}

// TestPlanProperties: never more creates than are missing or deletes than are too many; never both; only what is alive
// is deleted, and nothing that ranks behind what stays; names are new; the order in which pods are seen makes no
// difference.
func TestPlanProperties(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawPods(t, 8)
		want := rapid.IntRange(0, 10).Draw(t, "replicas")
		f := factsOf(web(int32(want)), pods...)
		p := makePlan(f)
		alive := 0
		for _, pod := range pods {
			if active(pod) {
				alive++
			}
		}
		if len(p.Creates) != max(want-alive, 0) || len(p.Deletes) != max(alive-want, 0) || int(p.counts.replicas) != alive {
			t.Fatalf("%d alive, %d wanted: %s", alive, want, p.text())
		}
		if c := p.counts; c.available > c.ready || c.ready > c.replicas || c.fullyLabeled > c.replicas {
			t.Fatalf("counts %+v", c)
		}
		taken := map[string]bool{}
		for _, pod := range pods {
			taken[pod.Name] = true
		}
		for _, c := range p.Creates {
			if taken[c.name] {
				t.Fatalf("%s is taken", c.name)
			}
			taken[c.name] = true
		}
		doomed := map[types.UID]bool{}
		for _, d := range p.Deletes {
			if !active(d.pod) || doomed[d.pod.UID] {
				t.Fatalf("%s goes, or is deleted twice", d.pod.Name)
			}
			doomed[d.pod.UID] = true
		}
		for _, stays := range pods {
			for _, d := range p.Deletes {
				if unassigned := stays.Spec.NodeName == "" && d.pod.Spec.NodeName != ""; active(stays) && !doomed[stays.UID] && unassigned {
					t.Fatalf("%s is on a node and goes, %s is on none and stays", d.pod.Name, stays.Name)
				}
			}
		}
		f.pods = rapid.Permutation(pods).Draw(t, "order")
		if again := makePlan(f); again.text() != p.text() {
			t.Fatalf("the order of the list changes the plan from\n%s to\n%s", p.text(), again.text())
		}
	})
}

// TestRankingIsATotalOrder: of any three pods, no two tie, and nobody goes before who goes after.
func TestRankingIsATotalOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		pods := drawPods(t, 5)
		all := rank(pods, map[string]int{"x": 2, "y": 1}, now)
		for _, a := range all {
			for _, b := range all {
				there, _ := compare(a, b)
				back, _ := compare(b, a)
				if cmp.Compare(there, 0) != -cmp.Compare(back, 0) || (there == 0) != (a == b) {
					t.Fatalf("%s and %s: %d and %d", a.pod.Name, b.pod.Name, there, back)
				}
				for _, c := range all {
					next, _ := compare(b, c)
					if far, _ := compare(a, c); there < 0 && next < 0 && far >= 0 {
						t.Fatalf("%s before %s before %s, and not before it", a.pod.Name, b.pod.Name, c.pod.Name)
					}
				}
			}
		}
		if !slices.IsSortedFunc(all, func(a, b *ranked) int { order, _ := compare(a, b); return order }) {
			t.Fatal("not sorted")
		}
	})
}
