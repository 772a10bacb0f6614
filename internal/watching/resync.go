package watching

import (
	"container/heap"
	"context"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file enqueues parents although no event came: all of them periodically (resyncPeriodSeconds), or one because its
// hook asked for it (resyncAfterSeconds). Both have a lower priority than real changes.

// shortest is the shortest period, as Metacontroller has it.
const shortest = time.Second

// Resync is a source that enqueues parents when they are due. It also knows which of them it has enqueued, since a pass
// whose hook input has not changed calls the hook only then. Make one with [NewResync] for one controller.
type Resync struct {
	period time.Duration
	list   func() []types.NamespacedName
	clock  clock.WithTicker
	// sooner signals the running source that a parent is due before all others.
	sooner chan struct{}

	mu sync.Mutex
	// later holds when a parent is due, due those that are. order holds the times of later, the earliest on top, and some
	// that no longer count.
	later map[types.NamespacedName]time.Time
	due   map[types.NamespacedName]struct{}
	order appointments
}

// Resyncs is a [Resync] as a pass sees it.
type Resyncs interface {
	After(key types.NamespacedName, d time.Duration)
	Take(key types.NamespacedName) bool
	Put(key types.NamespacedName)
	Forget(key types.NamespacedName)
}

// NewResync returns a source that enqueues what list returns every so many seconds, one at least. Nil means no period,
// and then list is not called. list must be quick, as from a cache.
func NewResync(periodSeconds *int32, list func() []types.NamespacedName, c clock.WithTicker) *Resync {
	var period time.Duration
	if periodSeconds != nil {
		period = max(time.Duration(*periodSeconds)*time.Second, shortest)
	}
	return &Resync{
		period: period, list: list, clock: c, sooner: make(chan struct{}, 1),
		later: map[types.NamespacedName]time.Time{}, due: map[types.NamespacedName]struct{}{},
	}
}

// String names the source in logs.
func (r *Resync) String() string { return "resync" }

// Start enqueues parents into q until ctx ends.
func (r *Resync) Start(ctx context.Context, q Queue) error {
	go r.run(ctx, q)
	return nil
}

func (r *Resync) run(ctx context.Context, q Queue) {
	var periodic <-chan time.Time
	if r.period > 0 {
		ticker := r.clock.NewTicker(r.period)
		defer ticker.Stop()
		periodic = ticker.C()
	}
	for {
		var once <-chan time.Time
		stop := func() bool { return false }
		if wait, some := r.next(); some {
			timer := r.clock.NewTimer(wait)
			once, stop = timer.C(), timer.Stop
		}
		select {
		case <-ctx.Done():
			stop()
			return
		case <-periodic:
			wake(q, r.mark(r.everybody(ctx)))
		case <-once:
			wake(q, r.mark(r.ripe()))
		case <-r.sooner:
		}
		stop()
	}
}

// everybody calls list, whose panic must not end the process.
func (r *Resync) everybody(ctx context.Context) (keys []types.NamespacedName) {
	if err := Guarded(ctx, func() error { keys = r.list(); return nil }); err != nil {
		log.FromContext(ctx).Error(err, "A resync was lost")
	}
	return keys
}

// next returns how long it is until the next parent is due, if there is one.
func (r *Resync) next() (wait time.Duration, some bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if len(r.order) == 0 {
		return 0, false
	}
	return max(r.order[0].at.Sub(r.clock.Now()), 0), true
}

// ripe returns the parents that are due, and removes them from those to come.
func (r *Resync) ripe() (keys []types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for now := r.clock.Now(); len(r.order) > 0 && !r.order[0].at.After(now); {
		first, _ := heap.Pop(&r.order).(appointment)
		if at, known := r.later[first.key]; known && at.Equal(first.at) {
			keys = append(keys, first.key)
			delete(r.later, first.key)
		}
	}
	return keys
}

func (r *Resync) mark(keys []types.NamespacedName) []types.NamespacedName {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, key := range keys {
		r.due[key] = struct{}{}
	}
	return keys
}

// wake enqueues parents, with a lower priority than those whose objects have changed.
func wake(q Queue, keys []types.NamespacedName) {
	for _, key := range keys {
		if p, ok := q.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
			p.AddWithOpts(priorityqueue.AddOpts{Priority: new(handler.LowPriority)}, reconcile.Request{NamespacedName: key})
			continue
		}
		q.Add(reconcile.Request{NamespacedName: key})
	}
}

// After makes a parent due after d, once. It may be due before, because of another call or the period; the earliest
// time counts. A d of 0 or less asks for nothing.
func (r *Resync) After(key types.NamespacedName, d time.Duration) {
	if d <= 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	at := r.clock.Now().Add(d)
	if was, known := r.later[key]; known && !at.Before(was) {
		return
	}
	r.later[key] = at
	heap.Push(&r.order, appointment{at, key})
	if r.order[0].key == key {
		select {
		case r.sooner <- struct{}{}:
		default: // it has its signal already
		}
	}
}

// Take reports whether a resync of a parent is due, and marks it as done. The pass then calls the hook in any case. A
// pass that fails gives it back with [Resync.Put].
func (r *Resync) Take(key types.NamespacedName) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, due := r.due[key]
	delete(r.due, key)
	return due
}

// Put makes a resync due again that was taken. It enqueues nothing: the failed pass is retried anyway.
func (r *Resync) Put(key types.NamespacedName) { r.mark([]types.NamespacedName{key}) }

// Forget drops what is known of a deleted parent.
func (r *Resync) Forget(key types.NamespacedName) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.later, key)
	delete(r.due, key)
}

// appointment is when a parent is due.
type appointment struct {
	at  time.Time
	key types.NamespacedName
}

// appointments is a [heap.Interface] with the earliest one on top.
type appointments []appointment

func (a *appointments) Len() int           { return len(*a) }
func (a *appointments) Less(i, j int) bool { return (*a)[i].at.Before((*a)[j].at) }
func (a *appointments) Swap(i, j int)      { (*a)[i], (*a)[j] = (*a)[j], (*a)[i] }

// Push implements [heap.Interface].
func (a *appointments) Push(x any) { *a = append(*a, x.(appointment)) }

// Pop implements [heap.Interface].
func (a *appointments) Pop() any {
	last := (*a)[len(*a)-1]
	*a = (*a)[:len(*a)-1]
	return last
}
