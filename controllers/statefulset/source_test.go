package statefulset

// Which revision a pod comes from: tables of what is there, by policy and partition. The update revision is b, the
// current one a, and z is an older one.

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// sources returns the revisions that the pods of all ordinals would be made from, lowest first: "aab".
func sources(t *testing.T, f facts) string {
	t.Helper()
	p, err := newPlanner(f)
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	for i := range p.slots {
		out.WriteString(strings.TrimPrefix(p.sourceOf(i).name, "web-"))
	}
	return out.String()
}

func TestSource(t *testing.T) {
	four := replicas(4)
	for name, c := range map[string]struct {
		set  []setOption
		pods []*corev1.Pod
		want string
	}{
		"not begun: each is the one it waits for":   {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, "bbb"},
		"not begun, and two may be down":            {[]setOption{parallel, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, "aab"},
		"not begun, and two are down":               {[]setOption{parallel, atOnce(2)}, []*corev1.Pod{pod(0, "a", unready), pod(1, "a"), pod(2, "a")}, "abb"},
		"the top is going: the others come as they": {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a", terminating)}, "abb"},
		"the top is gone":                           {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a")}, "abb"},
		"the top is new and fine":                   {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}, "abb"},
		"the top is new and waits":                  {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}, "aab"},
		"the top is new and was ready":              {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", unready)}, "aab"},
		"two may be down":                           {[]setOption{four, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a"), pod(3, "b", stuck)}, "aabb"},
		"two are down":                              {[]setOption{four, atOnce(2)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck), pod(3, "b", stuck)}, "aabb"},
		"one was lost, all new above":               {nil, []*corev1.Pod{pod(0, "a"), pod(2, "b")}, "abb"},
		"one was lost below what is replaced now":   {[]setOption{four}, []*corev1.Pod{pod(0, "a"), pod(2, "a", terminating), pod(3, "b")}, "aabb"},
		"the highest ones are only asked for":       {[]setOption{replicas(6)}, []*corev1.Pod{pod(0, "a"), pod(1, "b"), pod(2, "b")}, "bbbbbb"},
		"one was lost, not reached":                 {[]setOption{four}, []*corev1.Pod{pod(1, "a"), pod(2, "a"), pod(3, "b")}, "aabb"},
		"one was lost, the rollout waits above":     {nil, []*corev1.Pod{pod(1, "b", stuck), pod(2, "b")}, "abb"},
		"one was lost, the top goes":                {[]setOption{four}, []*corev1.Pod{pod(1, "a"), pod(2, "a"), pod(3, "a", terminating)}, "aabb"},
		"one was lost, the top goes, Parallel":      {[]setOption{four, parallel}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(3, "a", terminating)}, "aabb"},
		"two were lost, the top goes, Parallel":     {[]setOption{four, parallel}, []*corev1.Pod{pod(0, "a"), pod(3, "a", terminating)}, "aabb"},
		"an old one ended above":                    {nil, []*corev1.Pod{pod(0, "a"), pod(2, "a", phase(corev1.PodFailed))}, "bbb"},

		// A template that never worked. Whatever is missing comes from the one that mends it, or nothing ever would.
		"the first revision is broken":                 {nil, []*corev1.Pod{pod(0, "a", stuck)}, "bbb"},
		"the second pod is broken":                     {nil, []*corev1.Pod{pod(0, "a"), pod(1, "a", stuck)}, "abb"},
		"all are broken, Parallel":                     {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", stuck), pod(1, "a", stuck), pod(2, "a", stuck)}, "bbb"},
		"all were broken and go, Parallel":             {[]setOption{parallel}, []*corev1.Pod{pod(0, "a", terminating), pod(1, "a", terminating), pod(2, "a", terminating)}, "bbb"},
		"all were broken, the first is back, Parallel": {[]setOption{parallel}, []*corev1.Pod{pod(0, "b", stuck), pod(2, "a", terminating)}, "bbb"},
		"scaled up from nothing":                       {nil, nil, "bbb"},

		"partition":                          {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(2, "b")}, "aab"},
		"partition, all are gone":            {[]setOption{partition(2)}, nil, "aab"},
		"partition, the canary is broken":    {[]setOption{partition(2)}, []*corev1.Pod{pod(0, "a"), pod(2, "b", stuck)}, "aab"},
		"partition, raised over a new pod":   {[]setOption{partition(3)}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b")}, "aaa"},
		"partition, beyond the set":          {[]setOption{partition(9)}, []*corev1.Pod{pod(0, "a")}, "aaa"},
		"partition counts from the start":    {[]setOption{startAt(5), partition(1)}, nil, "abb"},
		"OnDelete: whoever deletes, asks":    {[]setOption{onDelete}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "a")}, "bbb"},
		"OnDelete: also above what is down":  {[]setOption{onDelete}, []*corev1.Pod{pod(0, "a"), pod(1, "a"), pod(2, "b", stuck)}, "bbb"},
		"a third revision, not reached":      {[]setOption{four}, []*corev1.Pod{pod(1, "a"), pod(2, "z"), pod(3, "b")}, "aabb"},
		"an older one that is not in force":  {nil, []*corev1.Pod{pod(0, "z"), pod(1, "z"), pod(2, "b")}, "abb"},
		"an old pod without its storage":     {[]setOption{data(retain, retain), younger}, []*corev1.Pod{pod(0, "a"), pod(1, "b"), pod(2, "b")}, "bbb"},
		"pods that name no revision are old": {nil, []*corev1.Pod{pod(0, ""), pod(1, ""), pod(2, "b")}, "abb"},
	} {
		t.Run(name, func(t *testing.T) {
			if got := sources(t, given(web(c.set...), c.pods...)); got != c.want {
				t.Errorf("%s, want %s", got, c.want)
			}
		})
	}
}

// The counters and names in status play no part (kubernetes#119685): a plan is the same whatever they say.
func TestSourceIgnoresCounters(t *testing.T) {
	set := web(partition(1))
	set.Status.CurrentReplicas, set.Status.UpdatedReplicas, set.Status.Replicas = 0, 3, 3
	if got := sources(t, given(set, pod(2, "b"))); got != "abb" {
		t.Errorf("%s", got)
	}
	set.Status.CurrentReplicas, set.Status.UpdatedReplicas = 3, 0
	if got := sources(t, given(set, pod(2, "b"))); got != "abb" {
		t.Errorf("%s", got)
	}
}

// TestCurrentIsGone: below the partition, no revision takes the place of a deleted current revision. Elsewhere the
// update revision does, as upstream.
func TestCurrentIsGone(t *testing.T) {
	gone := func(f facts) facts {
		f.current.template, f.current.lost = nil, "it is gone"
		return f
	}
	p := mustPlan(t, gone(given(web(partition(1)), pod(1, "b"), pod(2, "b"))))
	wantSteps(t, p)
	if len(p.guarded) != 1 || p.guarded[0] != "web-0" || says(p) != "web-0: it is to come from revision web-a, and it is gone" {
		t.Errorf("guarded %v, %s", p.guarded, says(p))
	}
	wantSteps(t, mustPlan(t, gone(given(web(), pod(1, "a"), pod(2, "b")))), "create web-0 b")
	p = mustPlan(t, gone(given(web(partition(1), parallel), pod(1, "b"))))
	wantSteps(t, p, "create web-2 b")
	p = mustPlan(t, gone(given(web(partition(1)), pod(0, "a"), pod(1, "a"), pod(2, "a"))))
	wantSteps(t, p, "delete web-2")
	// A pod that would come back from it is not deleted either, however broken it is.
	p = mustPlan(t, gone(given(web(partition(1)), pod(0, "z", stuck), pod(1, "b"), pod(2, "b"))))
	wantSteps(t, p)
}

func TestPromotion(t *testing.T) {
	for name, c := range map[string]struct {
		set  []setOption
		pods []*corev1.Pod
		want bool
	}{
		"all conform":            {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, true},
		"one does not":           {nil, []*corev1.Pod{pod(0, "a"), pod(1, "b"), pod(2, "b")}, false},
		"one is missing":         {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b")}, false},
		"one is not ready":       {nil, []*corev1.Pod{pod(0, "b", stuck), pod(1, "b"), pod(2, "b")}, false},
		"one goes":               {nil, []*corev1.Pod{pod(0, "b", terminating), pod(1, "b"), pod(2, "b")}, false},
		"one failed":             {nil, []*corev1.Pod{pod(0, "b", phase(corev1.PodFailed)), pod(1, "b"), pod(2, "b")}, false},
		"one is left over":       {nil, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b"), pod(3, "a", terminating)}, false},
		"none is asked for":      {[]setOption{replicas(0)}, nil, true},
		"none, by hand":          {[]setOption{replicas(0), onDelete}, nil, true},
		"none, one goes still":   {[]setOption{replicas(0)}, []*corev1.Pod{pod(0, "a", terminating)}, false},
		"none, a partition (40)": {[]setOption{replicas(0), partition(1)}, nil, false},
		"by hand (42)":           {[]setOption{onDelete}, []*corev1.Pod{pod(0, "b"), pod(1, "b"), pod(2, "b")}, true},
		"by hand, one is old":    {[]setOption{onDelete}, []*corev1.Pod{pod(0, "b"), pod(1, "a"), pod(2, "b")}, false},
		"adopted, no storage":    {[]setOption{data(retain, retain), replicas(1), younger}, []*corev1.Pod{pod(0, "b")}, true},
		"ours, no storage":       {[]setOption{data(retain, retain), replicas(1)}, []*corev1.Pod{pod(0, "b")}, true},
		"the partition is done":  {[]setOption{partition(1)}, []*corev1.Pod{pod(0, "a"), pod(1, "b"), pod(2, "b")}, false},
	} {
		t.Run(name, func(t *testing.T) {
			if p := mustPlan(t, given(web(c.set...), c.pods...)); p.promote != c.want {
				t.Errorf("%v", p.promote)
			}
		})
	}
}
