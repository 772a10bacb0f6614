package host

import (
	"strconv"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file mends the end of controller-runtime's priority queue. In v0.24.1 a queue that is shut down while something
// comes in may block for ever, with all who use it (kubernetes-sigs/controller-runtime#3538): a controller would not end,
// and its successor would never start. It can go once controller-runtime has #3540.

// endingQueue is a priority queue that is shut down when nobody waits for it any more.
type endingQueue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	mu sync.Mutex
	// ended is set once there is nothing more to get; waiting is how many wait, left is told when nobody does.
	ended   bool
	waiting int
	left    *sync.Cond
}

// newQueue returns the queue of a controller of that name.
func newQueue(name string, limiter workqueue.TypedRateLimiter[reconcile.Request]) queue {
	q := &endingQueue{
		PriorityQueue: priorityqueue.New(name, func(o *priorityqueue.Opts[reconcile.Request]) { o.RateLimiter = limiter }),
	}
	q.left = sync.NewCond(&q.mu)
	return q
}

// GetWithPriority returns the next request. After the end it says so, and what it returns beside that is nothing.
func (q *endingQueue) GetWithPriority() (_ reconcile.Request, priority int, shutdown bool) {
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
func (q *endingQueue) Get() (request reconcile.Request, shutdown bool) {
	request, _, shutdown = q.GetWithPriority()
	return request, shutdown
}

// ShutDown sends everybody home who waits, each with something to get, and shuts the queue down then.
func (q *endingQueue) ShutDown() {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.ended = true
	for i := range q.waiting {
		q.Add(reconcile.Request{NamespacedName: types.NamespacedName{Name: "/" + strconv.Itoa(i)}}) // no object's name
	}
	for q.waiting > 0 {
		q.left.Wait()
	}
	q.PriorityQueue.ShutDown()
}
