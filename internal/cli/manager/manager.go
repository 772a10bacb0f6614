// Package manager is the verb "cairn manager": flags, logs and signals around the manager that package manager runs.
package manager

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/klog/v2"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/internal/cli/env"
	"github.com/cairn-dev/cairn/internal/manager"
)

// New returns the verb.
func New(e *env.Env) *cobra.Command {
	f := &flags{}
	cmd := &cobra.Command{
		Use:   "manager --controllers=NAME[,NAME]",
		Short: "Run controllers against a cluster",
		Long: `Run controllers against the cluster that --kubeconfig, KUBECONFIG or the pod says, until SIGTERM or SIGINT, which end it
within a second.

Stop the built-in controllers of the same names first (kube-controller-manager --controllers=*,-daemonset-controller): a
kind has one controller. The manifests in deploy/ have the rights that each controller needs.

The flags of Metacontroller are taken, too; docs/metacontroller.md says what they do here.`,
		Example: `  # On a laptop, against a cluster whose built-in controller is off
  cairn manager --controllers=daemonset --leader-elect=false

  # In a pod, scraped by Prometheus
  cairn manager --controllers=daemonset,statefulset --metrics-bind-address=:8080 --log-format=json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error { return run(cmd.Context(), e, f, unheeded(cmd.Flags())) },
	}
	f.add(cmd.Flags())
	return cmd
}

func run(ctx context.Context, e *env.Env, f *flags, unheeded map[string]string) error {
	if ns := *e.Cluster.Namespace; ns != "" {
		return env.Usagef("--namespace=%[1]s means nothing here: a manager works on all namespaces, or on one with --watch-namespace=%[1]s; "+
			"its lease is in --leader-elect-namespace", ns)
	}
	o, err := f.options()
	if err != nil {
		return err
	}
	log, err := f.logger(e.ErrOut)
	if err != nil {
		return err
	}
	if o.Config, err = e.Config(); err != nil {
		return err
	}
	o.Config.WarningHandler = nil // warnings become log lines
	o.Config.QPS, o.Config.Burst = f.qps, f.burst
	o.Logger = log
	klog.SetLogger(log) // leader election and client-go
	ctrl.SetLogger(log)
	for _, name := range slices.Sorted(maps.Keys(unheeded)) {
		log.Info("This flag changes nothing", "flag", "--"+name, "because", unheeded[name])
	}
	log.Info("Starting", "version", e.Version, "controllers", o.Controllers, "server", o.Config.Host, "leaderElection", o.LeaderElect)
	if err := manager.Run(ctx, o); err != nil {
		return err
	}
	log.Info("Stopped")
	return nil
}

// counts checks which controllers there are to be, and the numbers.
func (f *flags) counts() error {
	if len(f.controllers) == 0 {
		return env.Usagef("say what to run with --controllers; there are: %s", strings.Join(manager.Names(), ", "))
	}
	for _, name := range f.controllers {
		if !slices.Contains(manager.Names(), name) {
			return env.Usagef("there is no controller %q; there are: %s", name, strings.Join(manager.Names(), ", "))
		}
	}
	if f.workers < 0 {
		return env.Usagef("--workers=%d: at least 1, or 0 for each controller's own default", f.workers)
	}
	if f.progressDeadline != 0 && f.progressDeadline < time.Second {
		return env.Usagef("--progress-deadline=%s: at least 1s, or 0 for none", f.progressDeadline)
	}
	return nil
}

// options checks the flags before anything is connected to.
func (f *flags) options() (manager.Options, error) {
	if err := f.counts(); err != nil {
		return manager.Options{}, err
	}
	metrics, err := address("metrics-bind-address", f.metrics)
	if err != nil {
		return manager.Options{}, err
	}
	secure, err := f.secure(metrics)
	if err != nil {
		return manager.Options{}, err
	}
	probes, err := address("health-probe-bind-address", f.probes)
	if err != nil {
		return manager.Options{}, err
	}
	profiles, err := address("pprof-bind-address", f.profiles)
	if err != nil {
		return manager.Options{}, err
	}
	targets, err := labels.Parse(f.targets)
	if err != nil {
		return manager.Options{}, env.Usagef("--target-label-selector=%s: %w", f.targets, err)
	}
	allow, err := prefixes(f.hookAllow)
	if err != nil {
		return manager.Options{}, err
	}
	if f.identity != shared && f.identity != none {
		return manager.Options{}, env.Usagef("there is no --hosted-identity=%s; there are: %s, %s", f.identity, shared, none)
	}
	slices.Sort(f.controllers)
	fieldManager := ""
	if f.serverSide {
		fieldManager = f.fieldManager
	}
	out := manager.Options{
		Controllers:             slices.Compact(f.controllers),
		Workers:                 f.workers,
		AskServer:               f.askServer,
		FieldManager:            fieldManager,
		ProgressDeadline:        f.progressDeadline,
		LeaderElect:             f.leaderElect,
		LeaderElectionNamespace: f.namespace(),
		LeaderElectionID:        f.leaderElectID,
		LeaseDuration:           f.leaseDuration,
		RenewDeadline:           f.renewDeadline,
		RetryPeriod:             f.retryPeriod,
		MetricsBindAddress:      metrics,
		MetricsSecure:           secure,
		MetricsCertDir:          f.metricsCertDir,
		HealthProbeBindAddress:  probes,
		PprofBindAddress:        profiles,
		Namespace:               f.watchNamespace,
		AllowVersionSkew:        f.allowSkew,
		NamedAccounts:           f.identity == none,
		TargetLabelSelector:     targets,
		HookAllow:               allow,
		HookAllowAPIServers:     f.hookAllowAPIServer,
	}
	if err := out.CheckTimes(); err != nil {
		return manager.Options{}, env.Usagef("--leader-elect-lease-duration, --leader-elect-renew-deadline, --leader-elect-retry-period: %w", err)
	}
	return out, nil
}

// namespace is where the lease is: as the flag says, else beside the pod, else where the manifests put the manager.
func (f *flags) namespace() string {
	if f.leaderElectNamespace != "" {
		return f.leaderElectNamespace
	}
	return cmp.Or(manager.PodNamespace(), deploy.Namespace)
}

// address understands "off" and "0" for no listener, and else host:port.
func address(flag, value string) (string, error) {
	switch value {
	case "off", "0", "":
		return manager.Off, nil
	}
	if !strings.Contains(value, ":") {
		return "", env.Usagef("--%s=%s is no host:port; 127.0.0.1:8080 listens on this machine only, :8080 everywhere, off nowhere", flag, value)
	}
	return value, nil
}
