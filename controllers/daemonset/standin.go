package daemonset

import (
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file remembers which pod was the last one on a node, because the name of the pod that replaces it follows from its
// UID: whoever waits until the old name is not found must not wait for ever. See
// docs/design/2026-11-22-names-of-replacements.md.

// predecessors are the last pods that this process has seen on each node, by DaemonSet. The zero value is empty. It is safe
// for concurrent use.
type predecessors struct {
	mu  sync.Mutex
	all map[types.UID]map[string]predecessor
}

// predecessor is a pod that was the newest of its revision on its node.
type predecessor struct {
	hash string
	uid  types.UID
}

// of returns the UID of the last pod of a revision on each node that has, or had, one. pods are all that ds owns,
// including those that ended and those that are terminating; what they show is remembered for the passes after them. A node
// that does not exist any more is forgotten when its last pod is.
//
// Only the last pod of the revision that is asked for matters: a pod of another revision has another name in any case.
func (p *predecessors) of(ds types.UID, hash string, nodes []*corev1.Node, pods []*corev1.Pod) map[string]types.UID {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.all[ds]
	now := make(map[string]predecessor, len(nodes))
	for _, node := range nodes {
		if was, ok := before[node.Name]; ok && was.hash == hash {
			now[node.Name] = was
		}
	}
	newest := map[string]*corev1.Pod{}
	for _, pod := range pods {
		node, err := nodeOf(pod)
		if err != nil || pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey] != hash {
			continue
		}
		if other := newest[node]; other == nil || later(pod, other) {
			newest[node] = pod
			now[node] = predecessor{hash: hash, uid: pod.UID}
		}
	}
	if p.all == nil {
		p.all = map[types.UID]map[string]predecessor{}
	}
	p.all[ds] = now
	out := make(map[string]types.UID, len(now))
	for node, was := range now {
		out[node] = was.uid
	}
	return out
}

// forget drops what is remembered of a DaemonSet that is gone.
func (p *predecessors) forget(ds types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, ds)
}

// later reports whether a was created after b; of two that were created in one second, the one with the greater name.
func later(a, b *corev1.Pod) bool {
	if !a.CreationTimestamp.Equal(&b.CreationTimestamp) {
		return b.CreationTimestamp.Before(&a.CreationTimestamp)
	}
	return a.Name > b.Name
}
