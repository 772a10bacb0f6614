package main

import (
	"context"
	"net/netip"
	"slices"

	"k8s.io/client-go/rest"
	"k8s.io/klog/v2"

	"github.com/cairn-dev/cairn/internal/manager"
	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// useManager runs cairn's manager in the sandbox, under the roles that are shipped, for every kind that cairn has a
// controller for and that is not left to upstream. Webhooks of composite controllers may be on this machine: where
// else.
func useManager(o *sandbox.Options) {
	o.Replaced = sandbox.Kinds()
	ours := slices.DeleteFunc(manager.Names(), func(name string) bool { return slices.Contains(o.Upstream, name) })
	o.Manager = func(ctx context.Context, admin *rest.Config) error {
		if err := install.CRDs(ctx, admin); err != nil {
			return err
		}
		cfg, err := install.Roles(ctx, admin, ours, true)
		if err != nil {
			return err
		}
		cfg.QPS = -1 // the API server's priority and fairness rules
		return manager.Run(ctx, manager.Options{
			Config:                 cfg,
			Controllers:            ours,
			AskServer:              true,
			HookAllow:              []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8"), netip.MustParsePrefix("::1/128")},
			MetricsBindAddress:     manager.Off,
			HealthProbeBindAddress: manager.Off,
			Logger:                 klog.Background(),
		})
	}
}
