package replicaset

import (
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"
)

// This file remembers the names of pods that are gone: what belonged to one under its name, a claim of an ephemeral
// volume for instance, may be there for a while, so that the pod in its place gets another name. A process that has
// just started remembers none.

// mostGone is how many names are remembered of a parent.
const mostGone = 64

// gone are these names, by parent. The zero value is empty. It is safe for concurrent use.
type gone struct {
	mu  sync.Mutex
	all map[types.UID]*family
}

// family are the names of one parent's pods.
type family struct {
	// now are those that a pass saw last, past those that were there before, oldest first.
	now  map[string]bool
	past []string
}

// see takes down which pods a parent has, and reports whether a name is that of one, or was before. One may go while a
// pass goes on.
func (g *gone) see(parent types.UID, pods []*corev1.Pod) (was func(name string) bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	f := g.of(parent)
	now := make(map[string]bool, len(pods))
	for _, pod := range pods {
		now[pod.Name] = true
	}
	for name := range f.now {
		if !now[name] {
			f.past = append(f.past, name)
		}
	}
	f.past = slices.Clone(f.past[max(0, len(f.past)-mostGone):])
	f.now = now
	past := f.past
	return func(name string) bool { return now[name] || slices.Contains(past, name) }
}

// made takes down a pod that the next pass will see, if it is still there.
func (g *gone) made(parent types.UID, name string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.of(parent).now[name] = true
}

// of returns what is remembered of a parent, which is never nil. The caller has the lock.
func (g *gone) of(parent types.UID) *family {
	if g.all == nil {
		g.all = map[types.UID]*family{}
	}
	if g.all[parent] == nil {
		g.all[parent] = &family{now: map[string]bool{}}
	}
	return g.all[parent]
}

// forget drops what is remembered of a deleted parent.
func (g *gone) forget(parent types.UID) {
	g.mu.Lock()
	defer g.mu.Unlock()
	delete(g.all, parent)
}
