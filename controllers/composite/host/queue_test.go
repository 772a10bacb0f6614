package host

import (
	"fmt"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// TestQueueEnds: workers that add and get go home when the queue is shut down, whatever is under way. With
// controller-runtime's own queue some of these rounds never end.
func TestQueueEnds(t *testing.T) {
	for round := range 100 {
		q := newQueue("", workqueue.DefaultTypedItemBasedRateLimiter[reconcile.Request]()).(priorityqueue.PriorityQueue[reconcile.Request])
		var workers sync.WaitGroup
		busy := make(chan struct{}, 1)
		for worker := range 20 {
			workers.Go(func() {
				for i := 0; ; i++ {
					key := types.NamespacedName{Name: fmt.Sprint(worker, "-", i)}
					q.AddWithOpts(priorityqueue.AddOpts{Priority: new(i % 3)}, reconcile.Request{NamespacedName: key})
					request, _, shutdown := q.GetWithPriority()
					if shutdown {
						return
					}
					if i == 10 {
						select {
						case busy <- struct{}{}:
						default:
						}
					}
					q.Done(request)
				}
			})
		}
		<-busy
		ended := make(chan struct{})
		go func() {
			q.ShutDown()
			workers.Wait()
			close(ended)
		}()
		select {
		case <-ended:
		case <-time.After(20 * time.Second):
			t.Fatalf("round %d does not end", round)
		}
		if _, shutdown := q.Get(); !shutdown || !q.ShuttingDown() {
			t.Error("there is something to get after the end")
		}
	}
}

// TestQueueThatNobodyUsesEnds: nobody has to be sent home.
func TestQueueThatNobodyUsesEnds(t *testing.T) {
	q := newQueue("", workqueue.DefaultTypedItemBasedRateLimiter[reconcile.Request]())
	q.Add(reconcile.Request{})
	q.ShutDown()
	if _, shutdown := q.Get(); !shutdown {
		t.Error("it has not ended")
	}
}
