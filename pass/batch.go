package pass

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file carries out many writes of one pass at once.

// AtOnce is how many requests of one pass are under way at a time, at most. More of them would only queue up at the API
// server, which rejects requests that wait too long, those of others as well. With far fewer, the process falls asleep
// between two responses, and that costs more processor time than the requests do.
const AtOnce = 64

// MostWrites is how many writes of one sort a pass makes at most, as the built-in ReplicaSet controller does. The rest
// waits until the caches show the first part.
const MostWrites = 500

// Writes are writes of one sort that a pass is to make, for [SlowStart].
type Writes[T any] struct {
	Items []T
	// Do makes one of them. It is called by several goroutines at once.
	Do func(T) error
	// Name tells an item from the others, the same in each pass: those whose write failed last are then tried last, so
	// that one that is always refused delays no other. Names of one pass's writes should differ. Optional: nil means that
	// the order of the items matters, or that they are alike.
	Name func(T) string
	// Still is called before each batch but the first, and its error ends the writes: a batch can take seconds, and what
	// the writes were decided on may no longer hold. Optional. See [Pass.Unedited].
	Still func() error
}

// SlowStart makes writes in batches of 1, 2, 4 and so on, each batch at once, and stops after the first batch that
// fails: under a full quota or a broken webhook the rest would most likely fail the same way, and a pass costs few
// requests. It returns the errors of that batch, joined.
func SlowStart[T any](p *Pass, w Writes[T]) error {
	began := p.Now()
	defer func() { p.writing += p.controller.Clock.Since(began) }()
	items, do := w.Items, w.Do
	if w.Name != nil {
		items, do = lastFailedLast(p, w)
	}
	items = items[:min(len(items), MostWrites)]
	for size := 1; len(items) > 0; size *= 2 {
		if size > 1 && w.Still != nil {
			if err := w.Still(); err != nil {
				return err
			}
		}
		batch := items[:min(size, len(items))]
		items = items[len(batch):]
		if err := Each(batch, do); err != nil {
			p.noteRefusals(err)
			return err
		}
	}
	return nil
}

// writeMemory is what is remembered of writes: the last failure of each, by its name, and how many batches there were.
type writeMemory struct {
	failed map[string]failure
	tries  int
}

// failure is a write that failed: in which try, and when that was. refused is false if its outcome is unknown.
type failure struct {
	try     int
	at      time.Time
	refused bool
}

// forgetFailures is when a failed write is forgotten that was not tried again: nobody asks for it any more, mostly.
const forgetFailures = 10 * time.Minute

// lastFailedLast returns the items in the order in which they are to be tried, those that have not failed first, and a
// Do that notes for the next passes which of them fail. Without it [SlowStart] would stop at the same refused item in
// each pass, and never try those after it; with it, a parent whose other children all exist costs one refused request a
// pass.
func lastFailedLast[T any](p *Pass, w Writes[T]) ([]T, func(T) error) {
	m := p.memory
	if m.failed == nil {
		m.failed = map[string]failure{}
	}
	maps.DeleteFunc(m.failed, func(_ string, f failure) bool { return p.Now().Sub(f.at) > forgetFailures })
	m.tries++
	items := slices.Clone(w.Items)
	slices.SortStableFunc(items, func(a, b T) int { return cmp.Compare(m.failed[w.Name(a)].try, m.failed[w.Name(b)].try) })
	var mu sync.Mutex
	return items, func(item T) error {
		err := w.Do(item)
		mu.Lock()
		defer mu.Unlock()
		switch {
		case err == nil:
			delete(m.failed, w.Name(item))
		case !IsStale(err):
			m.failed[w.Name(item)] = failure{m.tries, p.Now(), !OutcomeUnknown(err)}
		}
		return err
	}
}

// Failed returns when the last write of that name was refused: see [Writes]. A later refusal has a higher number, and 0
// means that the write succeeded, was not tried lately, or has an unknown outcome. A planner that chooses among equals
// chooses the lowest, so that writes that are always refused do not stop a rollout.
func (p *Pass) Failed(name string) int {
	if f := p.memory.failed[name]; f.refused {
		return f.try
	}
	return 0
}

// Each does f for all items, as many as [AtOnce] at a time, and returns the errors, joined.
func Each[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	slots := make(chan struct{}, AtOnce)
	var running sync.WaitGroup
	for i, item := range items {
		slots <- struct{}{}
		running.Go(func() {
			defer func() { <-slots }()
			errs[i] = f(item)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}

// Unedited is the function [Unedited] for the parent of the pass.
func (p *Pass) Unedited(ctx context.Context) func() error {
	return Unedited(ctx, p.controller.Cache, p.Parent)
}

// Unedited returns a check for [SlowStart]: that cache still shows the parent as the pass has read it. It costs no
// request. The error wraps [ownership.ErrStale] if the cache shows a newer generation, and [ownership.ErrGone] if the
// parent is terminating, deleted, or another object now: the caller drops the pass. If the cache cannot be read, the
// pass goes on.
func Unedited(ctx context.Context, cache client.Reader, parent client.Object) func() error {
	return func() error {
		shown := anyobject.Blank(parent)
		err := cache.Get(ctx, client.ObjectKeyFromObject(parent), shown)
		switch {
		case apierrors.IsNotFound(err), err == nil && shown.GetUID() != parent.GetUID():
			return fmt.Errorf("%s: %w", anyobject.Describe(parent), ownership.ErrGone)
		case err != nil:
			return nil //nolint:nilerr // a pass that began may go on
		case shown.GetDeletionTimestamp() != nil && parent.GetDeletionTimestamp() == nil:
			return fmt.Errorf("%s: %w: it is being deleted", anyobject.Describe(parent), ownership.ErrGone)
		case shown.GetGeneration() > parent.GetGeneration():
			return fmt.Errorf("%w: %s is at generation %d by now, and the pass is about %d",
				ownership.ErrStale, anyobject.Describe(parent), shown.GetGeneration(), parent.GetGeneration())
		}
		return nil
	}
}
