package statefulset

// Scaling: which pods come and go before any rollout comes into it.

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
)

// settled makes b both the update and the current revision.
func settled(f facts) facts {
	f.current = f.update
	return f
}

func TestPlanScaling(t *testing.T) {
	young := ready(time.Second)
	for name, c := range map[string]struct {
		set  []setOption
		pods []*corev1.Pod
		want []string
	}{
		"from nothing":               {nil, nil, []string{"create web-0 b"}},
		"from nothing, Parallel":     {[]setOption{parallel}, nil, []string{"create web-0 b", "create web-1 b", "create web-2 b"}},
		"the next one":               {nil, []*corev1.Pod{pod(0, "b")}, []string{"create web-1 b"}},
		"the last one":               {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b")}, []string{"create web-2 b"}},
		"all is well":                {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, nil},
		"none is asked for":          {[]setOption{replicas(0)}, nil, nil},
		"other ordinals":             {[]setOption{startAt(5), replicas(2)}, []*corev1.Pod{pod(5, "b")}, []string{"create web-6 b"}},
		"a hole":                     {nil, []*corev1.Pod{pod(0, "b"), pod(2, "b")}, []string{"create web-1 b"}},
		"two holes, the lower first": {nil, []*corev1.Pod{pod(2, "b")}, []string{"create web-0 b"}},

		"it waits for one that is not ready": {nil, []*corev1.Pod{pod(0, "b", stuck)}, nil},
		"it waits for one that was ready":    {nil, []*corev1.Pod{pod(0, "b", unready)}, nil},
		"it waits for one that is new":       {[]setOption{minReadyFor(60)}, []*corev1.Pod{pod(0, "b", young)}, nil},
		"it waits for one that goes":         {nil, []*corev1.Pod{pod(0, "b", terminating)}, nil},
		"it waits for a higher one":          {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b", stuck)}, nil},
		"a lower one comes all the same":     {nil, []*corev1.Pod{pod(1, "b", stuck)}, []string{"create web-0 b"}},
		"Parallel waits for nobody":          {[]setOption{parallel}, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b", terminating)}, []string{"create web-2 b"}},

		"one that failed":              {nil, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed))}, []string{"delete web-0"}},
		"one that ended":               {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b", phase(corev1.PodSucceeded))}, []string{"delete web-1"}},
		"one that failed and goes":     {nil, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed), terminating)}, nil},
		"one that failed, behind":      {nil, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b", phase(corev1.PodFailed))}, nil},
		"two that failed, Parallel":    {[]setOption{parallel, replicas(2)}, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed)), pod(1, "b", phase(corev1.PodFailed))}, []string{"delete web-0", "delete web-1"}},
		"one that failed, old, manual": {[]setOption{onDelete, replicas(1)}, []*corev1.Pod{pod(0, "z", phase(corev1.PodFailed))}, []string{"delete web-0"}},

		"one too many":              {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b")}, []string{"delete web-1"}},
		"two too many, the highest": {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, []string{"delete web-2"}},
		"two too many, one goes":    {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", terminating)}, nil},
		// Upstream's order: what is healthy goes, and of those that are not the lowest.
		"to nothing, none is ready":            {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", unready), pod(1, "b", unready), pod(2, "b", unready)}, nil},
		"to nothing, none was ever ready":      {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b", crashing)}, nil},
		"to nothing, the lowest is not ready":  {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", unready), pod(1, "b"), pod(2, "b")}, []string{"delete web-2"}},
		"to nothing, the highest is not ready": {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b", unready)}, []string{"delete web-2"}},
		"to nothing, the last is not ready":    {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", unready)}, []string{"delete web-0"}},
		"to nothing, one is not available":     {[]setOption{replicas(0), minReadyFor(60)}, []*corev1.Pod{pod(0, "b", young), pod(1, "b")}, []string{"delete web-1"}},
		"to nothing, two are not ready":        {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", unready), pod(1, "b"), pod(2, "b", unready)}, nil},
		"to nothing, a lower one goes":         {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", terminating), pod(1, "b")}, []string{"delete web-1"}},
		"to nothing, a lower one failed":       {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed)), pod(1, "b")}, []string{"delete web-0"}},
		"to nothing, two failed":               {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed)), pod(1, "b", phase(corev1.PodFailed))}, []string{"delete web-1"}},
		"to nothing, none is ready, Parallel":  {[]setOption{replicas(0), parallel}, []*corev1.Pod{pod(0, "b", unready), pod(1, "b", unready)}, []string{"delete web-0", "delete web-1"}},
		"too many on both sides, not ready":    {[]setOption{startAt(1), replicas(1)}, []*corev1.Pod{pod(0, "b", unready), pod(1, "b"), pod(2, "b")}, []string{"delete web-2"}},
		"the largest ordinals":                 {[]setOption{startAt(2147483647), replicas(2)}, []*corev1.Pod{pod(2147483647, "b")}, []string{"create web-2147483648 b"}},
		"the largest ordinals are there":       {[]setOption{startAt(2147483647), replicas(2)}, []*corev1.Pod{pod(2147483647, "b"), pod(2147483648, "b")}, nil},
		"the largest ordinal is not asked for": {[]setOption{startAt(2147483647), replicas(1)}, []*corev1.Pod{pod(2147483647, "b"), pod(2147483648, "b")}, []string{"delete web-2147483648"}},

		"one too many, not ready":       {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b", stuck)}, []string{"delete web-1"}},
		"one too many, another waits":   {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b")}, nil},
		"one too many, another is gone": {[]setOption{replicas(1)}, []*corev1.Pod{pod(1, "b")}, []string{"create web-0 b"}},
		"two too many, Parallel":        {[]setOption{replicas(1), parallel}, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b"), pod(2, "b")}, []string{"delete web-1", "delete web-2"}},
		"one goes already, Parallel":    {[]setOption{replicas(1), parallel}, []*corev1.Pod{pod(0, "b"), pod(1, "b", terminating)}, nil},
		"too many below":                {[]setOption{startAt(2), replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, []string{"delete web-1"}},
		"too many on both sides":        {[]setOption{startAt(1), replicas(1)}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, []string{"delete web-2"}},
		"to nothing":                    {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "b"), pod(1, "b")}, []string{"delete web-1"}},

		"names that are not ours": {[]setOption{replicas(1)}, []*corev1.Pod{pod(0, "b"), called(pod(7, "b"), "web-07"), called(pod(7, "b"), "web-x"), called(pod(7, "b"), "webs-7"), called(pod(7, "b"), "web--1"), called(pod(7, "b"), "web-2147483648"), called(pod(7, "b"), "web-9999999999")}, nil},
		"it lost a label":         {nil, []*corev1.Pod{pod(0, "b", unlabelled), pod(1, "b"), pod(2, "b")}, []string{"label web-0"}},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, settled(given(web(c.set...), c.pods...)))
			wantSteps(t, p, c.want...)
			for _, d := range p.Deletes {
				if d.reason == "" {
					t.Errorf("delete of %s has no reason", d.pod.Name)
				}
			}
		})
	}
}

// A pod that ended and was never ready stays until its back-off ends, and what comes after it waits as long. A pod that
// was ready is replaced immediately.
func TestPlanPauses(t *testing.T) {
	rejected := func(p *corev1.Pod) { p.Status.Conditions = nil }
	f := settled(given(web(replicas(2)), pod(0, "b", phase(corev1.PodFailed), rejected)))
	f.pause = func(name string) pass.Wait {
		return map[string]pass.Wait{"web-0": {Length: 8 * time.Second, End: time.Unix(3600, 0)}}[name]
	}
	p := mustPlan(t, f)
	wantSteps(t, p)
	want := "it ended (Failed), and is replaced when its back-off of 8s ends at 01:00:00 UTC"
	if len(p.waits) != 1 || p.waits[0].Reason != want || p.Again != 8*time.Second {
		t.Errorf("waits %v, again in %s", p.waits, p.Again)
	}
	served := settled(given(web(replicas(2)), pod(0, "b", phase(corev1.PodFailed))))
	served.pause = f.pause
	wantSteps(t, mustPlan(t, served), "delete web-0")
	f.pause = func(string) pass.Wait { return pass.Wait{} }
	if p = mustPlan(t, f); len(p.Deletes) != 1 || p.Deletes[0].next != f.update.name {
		t.Errorf("deletes %v", p.Deletes)
	}
}

func called(p *corev1.Pod, name string) *corev1.Pod {
	p.Name = name
	return p
}

func unlabelled(p *corev1.Pod) { delete(p.Labels, appsv1.PodIndexLabel) }

// A pass is repeated at the moment when a pod becomes available, whatever the clock of its kubelet says.
func TestPlanLooksAgain(t *testing.T) {
	for name, c := range map[string]struct {
		since time.Duration
		want  time.Duration
	}{
		"a minute to go":      {0, time.Minute},
		"ten seconds to go":   {50 * time.Second, 10 * time.Second},
		"a clock is ahead":    {-10 * time.Minute, time.Minute},
		"nothing to wait for": {time.Hour, 0},
	} {
		t.Run(name, func(t *testing.T) {
			p := mustPlan(t, settled(given(web(minReadyFor(60)), pod(0, "b", ready(c.since)))))
			if p.Again != c.want {
				t.Errorf("again in %s, want %s", p.Again, c.want)
			}
		})
	}
}

// What waits says for what.
func TestPlanWaits(t *testing.T) {
	p := mustPlan(t, settled(given(web(replicas(1)), pod(0, "b", stuck), pod(1, "b"))))
	if diff := cmp.Diff("web-1: surplus (spec.replicas is 1); web-0 is not ready", says(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// A halt that nothing but a person may ever end says what to do.
func TestPlanWaitsForACondemnedPod(t *testing.T) {
	p := mustPlan(t, settled(given(web(replicas(0)), pod(0, "b"), pod(1, "b", crashing), pod(2, "b", unready))))
	want := "web-2: surplus (spec.replicas is 0); web-1, which is surplus as well, is not available; delete it to go on without it"
	if diff := cmp.Diff(want, says(p)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// says is the first thing that scaling waits for.
func says(p *plan) string {
	if len(p.waits) == 0 {
		return ""
	}
	return p.waits[0].Unit + ": " + p.waits[0].Reason
}

// A plan depends on what is there, not on the order in which a cache lists it, and changes none of it.
func TestPlanIsStable(t *testing.T) {
	pods := []*corev1.Pod{pod(0, "a"), pod(1, "a", stuck), pod(2, "b"), pod(3, "a"), pod(5, "b"), pod(6, "z", terminating)}
	var before []*corev1.Pod
	for _, p := range pods {
		before = append(before, p.DeepCopy())
	}
	set := web(replicas(5), parallel)
	first := mustPlan(t, given(set, pods...))
	for range 7 {
		pods = append(pods[1:], pods[0])
		again := mustPlan(t, given(set, append([]*corev1.Pod{}, pods...)...))
		if diff := cmp.Diff(steps(first), steps(again)); diff != "" {
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

// TestRefusedBelowThePartition: if the API server refuses the current revision, a pod below the partition waits for it
// while a pod of that revision is left, because the partition protects something then.
func TestRefusedBelowThePartition(t *testing.T) {
	for name, c := range map[string]struct {
		pods    []*corev1.Pod
		instead string
	}{
		"one is left":  {[]*corev1.Pod{pod(1, "a"), pod(2, "b")}, ""},
		"none is left": {[]*corev1.Pod{pod(2, "b")}, "web-b"},
	} {
		p := mustPlan(t, given(web(partition(2)), c.pods...))
		if len(p.Creates) != 1 || p.Creates[0].from.name != "web-a" || p.Creates[0].instead.name != c.instead || p.Creates[0].held == (c.instead != "") {
			t.Errorf("%s: %+v", name, p.Creates)
		}
	}
}
