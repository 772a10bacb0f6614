package replicaset

import (
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/types"
)

// This file remembers the names of pods that were asked for without an answer. Such a request may arrive late. If meanwhile an
// earlier name of the sequence became free and were taken instead, there would be one pod too many then; so the name without an
// answer is asked for again first.

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

// drop forgets a name: somebody has it.
func (u *unanswered) drop(parent types.UID, name string) {
	u.mu.Lock()
	defer u.mu.Unlock()
	delete(u.all[parent], name)
	if len(u.all[parent]) == 0 {
		delete(u.all, parent)
	}
}

// forget drops what is remembered of a parent that is gone.
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
