package statefulset

import (
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// This file remembers which pods cannot come from a revision: the API server has refused them for a minute, or they
// could not start. A refusal that passes, such as a registry that answers 429, does not count. A process that loses
// this memory waits for a minute again, or creates one more pod that cannot start.

// lasting is how long a refusal has to last before a pod comes from another revision. There are some ten tries in that
// time.
const lasting = time.Minute

// refusals are the refused pods of each set. It is safe for concurrent use.
type refusals struct {
	mu    sync.Mutex
	since map[types.UID]map[refused]span
}

// span is when a pod was refused first and last. It is zero if the pod could not start.
type span struct{ first, last time.Time }

// refused is a pod as it was refused.
type refused struct {
	ordinal  int64
	revision string
}

// last reports for how long a refusal has to go on until it lasts; this one began now, if it is not known. Refusals of
// other pods of the revision count as well, because under OrderedReady one pod follows the other. None counts that is
// more than two minutes old.
func (r *refusals) last(set types.UID, pod refused, now time.Time) (left time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	of := r.of(set)
	first := now
	for other, s := range of {
		if other.revision == pod.revision && now.Sub(s.last) < 2*lasting {
			first = slices.MinFunc([]time.Time{first, s.first}, time.Time.Compare)
		}
	}
	of[pod] = span{first, now}
	return first.Add(lasting).Sub(now)
}

// bar notes that a pod of that revision cannot start.
func (r *refusals) bar(set types.UID, pod refused) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.of(set)[pod] = span{}
}

// barred returns the pods that could not start.
func (r *refusals) barred(set types.UID) map[refused]bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	out := map[refused]bool{}
	for pod, s := range r.since[set] {
		if s.first.IsZero() {
			out[pod] = true
		}
	}
	return out
}

// of returns what is known of a set. The caller holds the lock.
func (r *refusals) of(set types.UID) map[refused]span {
	if r.since == nil {
		r.since = map[types.UID]map[refused]span{}
	}
	if r.since[set] == nil {
		r.since[set] = map[refused]span{}
	}
	return r.since[set]
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
