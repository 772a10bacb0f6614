package sandbox

// This file runs the parts of a sandbox, each with a context of its own, so that they can be stopped in order.

import (
	"context"
	"errors"
	"fmt"
)

// component is one running part.
type component struct {
	name   string
	cancel context.CancelFunc
	done   chan struct{}
	err    error // set before done is closed
}

// startComponent calls run in a goroutine, with a context that ends with parent or with the component's cancel. When
// run returns before that, ended is called with the reason.
func startComponent(parent context.Context, name string, run func(context.Context) error, ended func(error)) *component {
	ctx, cancel := context.WithCancel(parent)
	c := &component{name: name, cancel: cancel, done: make(chan struct{})}
	go func() {
		defer close(c.done)
		defer cancel()
		err := run(ctx)
		if ctx.Err() == nil {
			if err == nil {
				err = errors.New("it returned")
			}
			ended(fmt.Errorf("%s ended by itself: %w", name, err))
		} else if err != nil && !errors.Is(err, context.Canceled) {
			c.err = fmt.Errorf("stop %s: %w", name, err)
		}
	}()
	return c
}

// stopAll tells the components to stop, all at once, and waits for them or for ctx.
func stopAll(ctx context.Context, components []*component) error {
	for _, c := range components {
		c.cancel()
	}
	var errs []error
	for _, c := range components {
		select {
		case <-c.done:
			errs = append(errs, c.err)
		case <-ctx.Done():
			errs = append(errs, fmt.Errorf("%s still runs: %w", c.name, ctx.Err()))
		}
	}
	return errors.Join(errs...)
}
