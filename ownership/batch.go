package ownership

import (
	"errors"
	"sync"
)

// This file carries out many writes of one pass at once.

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

// AtOnce is how many requests of one pass are under way at a time, at most. More of them would only wait for each other at the
// API server, which refuses what waits too long there, also for others.
const AtOnce = 16

// Each does f for all items, as many as [AtOnce] at a time, and returns the errors, joined.
func Each[T any](items []T, f func(T) error) error {
	errs := make([]error, len(items))
	free := make(chan struct{}, AtOnce)
	var running sync.WaitGroup
	for i, item := range items {
		free <- struct{}{}
		running.Go(func() {
			defer func() { <-free }()
			errs[i] = f(item)
		})
	}
	running.Wait()
	return errors.Join(errs...)
}
