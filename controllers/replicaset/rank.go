package replicaset

import (
	"cmp"
	"math/bits"
	"slices"
	"strconv"
	"time"

	corev1 "k8s.io/api/core/v1"

	"github.com/cairn-dev/cairn/pass"
)

// This file says which pods are deleted first when there are too many. It is pure.
//
// The criteria are those of the built-in controller, in its order. Two things are fixed. Pods that the age criteria
// cannot tell apart are compared by the next criterion instead of straight by the UIDs: only so it is a total order, in
// which the result does not depend on the input order. And the clock advances in steps, so that two managers that see
// the same pods choose the same ones.

// clockStep is how often the ranking of pods changes by the passing of time alone.
const clockStep = 10 * time.Second

// ranked is a pod with what its ranking needs, computed once.
type ranked struct {
	pod                *corev1.Pod
	phase              int
	ready              bool
	cost               int
	neighbours         int
	readyAge, age      age
	restarts, sidecars int
}

// criterion is one rule of the ranking: compare is negative if a is deleted first, and reason says why.
type criterion struct {
	reason  string
	compare func(a, b *ranked) int
}

var criteria = []criterion{
	{"it is on no node", func(a, b *ranked) int { return pass.TrueFirst(a.pod.Spec.NodeName == "", b.pod.Spec.NodeName == "") }},
	{"it has not started", func(a, b *ranked) int { return cmp.Compare(a.phase, b.phase) }},
	{"it is not ready", func(a, b *ranked) int { return pass.TrueFirst(!a.ready, !b.ready) }},
	{"its deletion cost is lower", func(a, b *ranked) int { return cmp.Compare(a.cost, b.cost) }},
	{"more pods like it are on its node", func(a, b *ranked) int { return cmp.Compare(b.neighbours, a.neighbours) }},
	{"it became ready later", func(a, b *ranked) int {
		if !a.ready || !b.ready {
			return 0
		}
		return a.readyAge.compare(b.readyAge)
	}},
	{"its containers restarted more often", func(a, b *ranked) int { return cmp.Compare(b.restarts, a.restarts) }},
	{"its sidecars restarted more often", func(a, b *ranked) int { return cmp.Compare(b.sidecars, a.sidecars) }},
	{"it is younger", func(a, b *ranked) int { return a.age.compare(b.age) }},
	{"none is better than another", func(a, b *ranked) int { return cmp.Compare(a.pod.UID, b.pod.UID) }},
}

// rank sorts pods in the order of deletion. neighbours says how many active pods like them a node has.
func rank(pods []*corev1.Pod, neighbours map[string]int, now time.Time) []*ranked {
	now = now.Truncate(clockStep)
	out := make([]*ranked, len(pods))
	for i, pod := range pods {
		since, ready := readySince(pod)
		restarts, sidecars := restartsOf(pod)
		out[i] = &ranked{
			pod: pod, phase: phaseOf(pod), ready: ready, cost: costOf(pod), neighbours: neighbours[pod.Spec.NodeName],
			readyAge: ageOf(since, now), age: ageOf(pod.CreationTimestamp.Time, now), restarts: restarts, sidecars: sidecars,
		}
	}
	slices.SortFunc(out, func(a, b *ranked) int {
		order, _ := compare(a, b)
		return order
	})
	return out
}

// compare returns the order of two pods and the reason for it.
func compare(a, b *ranked) (order int, reason string) {
	for _, c := range criteria {
		if order := c.compare(a, b); order != 0 {
			return order, c.reason
		}
	}
	return 0, ""
}

// age is the time since an event, as a power of two: among pods of about one age chance decides, so that scaling down
// does not empty the zone that was filled last. Since the last step of the clock, the time itself counts.
type age struct {
	power int
	since time.Time
}

func ageOf(since, now time.Time) age {
	if passed := now.Sub(since); passed > 0 && !since.IsZero() {
		return age{power: bits.Len64(uint64(passed))}
	}
	return age{since: since}
}

// compare is negative if a is younger. No time at all is the youngest.
func (a age) compare(b age) int {
	if order := cmp.Compare(a.power, b.power); order != 0 {
		return order
	}
	if order := pass.TrueFirst(a.since.IsZero(), b.since.IsZero()); order != 0 {
		return order
	}
	return b.since.Compare(a.since)
}

func phaseOf(pod *corev1.Pod) int {
	switch pod.Status.Phase {
	case corev1.PodRunning:
		return 2
	case corev1.PodUnknown:
		return 1
	default:
		return 0
	}
}

// costOf reads the pod-deletion-cost annotation. An invalid one counts as 0; the API server refuses it.
func costOf(pod *corev1.Pod) int {
	cost, err := strconv.ParseInt(pod.Annotations[corev1.PodDeletionCost], 10, 32)
	if err != nil {
		return 0
	}
	return int(cost)
}

// restartsOf returns the most restarts of any container, and of any sidecar.
func restartsOf(pod *corev1.Pod) (containers, sidecars int) {
	for _, s := range pod.Status.ContainerStatuses {
		containers = max(containers, int(s.RestartCount))
	}
	for _, s := range pod.Status.InitContainerStatuses {
		i := slices.IndexFunc(pod.Spec.InitContainers, func(c corev1.Container) bool { return c.Name == s.Name })
		if i < 0 {
			continue
		}
		if policy := pod.Spec.InitContainers[i].RestartPolicy; policy != nil && *policy == corev1.ContainerRestartPolicyAlways {
			sidecars = max(sidecars, int(s.RestartCount))
		}
	}
	return containers, sidecars
}
