package replicaset

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/labels"

	"github.com/cairn-dev/cairn/internal/readiness"
	"github.com/cairn-dev/cairn/pass"
)

// This file decides what one pass does. It is pure.

// facts are what a plan is made from.
type facts struct {
	set *appsv1.ReplicaSet
	// pods are those that set owns and that match its selector, in any state.
	pods []*corev1.Pod
	// taken says whether a pod of that name is in the namespace, whatever its owner.
	taken func(name string) bool
	// had says whether a pod of the parent had that name before. Nil is none.
	had func(name string) bool
	// asked are the names of pods whose create got no response.
	asked []string
	// neighbours says how many active pods of this parent, and of those with the same controller, a node has.
	neighbours map[string]int
	now        time.Time
}

// plan is what is to be done, and what was seen. At most one of creates and deletes is not empty.
type plan struct {
	pass.Work[creation, deletion]

	counts counts
	// missing and surplus are how many pods are to be created or deleted in all, in this pass and later ones.
	missing, surplus int
}

type creation struct {
	name   string
	reason string
}

type deletion struct {
	pod    *corev1.Pod
	reason string
}

// counts are the counters of ReplicaSetStatus.
type counts struct {
	replicas, fullyLabeled, ready, available, terminating int32
}

func makePlan(f facts) *plan {
	p := &plan{}
	var alive []*corev1.Pod
	for _, pod := range f.pods {
		if active(pod) {
			alive = append(alive, pod)
		}
	}
	p.count(f, alive)
	want, have := replicas(f.set), len(alive)
	p.missing, p.surplus = max(want-have, 0), max(have-want, 0)
	for _, name := range names(f.set.Name, f.set.UID, min(p.missing, pass.MostWrites), f.asked, f.taken, f.had) {
		p.Creates = append(p.Creates, creation{name, fmt.Sprintf("%d of %d pods are there", have, want)})
	}
	if p.surplus > 0 {
		p.Deletes = surplus(rank(alive, f.neighbours, f.now), want)
	}
	return p
}

// surplus chooses the pods to delete, of all that count, in the order of deletion.
func surplus(order []*ranked, want int) []deletion {
	count := len(order) - want
	var out []deletion
	for _, r := range order[:min(count, pass.MostWrites)] {
		reason := fmt.Sprintf("%d pods are there, %d wanted", len(order), want)
		if want > 0 {
			_, why := compare(r, order[count])
			reason += "; " + why
		}
		out = append(out, deletion{r.pod, reason})
	}
	return out
}

// count recomputes every counter from the existing pods.
func (p *plan) count(f facts, alive []*corev1.Pod) {
	template := labels.SelectorFromSet(f.set.Spec.Template.Labels)
	minReady := time.Duration(f.set.Spec.MinReadySeconds) * time.Second
	p.counts.replicas = int32(len(alive))
	for _, pod := range f.pods {
		// One that has ended and is being deleted is terminating as well, but nothing waits for it.
		if pod.DeletionTimestamp != nil && !ended(pod) {
			p.counts.terminating++
		}
	}
	for _, pod := range alive {
		if template.Matches(labels.Set(pod.Labels)) {
			p.counts.fullyLabeled++
		}
		if readiness.Ready(pod) {
			p.counts.ready++
		}
		available, left := readiness.Available(pod, minReady, f.now)
		if available {
			p.counts.available++
		}
		p.LookAgain(left)
	}
}

// replicas is how many pods are wanted. The API server fills the field in.
func replicas(set *appsv1.ReplicaSet) int {
	if set.Spec.Replicas == nil {
		return 1
	}
	return int(*set.Spec.Replicas)
}
