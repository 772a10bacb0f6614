package decorator

import (
	"time"

	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file completes requests that are added to a queue. Those taken out are not changed: sources only add.

// inOrder is a queue without priorities.
type inOrder struct {
	queue

	complete func(reconcile.Request) reconcile.Request
}

func (q inOrder) Add(req reconcile.Request) { q.queue.Add(q.complete(req)) }

func (q inOrder) AddAfter(req reconcile.Request, d time.Duration) {
	q.queue.AddAfter(q.complete(req), d)
}

func (q inOrder) AddRateLimited(req reconcile.Request) { q.queue.AddRateLimited(q.complete(req)) }

// byPriority is a queue with priorities.
type byPriority struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	complete func(reconcile.Request) reconcile.Request
}

func (q byPriority) Add(req reconcile.Request) { q.PriorityQueue.Add(q.complete(req)) }

func (q byPriority) AddAfter(req reconcile.Request, d time.Duration) {
	q.PriorityQueue.AddAfter(q.complete(req), d)
}

func (q byPriority) AddRateLimited(req reconcile.Request) {
	q.PriorityQueue.AddRateLimited(q.complete(req))
}

func (q byPriority) AddWithOpts(o priorityqueue.AddOpts, reqs ...reconcile.Request) {
	completed := make([]reconcile.Request, len(reqs))
	for i, req := range reqs {
		completed[i] = q.complete(req)
	}
	q.PriorityQueue.AddWithOpts(o, completed...)
}
