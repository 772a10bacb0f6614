// Package queue makes the work queue of every controller of ours: controller-runtime's priority queue, whose shutdown
// returns.
//
// In v0.24.1 a priority queue that is shut down while items are added may block for ever, with all its users
// (kubernetes-sigs/controller-runtime#3538): a controller does not end, so its manager does not either, and its
// successor does not start. This package can be removed once controller-runtime has #3540.
//
// What may not come in: an order, a delay or a limit of its own. The priority of a request is up to its source, its
// delay up to the limiter.
package queue

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Queue is the type of the work queue of a controller.
type Queue = workqueue.TypedRateLimitingInterface[reconcile.Request]

// New returns the queue of a controller of that name, under which its metrics are kept; without a name it has none.
// Requests that are added as rate-limited wait as long as limiter says. It is for the field NewQueue of
// controller.Options, and what it returns is a priorityqueue.PriorityQueue as well. It has goroutines until it is shut
// down.
func New(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) Queue {
	q := &ending{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
	}
	q.left = sync.NewCond(&q.mu)
	return q
}

// ending is a priority queue that is shut down when no caller waits for it any more.
type ending struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu sync.Mutex
	// ended is set by the shutdown; waiting is how many callers wait, left is signalled when none does.
	ended   bool
	waiting int
	left    *sync.Cond
}

// GetWithPriority returns the next request. After the shutdown it says so, and the other results are zero.
func (q *ending) GetWithPriority() (_ reconcile.Request, priority int, shutdown bool) {
	q.mu.Lock()
	if q.ended {
		q.mu.Unlock()
		return reconcile.Request{}, 0, true
	}
	q.waiting++
	q.mu.Unlock()

	request, priority, shutdown := q.PriorityQueue.GetWithPriority()

	q.mu.Lock()
	defer q.mu.Unlock()
	if q.waiting--; q.waiting == 0 {
		q.left.Broadcast()
	}
	return request, priority, shutdown || q.ended
}

// Get is GetWithPriority without the priority.
func (q *ending) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// ShutDown unblocks every caller that waits in Get, by adding an item for each of them that names no object, and shuts
// the queue down once all have returned. A second call does nothing.
func (q *ending) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.ended {
		return
	}
	q.ended = true
	for i := range q.waiting {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "/" + strconv.Itoa(i)}}) // no object's name
	}
	for q.waiting > 0 {
		q.left.Wait()
	}
	q.PriorityQueue.ShutDown()
}

// ShutDownWithDrain is ShutDown: controller-runtime's queue drains nothing.
func (q *ending) ShutDownWithDrain() { q.ShutDown() }
