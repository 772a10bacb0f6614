package pass

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/queue"
)

// This file says when a pass that failed is made again.
//
// controller-runtime ignores Result.RequeueAfter beside an error, and takes every other RequeueAfter for the end of a failure.
// So the delays are kept here: a pass that fails has said already when it is to come again when its queue asks, and
// only a pass that did all it should ends a failure.

// Options returns the options of a controller-runtime controller that this controller is the reconciler of, with so many
// workers.
func (c *Controller) Options(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: c.Limiter(), NewQueue: queue.New}
}

// Limiter returns the rate limiter that goes with this reconciler.
func (c *Controller) Limiter() workqueue.TypedRateLimiter[reconcile.Request] { return limiter{c} }

// limiter hands out the delays that passes have decided on.
type limiter struct{ controller *Controller }

// When returns the delay of a request that failed. One that no pass has decided on failed without one: it panicked, say.
func (l limiter) When(req reconcile.Request) time.Duration {
	c := l.controller
	c.mu.Lock()
	defer c.mu.Unlock()
	delay, ok := c.delays[req]
	delete(c.delays, req)
	if !ok {
		return time.Second
	}
	return delay
}

// Forget does nothing: a queue forgets whenever a pass returns no error, and waiting is no success.
func (l limiter) Forget(reconcile.Request) {}

// NumRequeues is not counted.
func (l limiter) NumRequeues(reconcile.Request) int { return 0 }

// delay says after what time a request that failed is made again.
func (c *Controller) delay(req reconcile.Request, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delays[req] = delay
}

// rest says until when bursts of child events wait: as long as the last pass has taken, so that a parent with many children
// keeps a worker busy half of the time at most.
func (c *Controller) rest(req reconcile.Request, until time.Time) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.rests[req] = until
}

// resting returns how long a child event still waits.
func (c *Controller) resting(req reconcile.Request) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.rests[req].Sub(c.Clock.Now())
}

// ease says that the back-off of a request begins anew: what it failed for may be over.
func (c *Controller) ease(req reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.eased[req] = true
}

// drop forgets when a request was to be made again: there is nothing to be done for it.
func (c *Controller) drop(req reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(req)
}

func (c *Controller) dropLocked(req reconcile.Request) {
	delete(c.delays, req)
	delete(c.rests, req)
	delete(c.eased, req)
}

// backoff is the delay after so many failures in a row.
func (c *Controller) backoff(failures int) time.Duration {
	return min(doubled(c.FirstRetry, failures), c.LastRetry)
}

// doubled doubles a duration for the second time and each one after that.
func doubled(first time.Duration, times int) time.Duration {
	return first << min(max(times-1, 0), 30)
}
