package replicaset

import (
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// TestRanking: each criterion decides between pods that all before it find equal, even if all after it say the
// opposite.
func TestRanking(t *testing.T) {
	keep := []podOption{on("crowded"), cost("-5"), readyFor(time.Minute), old(time.Minute), restarted(9)} // what would go by all later criteria
	with := func(base []podOption, more ...podOption) []podOption { return append(slices.Clone(base), more...) }
	for reason, c := range map[string]struct{ first, second []podOption }{
		"it is on no node":                    {[]podOption{on("")}, with(keep, pending)},
		"it has not started":                  {[]podOption{pending}, with(keep, unready)},
		"it is not ready":                     {[]podOption{unready}, keep},
		"its deletion cost is lower":          {[]podOption{cost("-6")}, keep},
		"more pods like it are on its node":   {[]podOption{on("crowded")}, with(keep, on("lonely"), cost("0"))},
		"it became ready later":               {[]podOption{readyFor(time.Minute)}, []podOption{old(time.Minute), restarted(9)}},
		"its containers restarted more often": {[]podOption{restarted(1)}, []podOption{old(time.Minute), sidecarRestarted(5)}},
		"its sidecars restarted more often":   {[]podOption{sidecarRestarted(1)}, []podOption{old(time.Minute)}},
		"it is younger":                       {[]podOption{old(time.Minute)}, nil},
		"none is better than another":         {[]podOption{func(p *corev1.Pod) { p.UID = "a" }}, []podOption{func(p *corev1.Pod) { p.UID = "b" }}},
	} {
		t.Run(reason, func(t *testing.T) {
			first := pod("first", with([]podOption{on("lonely")}, c.first...)...)
			second := pod("second", with([]podOption{on("lonely")}, c.second...)...)
			for _, pods := range [][]*corev1.Pod{{first, second}, {second, first}} {
				got := rank(pods, map[string]int{"crowded": 5, "lonely": 1}, now)
				order, why := compare(got[0], got[1])
				if got[0].pod != first || order >= 0 || why != reason {
					t.Errorf("first goes %s, because %s", got[0].pod.Name, why)
				}
			}
		})
	}
}

// TestRankingOfOddValues: what is not there, or is no number.
func TestRankingOfOddValues(t *testing.T) {
	for name, c := range map[string]struct{ first, second podOption }{
		"an unknown phase is between":     {phase(corev1.PodUnknown), phase(corev1.PodRunning)},
		"no cost is a cost of zero":       {cost("-1"), cost("")},
		"a cost that is no number is one": {cost("-1"), cost("much")},
		"a cost beyond 32 bits is none":   {cost("-1"), cost("-3000000000")},
		"no time is the youngest": {
			func(p *corev1.Pod) { p.CreationTimestamp = metav1.Time{} }, old(time.Second),
		},
		"a time in the future is younger":   {old(-time.Hour), old(time.Second)},
		"the same age, more or less: UIDs":  {old(60 * time.Minute), old(61 * time.Minute)},
		"the last seconds count one by one": {old(2 * time.Second), old(3 * time.Second)},
	} {
		t.Run(name, func(t *testing.T) {
			got := rank([]*corev1.Pod{pod("b", c.second), pod("a", c.first)}, nil, now.Truncate(clockStep).Add(clockStep-time.Second))
			if got[0].pod.Name != "a" {
				t.Errorf("%s goes first", got[0].pod.Name)
			}
		})
	}
}

// TestRankingStandsStill: the same pods in the same step of the clock are ranked the same.
func TestRankingStandsStill(t *testing.T) {
	start := now.Truncate(clockStep)
	var pods []*corev1.Pod
	for i := range 50 {
		age := time.Duration(i*i) * time.Second
		pods = append(pods, pod(string(rune('A'+i)), old(age), readyFor(age)))
	}
	order := func(at time.Time) (names []string) {
		for _, r := range rank(pods, nil, at) {
			names = append(names, r.pod.Name)
		}
		return names
	}
	for i := range 10 {
		if !slices.Equal(order(start), order(start.Add(time.Duration(i)*time.Second))) {
			t.Errorf("after %d s the order is another one", i)
		}
	}
}
