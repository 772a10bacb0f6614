package watching

import (
	"context"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	clocktesting "k8s.io/utils/clock/testing"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// woken is a queue that keeps what it is told.
type woken struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	names      []string
	priorities []int
}

func (w *woken) AddWithOpts(o priorityqueue.AddOpts, requests ...reconcile.Request) {
	for _, r := range requests {
		w.names, w.priorities = append(w.names, r.Name), append(w.priorities, *o.Priority)
	}
}

// take returns the names since it was asked last, sorted.
func (w *woken) take() string {
	slices.Sort(w.names)
	out := strings.Join(w.names, " ")
	w.names = nil
	return out
}

func parent(name string) types.NamespacedName {
	return types.NamespacedName{Namespace: "ns", Name: name}
}

// resyncing runs a resync under a clock that only step moves.
func resyncing(t *testing.T, periodSeconds *int32, list func() []types.NamespacedName, test func(r *Resync, q *woken, step func(time.Duration))) {
	t.Helper()
	synctest.Test(t, func(t *testing.T) {
		c, q := clocktesting.NewFakeClock(time.Unix(1000, 0)), &woken{}
		ctx, cancel := context.WithCancel(t.Context())
		defer cancel()
		r := NewResync(periodSeconds, list, c)
		if err := r.Start(ctx, q); err != nil {
			t.Fatal(err)
		}
		synctest.Wait()
		test(r, q, func(d time.Duration) {
			synctest.Wait()
			c.Step(d)
			synctest.Wait()
		})
	}) // which fails if the resync outlives its context
}

func TestResyncPeriod(t *testing.T) {
	parents := []types.NamespacedName{parent("a"), parent("b")}
	resyncing(t, new(int32(10)), func() []types.NamespacedName { return parents }, func(r *Resync, q *woken, step func(time.Duration)) {
		step(9 * time.Second)
		if q.take() != "" || r.Take(parent("a")) {
			t.Error("woken before its time")
		}
		step(time.Second)
		if got := q.take(); got != "a b" {
			t.Error(got)
		}
		if !slices.Equal(q.priorities, []int{handler.LowPriority, handler.LowPriority}) {
			t.Error(q.priorities)
		}
		if !r.Take(parent("a")) || r.Take(parent("a")) || r.Take(parent("c")) {
			t.Error("a resync is taken once, and only where one is due")
		}
		r.Put(parent("a"))
		if q.take() != "" || !r.Take(parent("a")) {
			t.Error("what is given back is due, and wakes nobody")
		}

		parents = []types.NamespacedName{parent("c")}
		step(10 * time.Second)
		if got := q.take(); got != "c" {
			t.Error(got)
		}
		if !r.Take(parent("b")) {
			t.Error("the one that was not taken is due no longer")
		}
	})
}

func TestResyncPeriodIsASecondAtLeast(t *testing.T) {
	list := func() []types.NamespacedName { return []types.NamespacedName{parent("a")} }
	resyncing(t, new(int32), list, func(_ *Resync, q *woken, step func(time.Duration)) {
		step(999 * time.Millisecond)
		if got := q.take(); got != "" {
			t.Error(got)
		}
		step(time.Millisecond)
		if got := q.take(); got != "a" {
			t.Error(got)
		}
	})
}

func TestResyncOnce(t *testing.T) {
	resyncing(t, nil, nil, func(r *Resync, q *woken, step func(time.Duration)) {
		r.After(parent("a"), 10*time.Second)
		r.After(parent("b"), 5*time.Second)
		r.After(parent("a"), 3*time.Second)
		r.After(parent("a"), 20*time.Second) // later than what is due anyway
		r.After(parent("never"), 0)
		r.After(parent("never"), -time.Second)
		r.After(parent("gone"), time.Second)
		r.Forget(parent("gone"))
		step(2 * time.Second)
		if got := q.take(); got != "" {
			t.Error(got)
		}
		step(time.Second)
		if got := q.take(); got != "a" || !r.Take(parent("a")) || r.Take(parent("b")) {
			t.Error(got)
		}
		step(2 * time.Second)
		if got := q.take(); got != "b" || !slices.Equal(q.priorities, []int{handler.LowPriority, handler.LowPriority}) {
			t.Error(got, q.priorities)
		}
		step(time.Hour)
		if got := q.take(); got != "" || r.Take(parent("a")) {
			t.Errorf("once is more than once: %q", got)
		}
		// What is asked for after that counts from then.
		r.After(parent("a"), 10*time.Second)
		step(10 * time.Second)
		if got := q.take(); got != "a" {
			t.Error(got)
		}
		r.Forget(parent("a"))
		if r.Take(parent("a")) {
			t.Error("a parent that is gone is due")
		}
	})
}

func TestResyncOfManyAtOnce(t *testing.T) {
	resyncing(t, nil, nil, func(r *Resync, q *woken, step func(time.Duration)) {
		for name := range strings.FieldsSeq("e d c b a") {
			r.After(parent(name), time.Duration(name[0])*time.Second)
		}
		step(time.Hour) // as after a machine was asleep
		if got := q.take(); got != "a b c d e" {
			t.Error(got)
		}
	})
}

// TestResyncSurvivesItsList: a panic costs one resync.
func TestResyncSurvivesItsList(t *testing.T) {
	calls := 0
	list := func() []types.NamespacedName {
		if calls++; calls == 1 {
			panic("no cache")
		}
		return []types.NamespacedName{parent("a")}
	}
	resyncing(t, new(int32(1)), list, func(_ *Resync, q *woken, step func(time.Duration)) {
		step(time.Second)
		step(time.Second)
		if got := q.take(); got != "a" || calls != 2 {
			t.Errorf("%q after %d calls", got, calls)
		}
	})
}

// TestResyncWaitsBehindEvents: in controller-runtime's queue, a real change goes before.
func TestResyncWaitsBehindEvents(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		q := priorityqueue.New[reconcile.Request]("")
		defer q.ShutDown()
		wake(q, []types.NamespacedName{parent("resynced"), parent("both")})
		q.Add(reconcile.Request{NamespacedName: parent("changed")})
		q.Add(reconcile.Request{NamespacedName: parent("both")})
		synctest.Wait()
		var got []string
		for range 3 {
			r, _, _ := q.GetWithPriority()
			got = append(got, r.Name)
			q.Done(r)
		}
		if !slices.Equal(got, []string{"changed", "both", "resynced"}) {
			t.Error(got)
		}
	})
}

// TestResyncWithoutPriorities: a queue that knows none is served as well.
func TestResyncWithoutPriorities(t *testing.T) {
	q := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer q.ShutDown()
	wake(q, []types.NamespacedName{parent("a")})
	if got, _ := q.Get(); got.NamespacedName != parent("a") {
		t.Error(got)
	}
}
