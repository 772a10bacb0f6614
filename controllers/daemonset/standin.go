package daemonset

import (
	"maps"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file remembers which pod was the last one on a node, because the name of the pod that replaces it follows from its
// UID: whoever waits until the old name is not found must not wait for ever. See
// docs/design/2026-11-22-names-of-replacements.md.

// mostRevisions is how many revisions are remembered of a node beside those that it has pods of: a spec may go back to one
// soon.
const mostRevisions = 4

// mostGone is how many nodes that do not exist any more are remembered for a DaemonSet.
const mostGone = 1000

// predecessors are the last pods that this process has seen on each node, by DaemonSet. The zero value is empty. It is safe
// for concurrent use.
type predecessors struct {
	mu  sync.Mutex
	all map[types.UID]map[string]lastPods
}

// lastPods are the pods that were made last for a node, by their hash.
type lastPods map[string]predecessor

// predecessor is what is kept of a pod.
type predecessor struct {
	uid     types.UID
	name    string
	created metav1.Time
}

func predecessorOf(pod *corev1.Pod) predecessor {
	return predecessor{uid: pod.UID, name: pod.Name, created: pod.CreationTimestamp}
}

// later reports whether p was created after other; of two that were created in one second, the one with the greater name.
func (p predecessor) later(other predecessor) bool {
	if !p.created.Equal(&other.created) {
		return other.created.Before(&p.created)
	}
	return p.name > other.name
}

// see remembers what the pods that a DaemonSet owns show, those that ended and those that are terminating included. It is
// called as soon as they are read: a pass that ends before it makes any has seen them all the same.
func (p *predecessors) see(ds types.UID, pods []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.merge(ds, newest(pods), func(was, _ lastPods) lastPods { return was })
}

// of returns the UID of the last pod of a revision on each node that has, or had, one. pods are all that ds owns, as for
// [predecessors.see]. Nodes that are gone are remembered as well, up to a bound: some come back under their name.
//
// Only the last pod of the revision that is asked for matters: a pod of another revision has another name as a rule. One that
// was relabelled does not, so that seen has the UIDs of all that are remembered, by their names.
func (p *predecessors) of(
	ds types.UID, hash string, nodes []*corev1.Node, pods []*corev1.Pod,
) (last, seen map[string]types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if len(p.all[ds]) > len(nodes)+mostGone {
		p.all[ds] = existing(p.all[ds], nodes)
	}
	now := p.merge(ds, newest(pods), func(was, shown lastPods) lastPods {
		others := len(was)
		for h := range shown {
			if _, ok := was[h]; ok {
				others--
			}
		}
		if others <= mostRevisions {
			return was
		}
		out := lastPods{}
		for h, last := range was {
			if _, ok := shown[h]; ok || h == hash {
				out[h] = last
			}
		}
		return out
	})
	last, seen = make(map[string]types.UID, len(now)), map[string]types.UID{}
	for node, byHash := range now {
		for h, was := range byHash {
			seen[was.name] = was.uid
			if h == hash {
				last[node] = was.uid
			}
		}
	}
	return last, seen
}

// merge adds what is shown of each node to what is kept of what was remembered of it, and returns all that is remembered now.
func (p *predecessors) merge(ds types.UID, shown map[string]lastPods, keep func(was, shown lastPods) lastPods) map[string]lastPods {
	before := p.all[ds]
	now := make(map[string]lastPods, len(before))
	for node, was := range before {
		if shown[node] == nil {
			now[node] = was
		}
	}
	for node, byHash := range shown {
		now[node] = lastPods{}
		maps.Copy(now[node], keep(before[node], byHash))
		for h, last := range byHash {
			// A pod that was made after it, and is gone already, has a name that is not to come back either.
			if was, ok := before[node][h]; ok && last.created.Before(&was.created) {
				last = was
			}
			now[node][h] = last
		}
	}
	if p.all == nil {
		p.all = map[types.UID]map[string]lastPods{}
	}
	p.all[ds] = now
	return now
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
func newest(pods []*corev1.Pod) map[string]lastPods {
	out := map[string]lastPods{}
	for _, pod := range pods {
		node, err := nodeOf(pod)
		if err != nil {
			continue
		}
		if out[node] == nil {
			out[node] = lastPods{}
		}
		hash, shown := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey], predecessorOf(pod)
		if other, ok := out[node][hash]; !ok || shown.later(other) {
			out[node][hash] = shown
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
