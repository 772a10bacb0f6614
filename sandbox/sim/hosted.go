package sim

import (
	"context"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/composite"
	"github.com/cairn-dev/cairn/controllers/composite/hook"
	"github.com/cairn-dev/cairn/controllers/composite/host"
)

// This file runs hosted controllers. Who starts and ends them in a manager, as their descriptions come and go, is not part
// of the simulation; what they do in a pass is.

// remembered is how much is remembered of hooks' answers and of objects as JSON, in bytes: enough for everything.
const remembered = 1 << 20

// host adds the controllers that people describe to a process.
func (p *process) host(ctx context.Context, described []*v1alpha1.CompositeController) error {
	m := p.manager
	env := &host.Environment{
		Cache: m.caches, Client: m.client, Live: m.live, Mapper: m.mapper, Recorder: m.recorder, Clock: p.world.clock,
		Encoder: hook.NewEncoder(remembered), Memory: hook.NewMemory(remembered), Transport: hookWay{p},
		Workers: p.world.options.Workers,
	}
	for _, cc := range described {
		built, err := composite.Build(ctx, env, cc)
		if err != nil {
			return err
		}
		context.AfterFunc(ctx, built.Close)
		c, err := env.Running(cc.Name, built, m.log)
		if err != nil {
			return err
		}
		if err := m.Add(c); err != nil {
			return err
		}
	}
	return nil
}
