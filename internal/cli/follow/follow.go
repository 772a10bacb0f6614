// Package follow watches the status of one object until it is done or has failed: "cairn status --watch" and "cairn
// undo --wait".
//
// What may not come in: what done means, which package inspect says.
package follow

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	utilnet "k8s.io/apimachinery/pkg/util/net"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/inspect/status"
	"github.com/cairn-dev/cairn/internal/cli/env"
)

// This file is the loop: look, show what has changed, wait.

// Options say what is shown, and for how long.
type Options struct {
	// Timeout is after how long it is given up. 0 is never.
	Timeout time.Duration
	// View draws a status for a terminal. Nil: there are only lines.
	View func(io.Writer, *status.Status) error
	// Lines is where lines go, nil for the standard output.
	Lines io.Writer
	// Every is how long it waits at least between two looks, 0 for a second. While nothing changes it waits up to five
	// times as long.
	Every time.Duration
}

// Object follows the object that args name, as the verbs take it. Errors: those of [Rollout].
func Object(ctx context.Context, e *env.Env, args []string, o Options) error {
	inspector, parent, err := e.Open(args)
	if err != nil {
		return err
	}
	return Rollout(ctx, e, inspector, parent, o)
}

// All follows what was found, one object after the other, within one timeout. It ends with the first that is not done.
// Errors: those of [Rollout].
func All(ctx context.Context, e *env.Env, found *env.Found, o Options) error {
	ctx, cancel := o.within(ctx)
	defer cancel()
	for _, parent := range found.Objects {
		if err := rollout(ctx, e, found.Inspector, parent, o); err != nil {
			return err
		}
	}
	return nil
}

// within returns a context that ends after the timeout.
func (o *Options) within(ctx context.Context) (context.Context, context.CancelFunc) {
	if o.Timeout == 0 {
		return context.WithCancel(ctx)
	}
	return context.WithTimeoutCause(ctx, o.Timeout, errTimeout)
}

// errTimeout is why a context ends after [Options.Timeout].
var errTimeout = errors.New("timeout")

// Rollout follows parent until it is done, and then returns nil.
//
// Errors: an [*env.ExitError] with [env.Broken] if it has failed, [env.TimedOut] or [env.Interrupted], all of which the
// user has been told of; that the object was deleted meanwhile; or what the API server says, unless it may say
// something else the next time.
func Rollout(ctx context.Context, e *env.Env, i *inspect.Inspector, parent client.Object, o Options) error {
	ctx, cancel := o.within(ctx)
	defer cancel()
	return rollout(ctx, e, i, parent, o)
}

func rollout(ctx context.Context, e *env.Env, i *inspect.Inspector, parent client.Object, o Options) error {
	every := o.Every
	if every == 0 {
		every = time.Second
	}
	p := newPrinter(e, o)
	for pause := every; ; pause = min(pause+every/2, 5*every) {
		fresh, err := i.Refresh(ctx, parent)
		var s *status.Status
		if err == nil {
			s, err = status.Of(ctx, i, fresh, e.Clock.Now())
		}
		switch {
		case ctx.Err() != nil:
			return p.over(ctx, e, o.Timeout)
		case passing(err):
			p.unread(err, e.Clock.Now())
		case err != nil:
			return lost(err)
		default:
			p.failing = nil
			changed, err := p.show(s)
			if err != nil || s.State != status.InProgress {
				return errors.Join(err, Answer(s.State))
			}
			if changed {
				pause = every
			}
		}
		select {
		case <-ctx.Done():
			return p.over(ctx, e, o.Timeout)
		case <-time.After(pause):
		}
	}
}

// Answer returns nil for what is done, and else an [*env.ExitError].
func Answer(s status.State) error {
	switch s {
	case status.Done:
		return nil
	case status.Failed:
		return &env.ExitError{Status: env.Broken}
	case status.Unknown:
		return &env.ExitError{Status: env.Unsaid}
	default:
		return &env.ExitError{Status: env.Unfinished}
	}
}

// passing reports whether an error may be over at the next look: the object changed while it was read, or the API
// server is busy or starts anew.
func passing(err error) bool {
	if changed := (*inspect.ChangedError)(nil); errors.As(err, &changed) {
		return !changed.Gone
	}
	return apierrors.IsServerTimeout(err) || apierrors.IsTimeout(err) || apierrors.IsTooManyRequests(err) ||
		apierrors.IsServiceUnavailable(err) || utilnet.IsConnectionRefused(err) || utilnet.IsConnectionReset(err) || utilnet.IsProbableEOF(err)
}

// lost says so if the object is not there any more.
func lost(err error) error {
	if changed := (*inspect.ChangedError)(nil); errors.As(err, &changed) {
		return fmt.Errorf("%s was deleted, or replaced by another object of that name, while it was watched", changed.Parent)
	}
	return err
}

// over says how the wait ended before the object was done.
func (p *printer) over(ctx context.Context, e *env.Env, timeout time.Duration) error {
	if !errors.Is(context.Cause(ctx), errTimeout) {
		return &env.ExitError{Status: env.Interrupted}
	}
	var last []string
	if p.failing != nil {
		last = append(last, p.failing.text(e.Clock.Now()))
	}
	if p.last != nil {
		last = append(last, p.last.Line())
	}
	fmt.Fprintf(e.ErrOut, "timed out after %s: %s\n", timeout, strings.Join(last, "; before that "))
	return &env.ExitError{Status: env.TimedOut}
}
