package pass

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file begins and ends passes.

// Config is what a controller is made of. All fields are required unless they say otherwise.
type Config struct {
	Kind

	// Client writes, and reads from a cache, whose objects nobody changes. Live reads past every cache.
	Client client.Client
	Live   client.Reader
	// Cache is what is read from instead of Client. Optional.
	Cache client.Reader
	// Consistency remembers the writes of passes until the caches show them. The parents must be among its
	// resources.
	Consistency *ownership.ConsistencyStore
	Recorder    events.EventRecorder
	Clock       clock.PassiveClock
	// Run is one pass over a parent that exists. An error that wraps [ownership.ErrStale] or [ownership.ErrGone] is no
	// failure: the pass is dropped. Any other error is retried with a growing delay.
	Run func(ctx context.Context, p *Pass) error
	// Refused stores why nothing can be done for a parent: Run has returned it. Optional: without it a [RefusedError] is
	// retried as any other error.
	Refused func(ctx context.Context, p *Pass, why *RefusedError) error

	// Deleted says that passes are made over terminating parents as well. Optional: without it nothing is done for them,
	// because the garbage collector may orphan or delete their children at any moment.
	Deleted bool
	// Runs says that children are runs, which end and are deleted all the time: then the end of one is no reason to begin
	// the back-off of a failure anew. Optional.
	Runs bool
	// ProgressDeadline is after how long without progress a rollout has failed of which nothing else says so: see
	// [Pass.NoteRollout]. Optional: zero means never.
	ProgressDeadline time.Duration
	// RollBack rolls rollouts back that have exceeded their deadline, of parents that ask for that. Optional.
	RollBack RollBack
	// Stale are errors that mean the same as [ownership.ErrStale]. Optional.
	Stale []error
}

const (
	// firstRetry and lastRetry bound the delay after a pass that failed, which doubles each time. The built-in controllers
	// wait up to 1,000 s: an outage of ten minutes then ends ten minutes later.
	firstRetry, lastRetry = 5 * time.Millisecond, time.Minute
	// TakenRetry is how often a pass checks whether a name is free that another owner's object has: events of such objects
	// enqueue nothing.
	TakenRetry = 10 * time.Second
	// UnseenRetry is how long a pass waits for the caches to show our own writes if no event comes first.
	UnseenRetry = 100 * time.Millisecond
	// StaleRetry is how long a pass waits after it was found to rest on a stale read, which costs requests.
	StaleRetry = 200 * time.Millisecond
	// longestUnseen and longestStale bound them: both double as long as the cause lasts.
	longestUnseen = 5 * time.Second
	longestStale  = 15 * time.Second
	// resetEvery is how often the back-off of a parent begins anew at most. Where children come and go under a full quota,
	// each end would otherwise bring a row of refused requests.
	resetEvery = 10 * time.Second
	// resetTo is after how many failures it begins anew: the deletion has brought a pass at once, and there are eight in
	// the next minute.
	resetTo = 6
)

// Controller makes passes over the parents of one kind. It is a [reconcile.Reconciler], and the [Controller.Limiter]
// that goes with it has to be given to the same controller-runtime controller: [Controller.Options] has both. Make one
// with [New].
type Controller struct {
	Config

	mu sync.Mutex
	// memories is what is remembered of each parent, delays when a request that failed is made again, cooldowns until when
	// bursts of child events wait, and backoffResets that its back-off begins anew.
	memories      map[types.UID]*memory
	delays        map[reconcile.Request]time.Duration
	cooldowns     map[reconcile.Request]time.Time
	backoffResets map[reconcile.Request]bool
	// forgets are called when a parent was deleted, outcomesUnknown also when the outcome of a write was unknown.
	forgets, outcomesUnknown []func(parent types.UID)
}

// memory is what is remembered of one parent from pass to pass. Losing it costs requests and nothing else. Only the
// pass over the parent changes it, but for the fields that the controller's lock guards.
type memory struct {
	backoffMemory
	statusMemory
	writeMemory
	rolloutMemory

	// running counts the passes that are under way, gone says that the parent was deleted. Guarded.
	running int
	gone    bool
	// request is the request by which passes over it are asked for. Guarded.
	request reconcile.Request
	// pauses are those of places whose children end by themselves: see [Pass.Pause]. Guarded.
	pauses map[spot]pause
	// series are its metrics. Guarded.
	series series
	// admission is what admission does to the children: see [Children.Make].
	admission admission
	events    budget
}

// New returns a controller.
func New(c Config) *Controller {
	if c.Cache == nil {
		c.Cache = c.Client
	}
	out := &Controller{
		Config:        c,
		memories:      map[types.UID]*memory{},
		delays:        map[reconcile.Request]time.Duration{},
		cooldowns:     map[reconcile.Request]time.Time{},
		backoffResets: map[reconcile.Request]bool{},
	}
	out.OnForget(c.Consistency.Clear)
	return out
}

// Owner is the identity by which children name a parent.
func (c *Controller) Owner(parent client.Object) ownership.Owner {
	return ownership.OwnerOf(parent, c.kindOf(parent).GroupKind())
}

// OnForget adds a function that drops what else is remembered of a parent. It is called once the parent is deleted and
// no pass over it is under way (invariant X1: a parent of the same name inherits nothing).
func (c *Controller) OnForget(forget func(parent types.UID)) { c.forgets = append(c.forgets, forget) }

// OnUnknownOutcome adds a function that drops what was confirmed about a parent's children: see
// [Pass.NoteUnknownOutcome]. It is called once the parent is deleted as well.
func (c *Controller) OnUnknownOutcome(unconfirm func(parent types.UID)) {
	c.outcomesUnknown = append(c.outcomesUnknown, unconfirm)
}

// Reconcile makes one pass. It implements [reconcile.Reconciler].
func (c *Controller) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	parent := c.New()
	unseen, err := c.Consistency.Read(ctx, c.Cache, req.NamespacedName, parent)
	if err != nil {
		c.drop(req)
		return reconcile.Result{}, client.IgnoreNotFound(err)
	}
	if parent.GetDeletionTimestamp() != nil && !c.Deleted {
		c.drop(req)
		return reconcile.Result{}, nil
	}
	return c.ReconcileParent(ctx, req, parent, c.Resource, unseen)
}

// ReconcileParent makes a pass over a parent that the caller has read with [ownership.ConsistencyStore.Read]; unseen is
// what that returned. It is for controllers whose requests or parents need more than [Controller.Reconcile] does.
func (c *Controller) ReconcileParent(
	ctx context.Context, req reconcile.Request, parent client.Object, resource schema.GroupResource, unseen string,
) (reconcile.Result, error) {
	m, first := c.begin(parent.GetUID(), req)
	defer c.end(parent.GetUID(), m)
	if first && c.parentDeleted(ctx, parent) {
		c.Forget(parent.GetUID()) // when this has ended
		return reconcile.Result{}, nil
	}
	if unseen != "" {
		return c.wait(ctx, m, "Waiting for the caches to show our own writes", unseen, UnseenRetry, longestUnseen), nil
	}
	p := &Pass{Parent: parent, controller: c, resource: resource, memory: m}
	c.describe(p)
	began := c.Clock.Now()
	err := c.run(ctx, req, p)
	p.flushEvents()
	c.startCooldown(req, c.Clock.Since(began), p.writing)
	switch {
	case c.stale(err):
		return c.wait(ctx, m, "Dropped a pass", err.Error(), StaleRetry, longestStale), nil
	case errors.Is(err, ownership.ErrGone): // the cache will show it, and a new one is enqueued by its own event
		log.FromContext(ctx).V(1).Info("Dropped a pass", "reason", err.Error())
		return reconcile.Result{RequeueAfter: p.requeueAfter}, nil // a status write may wait
	}
	c.waits(m, 0)
	m.again(p)
	if err != nil {
		m.failures++
		delay := backoff(m.failures - m.resetAfter)
		if p.requeueAfter > 0 && p.requeueAfter < delay {
			delay = p.requeueAfter // a timer does not wait for the back-off
		}
		c.delay(req, delay)
		c.showRetry(m, delay)
		return reconcile.Result{}, err
	}
	c.showRetry(m, 0)
	m.failures, m.resetAfter = 0, 0
	return reconcile.Result{RequeueAfter: p.requeueAfter}, nil
}

// again requeues a pass with a conflict.
func (m *memory) again(p *Pass) {
	if !p.conflicted.Load() {
		m.conflicts = 0
		return
	}
	m.conflicts++
	p.RequeueAfter(min(doubled(StaleRetry, m.conflicts), longestStale))
}

// run makes a pass. One that panics has failed like any other; controller-runtime logs and counts it.
func (c *Controller) run(ctx context.Context, req reconcile.Request, p *Pass) error {
	ended := false
	defer func() {
		if !ended {
			p.memory.failures++
			c.delay(req, backoff(p.memory.failures-p.memory.resetAfter))
		}
	}()
	err := c.Run(ctx, p)
	if why, ok := errors.AsType[*RefusedError](err); ok && c.Refused != nil {
		err = c.refused(ctx, p, why)
	}
	if !IsStale(err) && !c.stale(err) {
		err = Finished(err, p.rollBack(ctx))
	}
	ended = true
	return err
}

// NewPass returns a pass over a parent that [Controller.Reconcile] has not read: for tests of what a pass does, and for
// callers of a single step of one. What it asks for with [Pass.RequeueAfter] is ignored.
func (c *Controller) NewPass(parent client.Object) *Pass {
	return &Pass{Parent: parent, controller: c, resource: c.Resource, memory: &memory{}}
}

// stale reports whether a pass ended because of a stale read.
func (c *Controller) stale(err error) bool {
	return errors.Is(err, ownership.ErrStale) || slices.ContainsFunc(c.Stale, func(s error) bool { return errors.Is(err, s) })
}

// wait ends a pass that waits for a cache, and leaves the count of failures as it is. It waits longer each time: an
// event comes first as a rule.
func (c *Controller) wait(ctx context.Context, m *memory, message, reason string, first, last time.Duration) reconcile.Result {
	c.waits(m, m.waits+1)
	after := min(doubled(first, m.waits), last)
	log.FromContext(ctx).V(1).Info(message, "reason", reason, "retryAfter", after)
	return reconcile.Result{RequeueAfter: after}
}

func (c *Controller) waits(m *memory, n int) {
	m.waits = n
	c.mu.Lock()
	defer c.mu.Unlock()
	m.waiting = n > 0
}

// parentDeleted reports whether a parent was deleted or replaced since it was read. It may have been forgotten before
// the pass over it began, and would not be forgotten a second time.
func (c *Controller) parentDeleted(ctx context.Context, parent client.Object) bool {
	shown := anyobject.Blank(parent)
	err := c.Cache.Get(ctx, client.ObjectKeyFromObject(parent), shown)
	return apierrors.IsNotFound(err) || err == nil && shown.GetUID() != parent.GetUID()
}

// begin returns what is remembered of a parent, and keeps it until [Controller.end]. first says that nothing was.
func (c *Controller) begin(uid types.UID, req reconcile.Request) (m *memory, first bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	m = c.memories[uid]
	if first = m == nil; first {
		m = &memory{}
		c.memories[uid] = m
	}
	m.request = req
	m.running++
	if now := c.Clock.Now(); c.backoffResets[req] && now.Sub(m.resetAt) >= resetEvery {
		m.resetAfter, m.resetAt = max(m.resetAfter, m.failures-resetTo), now
		delete(c.backoffResets, req)
	}
	return m, first
}

// end drops what is remembered of a parent that was deleted while the pass was under way: otherwise what the pass has
// noted would be kept for ever.
func (c *Controller) end(uid types.UID, m *memory) {
	c.mu.Lock()
	m.running--
	gone := m.gone && m.running == 0
	if gone {
		delete(c.memories, uid)
		m.series.end()
		c.dropLocked(m.request)
	}
	c.mu.Unlock()
	if gone {
		c.forgetAll(uid)
	}
}

// Forget drops what is remembered of a deleted parent, at once or when the pass over it has ended.
func (c *Controller) Forget(uid types.UID) {
	c.mu.Lock()
	m := c.memories[uid]
	busy := m != nil && m.running > 0
	switch {
	case busy:
		m.gone = true
	case m != nil:
		delete(c.memories, uid)
		m.series.end()
		c.dropLocked(m.request)
	}
	c.mu.Unlock()
	if !busy {
		c.forgetAll(uid)
	}
}

func (c *Controller) forgetAll(uid types.UID) {
	for _, forget := range slices.Concat(c.forgets, c.outcomesUnknown) {
		forget(uid)
	}
}

// Remembered returns the number of parents of which something is remembered, for tests of leaks.
func (c *Controller) Remembered() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return len(c.memories) + len(c.delays) + len(c.cooldowns) + len(c.backoffResets)
}
