package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	cairn "github.com/cairn-dev/cairn/manager"
	"github.com/cairn-dev/cairn/sandbox/fault"
	"github.com/cairn-dev/cairn/sandbox/scenario"
)

// This file runs the managers and makes their requests fail.

// managers is how many there may be at once.
const managers = 2

// manager is one manager: many lives, one injector.
type manager struct {
	faults      *fault.Injector
	config      *rest.Config
	controllers []string
	failed      func(error)

	releases map[schema.GroupResource]func()
	allows   map[string][]func()

	mu      sync.Mutex
	wanted  bool
	stopped chan struct{} // closed when the last life is over; nil before the first
}

// addManagers prepares managers that are not started yet. They see only the stage's namespace.
func (s *Stage) addManagers(ctx context.Context, controllers []string) error {
	if len(controllers) == 0 {
		return errors.New("a script that is played in the sandbox needs controllers")
	}
	cfg, err := s.host.identity(ctx, controllers)
	if err != nil {
		return err
	}
	cfg.Wrap(s.wire.Wrap)
	cfg.Wrap(fault.Within(s.namespace, s.resources()...))
	for n := 1; n <= managers; n++ {
		cfg := rest.CopyConfig(cfg)
		cfg.UserAgent = fmt.Sprintf("manager-%d", n)
		s.managers = append(s.managers, &manager{
			faults: fault.New(context.WithoutCancel(ctx), fault.Plan{}), config: cfg, controllers: controllers,
			releases: map[schema.GroupResource]func(){}, allows: map[string][]func(){},
			failed: func(err error) {
				err = fmt.Errorf("manager %d ended by itself: %w", n, err)
				s.failed.CompareAndSwap(nil, &err)
			},
		})
	}
	return nil
}

// resources are those of the kinds under test, all of which are in namespaces.
func (s *Stage) resources() []string {
	var out []string
	for _, k := range s.kinds {
		out = append(out, k.Parents.Resource, k.Children.Resource, k.Revisions.Resource)
	}
	return append(out, "persistentvolumeclaims")
}

// StartManager implements [scenario.Stage].
func (s *Stage) StartManager(ctx context.Context, n int) error {
	s.managers[n-1].start(context.WithoutCancel(ctx))
	return nil
}

// KillManager implements [scenario.Stage].
func (s *Stage) KillManager(_ context.Context, n int) error {
	s.managers[n-1].stop()
	return nil
}

func (m *manager) start(ctx context.Context) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.wanted {
		return
	}
	m.wanted = true
	stopped := make(chan struct{})
	m.stopped = stopped
	go func() {
		defer close(stopped)
		for m.live(ctx) {
		}
	}()
}

// live is one life of the manager. It returns whether there is to be another one.
func (m *manager) live(ctx context.Context) bool {
	process := m.begin(ctx)
	if process == nil {
		return false
	}
	err := cairn.Run(process.Context(), cairn.Options{ //nolint:contextcheck // the process ends with ctx, or earlier
		Config: process.Config(m.config), Controllers: m.controllers, AskServer: true, Logger: klog.Background(),
		MetricsBindAddress: cairn.Off, HealthProbeBindAddress: cairn.Off,
	})
	if !process.Killed() {
		m.failed(errors.Join(err, errors.New("nobody killed it")))
	}
	return process.Killed()
}

// begin starts a process unless stop came first.
func (m *manager) begin(ctx context.Context) *fault.Process {
	m.mu.Lock()
	defer m.mu.Unlock()
	if !m.wanted {
		return nil
	}
	return m.faults.Start(ctx)
}

// stop kills the manager and waits until it is gone.
func (m *manager) stop() {
	m.mu.Lock()
	m.wanted = false
	stopped := m.stopped
	m.mu.Unlock()
	m.faults.Kill()
	if stopped != nil {
		<-stopped
	}
}

// Fault implements [scenario.Stage].
func (s *Stage) Fault(_ context.Context, f scenario.FaultSpec) error {
	var errs []error
	for i, m := range s.managers {
		if f.Manager == 0 || f.Manager == i+1 {
			errs = append(errs, m.fault(f))
		}
	}
	return errors.Join(errs...)
}

func (m *manager) fault(f scenario.FaultSpec) error {
	key := fmt.Sprint(f.Verb, " ", f.Resource, "/", f.Subresource)
	switch f.Do {
	case scenario.Fail:
		m.faults.Inject(fault.Fault{
			At: f.Nth, Mode: f.Mode, Times: f.Times, Verb: f.Verb, Resource: f.Resource, Subresource: f.Subresource,
		})
	case scenario.Refuse:
		m.allows[key] = append(m.allows[key], m.faults.Refuse(fault.Refusal{
			Verb: f.Verb, Resource: f.Resource, Subresource: f.Subresource, Status: f.Status, After: f.Nth - 1, Times: f.Times,
		}))
	case scenario.Allow:
		for _, allow := range m.allows[key] {
			allow()
		}
		delete(m.allows, key)
	case scenario.Hold:
		if m.releases[f.Resource] == nil {
			m.releases[f.Resource] = m.faults.Hold(f.Resource)
		}
	case scenario.Release:
		if release := m.releases[f.Resource]; release != nil {
			release()
		}
		delete(m.releases, f.Resource)
	case scenario.Cut:
		_, err := m.faults.Cut(f.Resource)
		return err
	case scenario.Rewind:
		m.faults.Rewind(f.Resource, f.ResourceVersion)
	default:
		return fmt.Errorf("the sandbox knows no fault %q", f.Do)
	}
	return nil
}
