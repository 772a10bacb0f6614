package statefulset

import (
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file remembers since when the API server has refused a pod, so that one refusal which passes, a policy on its
// way or a registry that answers 429, does not put another revision in the place of the one that runs. Losing it costs
// a minute.

// lasting is how long a refusal has to last before a pod comes from another revision. There are some ten tries in that
// time.
const lasting = time.Minute

// refusals are since when pods are refused, by set and by the revision that they are to come from. It is safe for
// concurrent use.
type refusals struct {
	mu    sync.Mutex
	since map[types.UID]map[refused]time.Time
}

// refused is a pod as it was refused.
type refused struct {
	ordinal  int64
	revision string
}

// last reports for how long a refusal has to go on until it lasts; this one began now, if it is not known.
func (r *refusals) last(set types.UID, pod refused, now time.Time) (left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.since == nil {
		r.since = map[types.UID]map[refused]time.Time{}
	}
	of := r.since[set]
	if of == nil {
		of = map[refused]time.Time{}
		r.since[set] = of
	}
	began, known := of[pod]
	if !known {
		began = now
		of[pod] = now
	}
	return began.Add(lasting).Sub(now)
}

// end drops what is known of a pod that was created.
func (r *refusals) end(set types.UID, ordinal int64) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for pod := range r.since[set] {
		if pod.ordinal == ordinal {
			delete(r.since[set], pod)
		}
	}
}

// forget drops what is known of a set.
func (r *refusals) forget(set types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.since, set)
}
