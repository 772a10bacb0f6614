package cronjob

import (
	"sync"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/ptr"
)

// This file remembers, of each CronJob, what no object says. Losing it costs an event that is said again, a time that a
// schedule which was edited meanwhile would have had in the past, and one that no status accounts for because it could
// not be written.

// memories are those of all CronJobs. They are safe for concurrent use.
type memories struct {
	mu sync.Mutex
	of map[types.UID]*memory
}

// memory is what is remembered of one CronJob.
type memory struct {
	// schedule is the one that the last pass saw, with its time zone, and looked when that was.
	schedule string
	looked   time.Time
	// since is until when another one was in force.
	since time.Time
	// owed is the last time that came due and for which no Job was started, zero if there is none. The last Job still
	// runs, or the API server refused the new one. It stays owed while the CronJob is suspended, or has another schedule.
	owed time.Time
	// started is the latest time that this process has started a Job for.
	started time.Time
	// said are the events that were sent, by reason and key.
	said map[[2]string]bool
}

// maxSaid bounds what is remembered of events.
const maxSaid = 64

func (m *memories) get(uid types.UID) *memory {
	if m.of == nil {
		m.of = map[types.UID]*memory{}
	}
	if m.of[uid] == nil {
		m.of[uid] = &memory{}
	}
	return m.of[uid]
}

// since returns until when another schedule of the CronJob was in force, zero if this process knows of none. A schedule
// is for times that come: what it would have had before it was set is not missed. The last pass over the other one is
// what is known for sure. If a Job was owed then, it still is.
func (m *memories) since(cj *batchv1.CronJob, now time.Time) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.get(cj.UID)
	schedule := ptr.Deref(cj.Spec.TimeZone, "") + " " + cj.Spec.Schedule
	if last := cj.Status.LastScheduleTime; last != nil && !last.Time.Before(of.owed) {
		of.owed = time.Time{}
	}
	if of.schedule != "" && of.schedule != schedule && of.owed.IsZero() {
		of.since = of.looked
	}
	if of.since.After(now) { // the clock was set back
		of.since = now
	}
	of.schedule, of.looked = schedule, now
	return of.since
}

// owe notes the time for which a pass owes a Job. Zero changes nothing: the pass may not have decided about it.
func (m *memories) owe(cj types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if of := m.get(cj); !at.IsZero() {
		of.owed = at
	}
}

// start notes that a Job was started for a time.
func (m *memories) start(cj types.UID, at time.Time) {
	m.mu.Lock()
	defer m.mu.Unlock()
	of := m.get(cj)
	of.owed = time.Time{}
	if at.After(of.started) {
		of.started = at
	}
}

// started returns the latest time that this process has started a Job for, zero if it has started none.
func (m *memories) started(cj types.UID) time.Time {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.get(cj).started
}

// first reports whether an event was not sent yet.
func (m *memories) first(cj types.UID, e event) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	of, key := m.get(cj), [2]string{e.reason, e.key}
	if of.said[key] {
		return false
	}
	if of.said == nil || len(of.said) >= maxSaid {
		of.said = map[[2]string]bool{}
	}
	of.said[key] = true
	return true
}

// forget drops what is known of a deleted CronJob.
func (m *memories) forget(uid types.UID) {
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.of, uid)
}
