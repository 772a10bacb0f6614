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

// mostGone is how many nodes that do not exist any more are remembered for a DaemonSet.
const mostGone = 1000

// predecessors are the last pods that this process has seen on each node, by DaemonSet. The zero value is empty. It is safe
// for concurrent use.
type predecessors struct {
	mu  sync.Mutex
	all map[types.UID]map[string]lastPods
}

// lastPods are the UIDs of the pods that were the last ones on a node, by their hash: of all revisions that were there when
// a pod was last seen, and of the one that was asked for then.
type lastPods map[string]types.UID

// of returns the UID of the last pod of a revision on each node that has, or had, one. pods are all that ds owns,
// including those that ended and those that are terminating; what they show is remembered for the passes after them. Nodes
// that are gone are remembered as well, up to a bound: some come back under their name.
//
// Only the last pod of the revision that is asked for matters: a pod of another revision has another name in any case.
func (p *predecessors) of(ds types.UID, hash string, nodes []*corev1.Node, pods []*corev1.Pod) map[string]types.UID {
	shown := newest(pods)
	p.mu.Lock()
	defer p.mu.Unlock()
	before, now := p.all[ds], make(map[string]lastPods, len(nodes))
	if len(before) > len(nodes)+mostGone {
		before = existing(before, nodes)
	}
	for node, was := range before {
		if shown[node] == nil {
			now[node] = was
		}
	}
	for node, byHash := range shown {
		now[node] = make(lastPods, len(byHash))
		if was, ok := before[node][hash]; ok {
			now[node][hash] = was
		}
		for h, pod := range byHash {
			now[node][h] = pod.UID
		}
	}
	if p.all == nil {
		p.all = map[types.UID]map[string]lastPods{}
	}
	p.all[ds] = now
	out := make(map[string]types.UID, len(now))
	for node, last := range now {
		if uid, ok := last[hash]; ok {
			out[node] = uid
		}
	}
	return out
}

// existing returns what is remembered of nodes that exist.
func existing(all map[string]lastPods, nodes []*corev1.Node) map[string]lastPods {
	out := make(map[string]lastPods, len(nodes))
	for _, node := range nodes {
		if was, ok := all[node.Name]; ok {
			out[node.Name] = was
		}
	}
	return out
}

// newest returns the newest pod of each revision on each node.
func newest(pods []*corev1.Pod) map[string]map[string]*corev1.Pod {
	out := map[string]map[string]*corev1.Pod{}
	for _, pod := range pods {
		node, err := nodeOf(pod)
		if err != nil {
			continue
		}
		if out[node] == nil {
			out[node] = map[string]*corev1.Pod{}
		}
		hash := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
		if other := out[node][hash]; other == nil || later(pod, other) {
			out[node][hash] = pod
		}
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
