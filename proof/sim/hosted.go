package sim

import (
	"context"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/internal/watching"
)

// This file runs hosted controllers. Who starts and ends them in a manager, as their descriptions come and go, is not
// part of the simulation; what they do in a pass is.

// remembered is how much is remembered of hooks' answers and of objects as JSON, in bytes: enough for everything.
const remembered = 1 << 20

// environment is what hosted controllers of a process share.
func (p *process) environment() *host.Environment {
	m := p.manager
	return &host.Environment{
		Host: &hosting.Host{
			Server: &watching.Server{
				Cache: m.caches, Client: m.client, Live: m.live, Mapper: m.mapper, Authority: p.world, Clock: p.world.clock,
			},
			Recorder: m.recorder, Workers: p.world.options.Workers,
		},
		Encoder: hook.NewEncoder(remembered), Memory: hook.NewMemory(remembered), Transport: hookWay{p},
		RollBack: inspect.RollBack,
	}
}

// host adds the controllers that people describe to a process.
func (p *process) host(ctx context.Context, described []Hosted) error {
	env := p.environment()
	for _, d := range described {
		built, err := d.Build(ctx, env)
		if err != nil {
			return err
		}
		if err := p.runs(ctx, env, d.Name, built); err != nil {
			return err
		}
	}
	return nil
}

// runs has a process run a hosted controller, until ctx ends.
func (p *process) runs(ctx context.Context, env *host.Environment, name string, built *hosting.Controller) error {
	if built.Close != nil {
		context.AfterFunc(ctx, built.Close)
	}
	c, err := env.Running(name, built, p.manager.log)
	if err != nil {
		return err
	}
	return p.manager.Add(c)
}

// beside are the controllers that CompositeControllers describe that know of each other.
func beside(described ...*v1alpha1.CompositeController) []Hosted {
	all := func(context.Context) ([]v1alpha1.CompositeController, error) { //nolint:unparam // what others lists may fail elsewhere
		var out []v1alpha1.CompositeController
		for _, cc := range described {
			out = append(out, *cc)
		}
		return out, nil
	}
	out := make([]Hosted, 0, len(described))
	for _, cc := range described {
		out = append(out, Hosted{cc.Name, func(ctx context.Context, env *host.Environment) (*hosting.Controller, error) {
			return composite.BuildBeside(ctx, env, cc, all)
		}})
	}
	return out
}

// composed are the controllers that CompositeControllers describe, decorated the one that a DecoratorController does.
func composed(described ...*v1alpha1.CompositeController) []Hosted {
	out := make([]Hosted, 0, len(described))
	for _, cc := range described {
		out = append(out, Hosted{cc.Name, func(ctx context.Context, env *host.Environment) (*hosting.Controller, error) {
			return composite.Build(ctx, env, cc)
		}})
	}
	return out
}

func decorated(dc *v1alpha1.DecoratorController) []Hosted {
	return []Hosted{{dc.Name, func(ctx context.Context, env *host.Environment) (*hosting.Controller, error) {
		return decorator.Build(ctx, env, dc)
	}}}
}

// ServerResourcesForGroupVersion tells which resources have a status of their own, as discovery does.
func (w *world) ServerResourcesForGroupVersion(version string) (*metav1.APIResourceList, error) {
	out := &metav1.APIResourceList{GroupVersion: version}
	for _, k := range w.modelled {
		if k.Resource.GroupVersion().String() != version {
			continue
		}
		out.APIResources = append(out.APIResources, metav1.APIResource{Name: k.Resource.Resource, Kind: k.Kind.Kind, Namespaced: k.Namespaced})
		if k.Status {
			out.APIResources = append(out.APIResources, metav1.APIResource{Name: k.Resource.Resource + "/status", Kind: k.Kind.Kind})
		}
	}
	return out, nil
}

// Allowed lets everybody watch everything: no role is part of the simulation.
func (*world) Allowed(context.Context, string, schema.GroupVersionResource, string) (bool, error) {
	return true, nil
}
