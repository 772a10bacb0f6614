package pass

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/anyobject"
	"github.com/cairn-dev/cairn/ownership"
)

// This file carries out many writes of one pass at once.

// AtOnce is how many requests of one pass are under way at a time, at most. More of them would only wait for each other at the
// API server, which refuses what waits too long there, also for others.
const AtOnce = 16

// SlowStart does f for all items in batches of 1, 2, 4 and so on, each batch at once, and stops after the first batch
// that fails: under a full quota or a broken webhook the rest would most likely fail the same way, and a pass costs few
// requests. It returns the errors of that batch, joined. Before each batch but the first it asks still, unless that is nil,
// and stops with its error: a batch can take seconds, and what the others were decided on may be over. See [Unedited].
func SlowStart[T any](items []T, still func() error, f func(T) error) error {
	for size := 1; len(items) > 0; size *= 2 {
		if size > 1 && still != nil {
			if err := still(); err != nil {
				return err
			}
		}
		batch := items[:min(size, len(items))]
		items = items[len(batch):]
		if err := Each(batch, f); err != nil {
			return err
		}
	}
	return nil
}

// Rotate returns items such that each pass that follows a failure begins with another one. Without it a single item that is
// always refused would keep [SlowStart] from all those behind it, for ever; with it the rest gets there in its own time, and a
// pass that fails still costs a request or two. What has an order that matters is not to be rotated.
func Rotate[T any](p *Pass, items []T) []T {
	if len(items) == 0 {
		return items
	}
	first := p.memory.failures % len(items)
	return slices.Concat(items[first:], items[:first])
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

// Unedited is the function of that name for the parent of the pass.
func (p *Pass) Unedited(ctx context.Context) func() error {
	return Unedited(ctx, p.controller.Cache, p.Parent)
}

// Unedited returns a question for [SlowStart]: whether cache still shows the parent as the pass has read it. It costs no
// request. The error wraps [ownership.ErrStale] if the cache shows a newer generation, and [ownership.ErrGone] if the parent is
// being deleted since, is gone, or is another one: the caller drops the pass. If the cache cannot be read, the pass goes on.
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
