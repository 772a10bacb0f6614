package queue

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// limiter makes requests wait longer than any test.
func limiter() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](time.Hour, time.Hour)
}

// ends shuts a queue down, and reports whether its workers go home.
func ends(q Queue, workers *sync.WaitGroup) bool {
	ended := make(chan struct{})
	go func() {
		q.ShutDown()
		workers.Wait()
		close(ended)
	}()
	select {
	case <-ended:
		return true
	case <-time.After(20 * time.Second):
		return false
	}
}

// TestEnds: workers that add and get go home when the queue is shut down, whatever is under way. With
// controller-runtime's own queue some of these rounds never end. See docs/design/pass.md.
func TestEnds(t *testing.T) {
	for round := range 100 {
		q := New("", limiter()).(priorityqueue.PriorityQueue[reconcile.Request])
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
		if !ends(q, &workers) {
			t.Fatalf("round %d does not end", round)
		}
		if _, shutdown := q.Get(); !shutdown || !q.ShuttingDown() {
			t.Error("there is something to get after the end")
		}
	}
}

// TestEndsWhereAllWait: those who have nothing to do are sent home.
func TestEndsWhereAllWait(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := New("", limiter())
		var workers sync.WaitGroup
		for range 3 {
			workers.Go(func() {
				if _, shutdown := q.Get(); !shutdown {
					t.Error("there is something to do")
				}
			})
		}
		synctest.Wait()
		if !ends(q, &workers) {
			panic("they wait for ever") // and so would the test: the queue has a ticker, so the bubble does not rest
		}
	})
}

// TestEndsWhereNobodyWaits: nobody has to be sent home, and the second end is none.
func TestEndsWhereNobodyWaits(t *testing.T) {
	for name, end := range map[string]func(Queue){"at once": Queue.ShutDown, "drained": Queue.ShutDownWithDrain} {
		t.Run(name, func(t *testing.T) {
			q := New("", limiter())
			q.Add(reconcile.Request{})
			for range 2 {
				end(q)
				if _, shutdown := q.Get(); !shutdown {
					t.Error("it has not ended")
				}
			}
		})
	}
}

// TestLimited: what failed waits as long as the limiter says.
func TestLimited(t *testing.T) {
	l := limiter()
	q := New("", l)
	defer q.ShutDown()
	failed := reconcile.Request{NamespacedName: types.NamespacedName{Name: "failed"}}
	q.AddRateLimited(failed)
	if q.Len() != 0 || l.NumRequeues(failed) != 1 { // Len takes in first what was added
		t.Errorf("%d requests are ready, the limiter was asked %d times", q.Len(), l.NumRequeues(failed))
	}
}

// TestMeasured: the metrics that dashboards of controller-runtime show are there under the controller's name.
func TestMeasured(t *testing.T) {
	q := New("measured", limiter())
	defer q.ShutDown()
	q.Add(reconcile.Request{})
	_, _ = q.Get()
	families, err := metrics.Registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	for _, family := range families {
		if family.GetName() == "workqueue_adds_total" && strings.Contains(fmt.Sprint(family.GetMetric()), "measured") {
			return
		}
	}
	t.Error("nobody counts what is added")
}
