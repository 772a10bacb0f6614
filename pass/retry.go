package pass

import (
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// This file says when a failed pass is retried.
//
// controller-runtime ignores Result.RequeueAfter if there is an error, and resets the back-off for every other
// RequeueAfter. So the delays are kept here: a failed pass has set its delay before the queue asks for it, and only a
// pass that did all its work resets the back-off.

// backoffMemory is what is remembered of the passes over a parent that did not do all their work.
type backoffMemory struct {
	// failures counts the passes in a row that failed, waits those that waited for a cache, and conflicts those with
	// [Pass.NoteConflict].
	failures, waits, conflicts int
	// resetAfter is how many failures there were when the back-off began anew, which was at resetAt.
	resetAfter int
	resetAt    time.Time
}

// Options returns the options of a controller-runtime controller that this controller is the reconciler of, with so
// many workers.
func (c *Controller) Options(workers int) controller.Options {
	return controller.Options{MaxConcurrentReconciles: workers, RateLimiter: c.Limiter()}
}

// Limiter returns the rate limiter that belongs to this reconciler.
func (c *Controller) Limiter() workqueue.TypedRateLimiter[reconcile.Request] { return limiter{c} }

// limiter returns the delays that passes have set.
type limiter struct{ controller *Controller }

// When returns the delay of a failed request. If no pass has set one, the pass has panicked, say.
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

// Forget does nothing: the queue calls it for every pass without an error, also for one that only waited for a cache.
func (l limiter) Forget(reconcile.Request) {}

// NumRequeues is not counted.
func (l limiter) NumRequeues(reconcile.Request) int { return 0 }

// delay sets after what time a failed request is retried.
func (c *Controller) delay(req reconcile.Request, delay time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.delays[req] = delay
}

// settling is how long a burst of child events waits at most for the events of the pass's own writes.
const settling = 100 * time.Millisecond

// startCooldown sets until when bursts of child events wait after a pass that took so long, some of it for writes: as
// long as it took without them, so that a parent with many children keeps a worker busy half of the time at most. The
// cache shows the writes while they are made, so that there is little to wait for at the end.
func (c *Controller) startCooldown(req reconcile.Request, took, writing time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.cooldowns[req] = c.Clock.Now().Add(took - writing + min(writing, settling))
}

// cooldown returns how long a child event still waits.
func (c *Controller) cooldown(req reconcile.Request) time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.cooldowns[req].Sub(c.Clock.Now())
}

// resetBackoff says that the back-off of a request begins anew: what it failed for may be over.
func (c *Controller) resetBackoff(req reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.backoffResets[req] = true
}

// drop deletes the delay of a request: there is nothing to be done for it.
func (c *Controller) drop(req reconcile.Request) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.dropLocked(req)
}

func (c *Controller) dropLocked(req reconcile.Request) {
	delete(c.delays, req)
	delete(c.cooldowns, req)
	delete(c.backoffResets, req)
}

// backoff is the delay after so many failures in a row.
func backoff(failures int) time.Duration {
	return min(doubled(firstRetry, failures), lastRetry)
}

// doubled returns a duration, doubled once for each time after the first.
func doubled(first time.Duration, times int) time.Duration {
	return first << min(max(times-1, 0), 30)
}
