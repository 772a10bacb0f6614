package cluster

import (
	"context"
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	cairn "github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/proof/fault"
	"github.com/cairn-dev/cairn/proof/scenario"
)

// This file runs the managers and makes their requests fail.

// managers is how many there may be at once.
const managers = 2

// manager is one manager, and how to take back what is done to it.
type manager struct {
	fault.Keeper

	releases map[schema.GroupResource]func()
	allows   map[string][]func()
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
			Keeper: fault.Keeper{
				Faults: fault.New(context.WithoutCancel(ctx), fault.Plan{}), Config: cfg,
				Run: func(ctx context.Context, cfg *rest.Config) error {
					return cairn.Run(ctx, cairn.Options{
						Config: cfg, Controllers: controllers, AskServer: true, Logger: klog.Background(),
						MetricsBindAddress: cairn.Off, HealthProbeBindAddress: cairn.Off,
					})
				},
				Failed: func(err error) {
					err = fmt.Errorf("manager %d: %w", n, err)
					s.failed.CompareAndSwap(nil, &err)
				},
			},
			releases: map[schema.GroupResource]func(){}, allows: map[string][]func(){},
		})
	}
	return nil
}

// resources are those of the kinds under test, all of which are in namespaces.
func (s *Stage) resources() []string {
	var out []string
	for _, k := range s.kinds {
		out = append(out, k.Parents.Resource, k.Children.Resource)
		if !k.Revisions.Empty() {
			out = append(out, k.Revisions.Resource)
		}
	}
	return append(out, "persistentvolumeclaims")
}

// StartManager implements [scenario.Stage].
func (s *Stage) StartManager(ctx context.Context, n int) error {
	s.managers[n-1].Start(context.WithoutCancel(ctx))
	return nil
}

// KillManager implements [scenario.Stage].
func (s *Stage) KillManager(_ context.Context, n int) error {
	s.managers[n-1].Stop()
	return nil
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
		m.Faults.Inject(fault.Fault{
			At: f.Nth, Mode: f.Mode, Times: f.Times, Verb: f.Verb, Resource: f.Resource, Subresource: f.Subresource,
		})
	case scenario.Refuse:
		m.allows[key] = append(m.allows[key], m.Faults.Refuse(fault.Refusal{
			Verb: f.Verb, Resource: f.Resource, Subresource: f.Subresource, Status: f.Status, After: f.Nth - 1, Times: f.Times,
		}))
	case scenario.Allow:
		for _, allow := range m.allows[key] {
			allow()
		}
		delete(m.allows, key)
	case scenario.Hold:
		if m.releases[f.Resource] == nil {
			m.releases[f.Resource] = m.Faults.Hold(f.Resource)
		}
	case scenario.Release:
		if release := m.releases[f.Resource]; release != nil {
			release()
		}
		delete(m.releases, f.Resource)
	case scenario.Cut:
		_, err := m.Faults.Cut(f.Resource)
		return err
	case scenario.Rewind:
		m.Faults.Rewind(f.Resource, f.ResourceVersion)
	default:
		return fmt.Errorf("the sandbox knows no fault %q", f.Do)
	}
	return nil
}
