package sandbox

// This file runs kube-scheduler.

import (
	"context"
	"fmt"

	"k8s.io/component-base/configz"
	"k8s.io/kubernetes/cmd/kube-scheduler/app"
	"k8s.io/kubernetes/cmd/kube-scheduler/app/options"
)

// schedulerConfigz is the name under which kube-scheduler publishes its configuration in this process.
const schedulerConfigz = "componentconfig"

// schedulerFlag is a flag, and the set of those in which it is.
type schedulerFlag struct{ set, name, value string }

// schedulerFlags are those of kube-scheduler.
func schedulerFlags(kubeconfig string) []schedulerFlag {
	return []schedulerFlag{
		{"deprecated", "kubeconfig", kubeconfig},
		{"deprecated", "kube-api-qps", "-1"},
		{"leader election", "leader-elect", "false"},
		{"secure serving", "secure-port", "0"},
	}
}

// runScheduler runs the scheduler, with its own identity and RBAC rights, until ctx is done.
func (s *Sandbox) runScheduler(ctx context.Context) error {
	cfg, err := s.ConfigFor("system:kube-scheduler")
	if err != nil {
		return err
	}
	kubeconfig, err := s.privateKubeconfig("scheduler", cfg)
	if err != nil {
		return err
	}
	if s.options.Binaries != "" {
		return s.runSchedulerProgram(ctx, kubeconfig)
	}
	o := options.NewOptions()
	for _, flag := range schedulerFlags(kubeconfig) {
		if err := o.Flags.FlagSet(flag.set).Set(flag.name, flag.value); err != nil {
			return fmt.Errorf("kube-scheduler --%s: %w", flag.name, err)
		}
	}
	completed, scheduler, err := app.Setup(ctx, o)
	if err != nil {
		return fmt.Errorf("configure kube-scheduler: %w", err)
	}
	defer configz.Delete(schedulerConfigz) // or the next one in this process could not register
	err = app.Run(ctx, completed, scheduler)
	if ctx.Err() != nil {
		return nil // Run has no other way to say that it was told to stop than an error
	}
	return err
}
