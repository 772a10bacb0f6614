package pass

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	apiequality "k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/ownership"
	"github.com/cairn-dev/cairn/rollback"
)

// This file is what a pass can ask for: a requeue, and a status write.

// Pass is one pass over one parent.
type Pass struct {
	// Parent is the parent as the cache shows it. It is not to be changed.
	Parent client.Object

	controller   *Controller
	resource     schema.GroupResource
	memory       *memory
	requeueAfter time.Duration
	// writing is how long [SlowStart] took so far.
	writing time.Duration
	// failure is that of a rollout which has exceeded its deadline, nil if it has not.
	failure *rollback.Failure
	// good are the good revisions that the pass writes to the status; nil before that.
	good *rollback.Good
	// conflicted says that another writer changed an object first.
	conflicted atomic.Bool
}

// RequeueAfter asks for another pass after a time, even if no event comes. The earliest one counts; zero asks for
// nothing. It is kept when the pass fails.
func (p *Pass) RequeueAfter(after time.Duration) {
	p.requeueAfter = Soonest(p.requeueAfter, after)
}

// Soonest returns the shorter of two delays, of which zero means never.
func Soonest(a, b time.Duration) time.Duration {
	if b > 0 && (a == 0 || b < a) {
		return b
	}
	return a
}

// NoteConflict notes that another writer has changed or deleted an object before a write of this pass, which is no
// failure. As a rule its event enqueues the parent; another pass is made in any case, soon, and later each time: an
// admission webhook may return 409 Conflict for an object that did not change. It may be called by several goroutines
// at once.
func (p *Pass) NoteConflict() { p.conflicted.Store(true) }

// Now is the time of the controller's clock.
func (p *Pass) Now() time.Time { return p.controller.Clock.Now() }

// Current checks, past every cache, that the parent has the generation that was read, and costs a request. It returns
// an error that wraps [ownership.ErrStale] if it has a newer one, [ownership.ErrGone] if the parent is terminating,
// deleted or replaced, and an API error if it could not be read (retry).
func (p *Pass) Current(ctx context.Context) error {
	c := p.controller
	fresh, err := ownership.Reread(ctx, c.Live, p.Parent)
	if err != nil {
		return err
	}
	if fresh.GetGeneration() != p.Parent.GetGeneration() {
		c.Consistency.WroteAt(p.Parent.GetUID(), p.resource, fresh) // the next pass waits until the cache shows it
		return fmt.Errorf("%w: it shows generation %d of %s, and there is %d",
			ownership.ErrStale, p.Parent.GetGeneration(), p.describe(), fresh.GetGeneration())
	}
	return nil
}

// Unchanged is [Pass.Current] for a decision that rests on the status as well: it checks that the parent is exactly the
// version that was read.
func (p *Pass) Unchanged(ctx context.Context) error {
	c := p.controller
	fresh, err := ownership.Reread(ctx, c.Live, p.Parent)
	if err != nil {
		return err
	}
	if fresh.GetResourceVersion() != p.Parent.GetResourceVersion() {
		c.Consistency.WroteAt(p.Parent.GetUID(), p.resource, fresh)
		return fmt.Errorf("%w: %s has changed since", ownership.ErrStale, p.describe())
	}
	return nil
}

// NoteUnknownOutcome takes the error with which the writes of a pass ended. If it leaves open what was written, the
// next destructive step waits for a consistent list: without a response there is nothing that the consistency store
// could wait for.
func (p *Pass) NoteUnknownOutcome(err error) {
	if OutcomeUnknown(err) {
		for _, unconfirm := range p.controller.outcomesUnknown {
			unconfirm(p.Parent.GetUID())
		}
	}
}

// statusEvery is how often a status is written at most while nothing in it is urgent.
const statusEvery = time.Second

// WriteStatus stores the status of after, if it differs from that of before. Both are the parent with its name, UID and
// resourceVersion, and nothing but the status matters of them: before has that of [Pass.Parent]. What is not urgent is
// written once a second at most, and the parent is requeued for it.
//
// The write is fenced by the resourceVersion: a status that was made from an older read of the parent never replaces
// one from a newer read (S2). It returns an error that wraps [ownership.ErrStale] if the parent has changed since it
// was read, and another error if the API server refuses the status (retry). stored is true if the API server has after
// now.
func (p *Pass) WriteStatus(ctx context.Context, before, after client.Object, urgent bool) (stored bool, err error) {
	if apiequality.Semantic.DeepEqual(before, after) {
		return true, nil
	}
	c := p.controller
	if left := p.memory.statusAt.Add(statusEvery).Sub(c.Clock.Now()); left > 0 && !urgent {
		p.RequeueAfter(left)
		return false, nil
	}
	stated := p.BeginStatusWrite()
	err = c.Client.Status().Patch(ctx, after, client.MergeFromWithOptions(before, client.MergeFromWithOptimisticLock{}))
	stated(after, err)
	switch {
	case apierrors.IsConflict(err):
		return false, fmt.Errorf("%w to report on: %w", ownership.ErrStale, err)
	case err != nil:
		return false, fmt.Errorf("write the status of %s: %w", p.describe(), err)
	}
	return true, nil
}

// BeginStatusWrite says that a status of the parent is about to be written, and returns the function to call with the
// outcome: the parent as the API server has stored it, or the error. [Pass.WriteStatus] does all that.
//
// The event of the write may come before its response. Until then it is unknown whose write that was, so the event
// waits.
func (p *Pass) BeginStatusWrite() (stated func(stored client.Object, err error)) {
	c, m := p.controller, p.memory
	c.mu.Lock()
	defer c.mu.Unlock()
	m.writing = true
	return func(stored client.Object, err error) {
		c.mu.Lock()
		m.writing = false
		wake := m.wake
		if err == nil {
			m.statusVersion = stored.GetResourceVersion()
			if m.woken == m.statusVersion {
				wake = nil
			}
		}
		m.wake, m.woken = nil, ""
		c.mu.Unlock()
		if wake != nil {
			wake()
		}
		if err == nil {
			m.statusAt = c.Clock.Now()
			c.Consistency.WroteAt(p.Parent.GetUID(), p.resource, stored)
		}
	}
}

// kind is the kind of the parent.
func (p *Pass) kind() schema.GroupVersionKind { return p.controller.kindOf(p.Parent) }

func (c *Controller) kindOf(parent client.Object) schema.GroupVersionKind {
	if kind := parent.GetObjectKind().GroupVersionKind(); !kind.Empty() {
		return kind
	}
	return c.GVK
}

// describe names the parent in errors.
func (p *Pass) describe() string {
	name := p.Parent.GetName()
	if namespace := p.Parent.GetNamespace(); namespace != "" {
		name = namespace + "/" + name
	}
	return p.kind().Kind + " " + name
}

// IsStale reports whether err, the error of a pass or of a part of it, says that the pass was decided on a stale state:
// it wraps [ownership.ErrStale] or [ownership.ErrGone]. The caller returns it as it is, and writes nothing more.
func IsStale(err error) bool {
	return errors.Is(err, ownership.ErrStale) || errors.Is(err, ownership.ErrGone)
}

// Finished joins the error of the writes of a pass with that of its status write. A status write that lost a race must
// not turn a failure into a quick retry.
func Finished(acted, reported error) error {
	if acted != nil && errors.Is(reported, ownership.ErrStale) {
		reported = nil
	}
	return errors.Join(acted, reported)
}
