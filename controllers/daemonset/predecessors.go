package daemonset

import (
	"cmp"
	"slices"
	"sync"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file remembers which pod was the last one on a node, because the name of its replacement follows from its UID:
// clients that wait until the old name is not found must not wait for ever. See
// docs/design/log/2026-11-22-names-of-replacements.md.

// mostRevisions is how many revisions are remembered of a node beside those that it has pods of: a spec may soon go
// back to one.
const mostRevisions = 4

// mostGone is how many deleted nodes are remembered for a DaemonSet.
const mostGone = 1000

// predecessors are the last pods that this process has seen on each node, by DaemonSet. The zero value is empty. It is
// safe for concurrent use.
type predecessors struct {
	mu  sync.Mutex
	all map[types.UID]map[string]lastPods
}

// lastPods are the newest pods of a node, by their hash. Of pods that were created in the same second there is one more
// entry each, with their names in the key.
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

// successor returns the name of the pod that replaces one of that UID.
type successor func(uid types.UID) string

// later reports whether p was created after other. Of two that were created in one second it is the one whose name
// follows from the other, as those of two that fail one after the other do, or else the one with the greater name.
func (p predecessor) later(other predecessor, after successor) bool {
	switch {
	case !p.created.Equal(&other.created):
		return other.created.Before(&p.created)
	case p.name == after(other.uid):
		return true
	case other.name == after(p.uid):
		return false
	}
	return p.name > other.name
}

// note remembers the pods of a DaemonSet, including those that ended, those that are terminating, and those that it is
// about to release or to adopt. It also remembers pods of deleted nodes: a node may be recreated under its name. A pod
// that was created after the one that is shown, and deleted already, has a name that must not be used again either.
func (p *predecessors) note(of client.Object, pods []*corev1.Pod) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := p.all[of.GetUID()]
	if nodes == nil {
		if p.all == nil {
			p.all = map[types.UID]map[string]lastPods{}
		}
		nodes = make(map[string]lastPods, len(pods))
		p.all[of.GetUID()] = nodes
	}
	crowded := false
	for _, pod := range pods {
		node, err := nodeOf(pod)
		if err != nil {
			continue
		}
		hash := pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]
		was, ok := nodes[node][hash]
		if ok && was.uid == pod.UID {
			continue // nearly always
		}
		if nodes[node] == nil {
			nodes[node] = lastPods{}
		}
		shown := predecessorOf(pod)
		if ok && shown.created.Equal(&was.created) { // the hash of an altered pod does not show which one is later
			nodes[node][hash+"/"+shown.name], nodes[node][hash+"/"+was.name] = shown, was
		}
		if ok && !shown.later(was, func(uid types.UID) string { return podName(of, hash, creation{node: node, after: uid}) }) {
			continue
		}
		nodes[node][hash] = shown
		crowded = crowded || len(nodes[node]) > mostRevisions
	}
	if crowded {
		thin(nodes, pods)
	}
}

// thin keeps the pods that are shown on a node, by their revisions, and of the others the newest few.
func thin(nodes map[string]lastPods, pods []*corev1.Pod) {
	type place struct{ node, hash string }
	shown := make(map[place]bool, len(pods))
	for _, pod := range pods {
		if node, err := nodeOf(pod); err == nil {
			shown[place{node, pod.Labels[appsv1.DefaultDaemonSetUniqueLabelKey]}] = true
		}
	}
	for node, byHash := range nodes {
		if len(byHash) <= mostRevisions {
			continue
		}
		var others []string
		for hash := range byHash {
			if !shown[place{node, hash}] {
				others = append(others, hash)
			}
		}
		slices.SortFunc(others, func(a, b string) int {
			return cmp.Or(byHash[b].created.Compare(byHash[a].created.Time), cmp.Compare(a, b))
		})
		for _, hash := range others[min(len(others), mostRevisions):] {
			delete(byHash, hash)
		}
	}
}

// trim drops what is remembered of nodes that do not exist, if there are many of them.
func (p *predecessors) trim(ds types.UID, nodes []*corev1.Node) {
	p.mu.Lock()
	defer p.mu.Unlock()
	before := p.all[ds]
	if len(before) <= len(nodes)+mostGone {
		return
	}
	now := make(map[string]lastPods, len(nodes))
	for _, node := range nodes {
		if was, ok := before[node.Name]; ok {
			now[node.Name] = was
		}
	}
	p.all[ds] = now
}

// of returns the UID of the last pod of a revision on each node that has, or had, one.
//
// Only the last pod of the revision that is asked for matters: a pod of another revision has another name as a rule. A
// relabelled one may not, so seen has the UIDs of all remembered pods, by their names.
func (p *predecessors) of(ds types.UID, hash string) (last, seen map[string]types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	nodes := p.all[ds]
	last, seen = make(map[string]types.UID, len(nodes)), make(map[string]types.UID, len(nodes))
	for node, byHash := range nodes {
		for h, was := range byHash {
			seen[was.name] = was.uid
			if h == hash {
				last[node] = was.uid
			}
		}
	}
	return last, seen
}

// forget drops what is remembered of a deleted DaemonSet.
func (p *predecessors) forget(ds types.UID) {
	p.mu.Lock()
	defer p.mu.Unlock()
	delete(p.all, ds)
}
