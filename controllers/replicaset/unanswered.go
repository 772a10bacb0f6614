package replicaset

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// This file remembers the names of pods whose create got no response. Such a request may still arrive. If an earlier
// name of the sequence became free meanwhile and were used instead, there would be one pod too many; so the name
// without a response is tried again first.

// unanswered are these names, by parent. The zero value is empty. It is safe for concurrent use.
type unanswered struct {
	mu  sync.Mutex
	all map[types.UID]map[string]bool
}

// add remembers a name.
func (u *unanswered) add(parent types.UID, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	if u.all == nil {
		u.all = map[types.UID]map[string]bool{}
	}
	if u.all[parent] == nil {
		u.all[parent] = map[string]bool{}
	}
	u.all[parent][name] = true
}

// drop forgets a name: a pod has it.
func (u *unanswered) drop(parent types.UID, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all[parent], name)
	if len(u.all[parent]) == 0 {
		delete(u.all, parent)
	}
}

// forget drops what is remembered of a deleted parent.
func (u *unanswered) forget(parent types.UID) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all, parent)
}

// of returns the names of a parent, in a fixed order.
func (u *unanswered) of(parent types.UID) []string {
	u.mu.Lock()
	defer u.mu.Unlock()
	return slices.Sorted(maps.Keys(u.all[parent]))
}
