package sandbox

// This file stops a sandbox, in the reverse order of the start, within five seconds.

import (
	"context"
	"errors"
	"time"
)

// The parts of the five seconds in which a sandbox has to be gone.
const (
	clientsTimeout = 2500 * time.Millisecond
	serverTimeout  = 1500 * time.Millisecond
	etcdTimeout    = 500 * time.Millisecond
)

// Stop stops the sandbox and returns when it is gone: first the manager and the controllers, then the API server, then
// etcd. A temporary data directory is removed, with its kubeconfig. It takes less than five seconds, and less still
// when ctx ends first. Later calls wait for the first one and return the same error, which names the parts that did not
// stop in time.
func (s *Sandbox) Stop(ctx context.Context) error {
	s.stopOnce.Do(func() {
		s.stopErr = s.stop(ctx)
		running.CompareAndSwap(s, nil)
		close(s.stopped)
	})
	return s.stopErr
}

// Done returns a channel that is closed when the sandbox is gone: after Stop, after the end of Start's context, or
// because a part of it failed. Err tells these apart.
func (s *Sandbox) Done() <-chan struct{} { return s.stopped }

// Err returns the failure that made the sandbox stop, and nil when it runs or was told to stop.
func (s *Sandbox) Err() error { return s.failure() }

func (s *Sandbox) stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopping = true
	clients, api := s.clients, s.api
	s.mu.Unlock()

	errs := []error{within(ctx, clientsTimeout, func(ctx context.Context) error { return stopAll(ctx, clients) })}
	if api != nil {
		errs = append(errs, within(ctx, serverTimeout, func(ctx context.Context) error { return stopAll(ctx, []*component{api}) }))
	}
	if s.etcd != nil {
		errs = append(errs, within(ctx, etcdTimeout, s.etcd.stop))
	}
	onFatal.Store(nil)
	sink.redirect(nil)
	if s.closeLog != nil {
		errs = append(errs, s.closeLog())
	}
	if s.data != nil {
		if s.file != nil {
			if s.data.temporary {
				errs = append(errs, s.file.remove())
			}
			errs = append(errs, s.file.release())
		}
		errs = append(errs, s.data.close())
	}
	return errors.Join(errs...)
}

// fail records why the sandbox cannot go on, and has it stopped.
func (s *Sandbox) fail(err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping || s.cause != nil {
		return
	}
	s.cause = err
	close(s.failed)
}

func (s *Sandbox) failure() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.cause
}

// stopWhen stops the sandbox when ctx is done or a part of it has failed.
func (s *Sandbox) stopWhen(ctx context.Context) {
	select {
	case <-ctx.Done():
	case <-s.failed:
	case <-s.stopped:
		return
	}
	_ = s.Stop(context.WithoutCancel(ctx))
}

func within(ctx context.Context, limit time.Duration, f func(context.Context) error) error {
	ctx, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	return f(ctx)
}
