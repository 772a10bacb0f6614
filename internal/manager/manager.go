package manager

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/netip"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/go-logr/logr"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/config"
	"sigs.k8s.io/controller-runtime/pkg/metrics/server"

	cairn "github.com/cairn-dev/cairn/api/cairn/v1alpha1"
	metacontroller "github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/controllers/cronjob"
	"github.com/cairn-dev/cairn/controllers/daemonset"
	"github.com/cairn-dev/cairn/controllers/metacontroller/composite"
	"github.com/cairn-dev/cairn/controllers/metacontroller/decorator"
	"github.com/cairn-dev/cairn/controllers/recorder"
	"github.com/cairn-dev/cairn/controllers/replicaset"
	"github.com/cairn-dev/cairn/controllers/statefulset"
	"github.com/cairn-dev/cairn/inspect"
	"github.com/cairn-dev/cairn/internal/metacontroller/host"
	"github.com/cairn-dev/cairn/pass"
)

// environment returns what all hosting controllers share, the same value each time.
type environment func() (*host.Environment, error)

// registry holds every controller by the name under which --controllers starts it.
var registry = map[string]func(context.Context, ctrl.Manager, Options, environment) error{
	composite.Name: hosting(composite.Setup),
	decorator.Name: hosting(decorator.Setup),
	"cronjob":      kind(cronjob.Setup),
	"daemonset":    kind(daemonset.Setup),
	recorder.Name: func(ctx context.Context, mgr ctrl.Manager, _ Options, shared environment) error {
		env, err := shared()
		if err != nil {
			return err
		}
		return recorder.Setup(ctx, mgr, env.Host, env.ServerFor)
	},
	"replicaset":            kind(replicaset.Setup),
	"replicationcontroller": kind(replicaset.SetupReplicationControllers),
	"statefulset":           kind(statefulset.Setup),
}

// kind is the setup of a controller of one of Kubernetes' kinds.
func kind(setup func(context.Context, ctrl.Manager, pass.Options) error) func(context.Context, ctrl.Manager, Options, environment) error {
	return func(ctx context.Context, mgr ctrl.Manager, o Options, _ environment) error {
		return setup(ctx, mgr, pass.Options{
			Workers: o.Workers, AskServer: o.AskServer, ProgressDeadline: o.ProgressDeadline, RollBack: inspect.RollBack, Clock: o.Clock,
		})
	}
}

// hosting is the setup of a controller that hosts others.
func hosting(setup func(ctrl.Manager, *host.Environment) error) func(context.Context, ctrl.Manager, Options, environment) error {
	return func(_ context.Context, mgr ctrl.Manager, _ Options, shared environment) error {
		env, err := shared()
		if err != nil {
			return err
		}
		return setup(mgr, env)
	}
}

// Off is the address that switches a listener off.
const Off = "0"

// Options say what to run and how.
type Options struct {
	// Config is the cluster and the identity to use. Its QPS and Burst are used as they are; see [Config].
	Config *rest.Config
	// Controllers are names from [Names]. At least one.
	Controllers []string
	// Workers is how many parents each controller reconciles at once. Zero leaves it to the controller.
	Workers int
	// AskServer allows controllers to find out by server-side dry runs whether a stored snapshot is equivalent to its
	// parent (rule E3). It needs the right to patch parents.
	AskServer bool
	// FieldManager, unless it is empty, is the name under which children of CompositeControllers and attachments of
	// DecoratorControllers are applied by server-side apply. Otherwise they are merged as Metacontroller does by default.
	FieldManager string
	// ProgressDeadline is after how long without progress a rollout of a DaemonSet, a StatefulSet or a parent of a
	// CompositeController has failed where nothing else says so. Zero means never.
	ProgressDeadline time.Duration
	// TargetLabelSelector narrows the CompositeControllers and DecoratorControllers that are run, by their labels. Nil
	// selects all.
	TargetLabelSelector labels.Selector
	// HookAllow lists special addresses that webhooks may have nevertheless, such as 127.0.0.1/32 for a sidecar.
	// HookAllowAPIServers lets them have the API server's own address.
	HookAllow           []netip.Prefix
	HookAllowAPIServers bool
	// LeaderElect makes sure that one of several managers acts. The lease is LeaderElectionID in
	// LeaderElectionNamespace; an empty namespace means the one the process runs in.
	LeaderElect                               bool
	LeaderElectionNamespace, LeaderElectionID string
	// LeaseDuration is for how long a lease holds that is not renewed, in whole seconds. A leader tries every RetryPeriod,
	// and stops when it has not succeeded for RenewDeadline. Zero means [DefaultLeaseDuration] and so on.
	LeaseDuration, RenewDeadline, RetryPeriod time.Duration
	// MetricsBindAddress, HealthProbeBindAddress and PprofBindAddress are host:port; port 0 picks a free one, which
	// the log tells, and [Off] or nothing listens nowhere.
	MetricsBindAddress, HealthProbeBindAddress, PprofBindAddress string
	// MetricsSecure serves metrics over TLS, to those whom the API server lets get /metrics: which needs the right to
	// create tokenreviews and subjectaccessreviews. The certificate is tls.crt of MetricsCertDir, or one that nobody has
	// signed.
	MetricsSecure  bool
	MetricsCertDir string
	// Namespace, unless it is empty, is the only one that is watched. Parents and children that are in no namespace cannot
	// be watched then.
	Namespace string
	// NamedAccounts runs only those CompositeControllers, DecoratorControllers and HistoryPolicies that name a
	// ServiceAccount. The others would have all rights of the manager's account, which whoever creates one may use.
	NamedAccounts bool
	// AllowVersionSkew starts controllers on an API server that is too new for them, or too old, as [SkewError] says.
	AllowVersionSkew bool
	// Clock is the clock of the controllers of Kubernetes' kinds, for tests. Nil means the system's.
	Clock clock.PassiveClock
	// Logger gets structured logs. The zero value discards them.
	Logger logr.Logger
}

// Names returns the controllers that exist, sorted.
func Names() []string { return slices.Sorted(maps.Keys(registry)) }

// drain is how long a stopping manager waits for running writes. SIGTERM ends it within a second of that.
const drain = 900 * time.Millisecond

// slack is what a manager may take longer than that.
const slack = 2 * time.Second

// Run runs the controllers until ctx ends, and returns nil then. It returns an error if a controller is unknown, if the
// cluster cannot be reached, if a port is taken, or if leadership is lost; the caller exits and is started again.
func Run(ctx context.Context, o Options) error {
	mgr, err := New(ctx, o)
	switch {
	case err == nil:
	case ctx.Err() != nil:
		return nil //nolint:nilerr // it was stopped before it had started
	default:
		return err
	}
	if err := start(ctx, mgr); err != nil {
		return fmt.Errorf("run controllers %s: %w", strings.Join(o.Controllers, ","), err)
	}
	return nil
}

// start runs mgr until ctx ends. A manager that does not end in time by then has nothing to wait for.
func start(ctx context.Context, mgr ctrl.Manager) error {
	ended := make(chan error, 1)
	go func() { ended <- mgr.Start(ctx) }()
	select {
	case err := <-ended:
		return unlessStopped(ctx, err)
	case <-ctx.Done():
	}
	select {
	case err := <-ended:
		return unlessStopped(ctx, err)
	case <-time.After(drain + slack):
		return nil
	}
}

// unlessStopped is err, or nil if it says no more than that ctx has ended.
func unlessStopped(ctx context.Context, err error) error {
	if ctx.Err() != nil && errors.Is(err, ctx.Err()) {
		return nil
	}
	return err
}

// New returns a manager with the controllers added, not started yet, which ctx stops. Errors are as for [Run]. With
// leader election the manager's clients write only while the lease is known to be its own, and it ends with a
// [*LostError] when it is not.
func New(ctx context.Context, o Options) (ctrl.Manager, error) {
	o = o.withDefaults()
	if err := o.validate(); err != nil {
		return nil, err
	}
	scheme := runtime.NewScheme()
	if err := errors.Join(clientgoscheme.AddToScheme(scheme), metacontroller.AddToScheme(scheme), cairn.AddToScheme(scheme)); err != nil {
		return nil, err
	}
	versions, err := fit(ctx, &o)
	if err != nil {
		return nil, err
	}
	mgr, ready, err := o.bare(ctx, scheme)
	if err == nil {
		ready = append(ready, versions.ready)
		err = mgr.Add(versions)
	}
	if err != nil {
		return nil, fmt.Errorf("start a manager: %w", err)
	}
	if err := listen(ctx, mgr, o, ready); err != nil {
		return nil, err
	}
	return mgr, Add(ctx, mgr, o)
}

// bare returns a manager without controllers, and the other checks that have to pass for it to be ready.
func (o Options) bare(ctx context.Context, scheme *runtime.Scheme) (ctrl.Manager, []func() error, error) {
	options := ctrl.Options{
		Scheme:    scheme,
		Logger:    o.Logger,
		Cache:     o.cache(),
		NewCache:  stoppableUntil(ctx),
		NewClient: newClient,
		// listen serves both.
		Metrics:                       server.Options{BindAddress: Off},
		HealthProbeBindAddress:        Off,
		LeaderElection:                o.LeaderElect,
		LeaderElectionID:              o.LeaderElectionID,
		LeaseDuration:                 &o.LeaseDuration,
		RenewDeadline:                 &o.RenewDeadline,
		RetryPeriod:                   &o.RetryPeriod,
		LeaderElectionReleaseOnCancel: true,
		GracefulShutdownTimeout:       new(drain),
		// Controllers of one name run several times in one process in tests and in the sandbox.
		Controller: config.Controller{SkipNameValidation: new(true)},
	}
	if !o.LeaderElect {
		mgr, err := ctrl.NewManager(o.Config, options)
		return mgr, nil, err
	}
	t, lock, err := o.elect()
	if err != nil {
		return nil, nil, err
	}
	options.LeaderElectionResourceLockInterface = lock
	cfg := rest.CopyConfig(o.Config)
	cfg.Wrap(t.guard)
	mgr, err := ctrl.NewManager(cfg, options)
	if err != nil {
		return nil, nil, err
	}
	lock.events.use(mgr, t.identity)
	return mgr, []func() error{t.ready}, mgr.Add(t)
}

// Add adds the controllers of o to an existing manager. It returns an error if there is no such controller, or if mgr
// cannot take it.
func Add(ctx context.Context, mgr ctrl.Manager, o Options) error {
	shared := sync.OnceValues(func() (*host.Environment, error) { //nolint:contextcheck // it lives as long as mgr
		return host.NewEnvironment(mgr, o.hosted())
	})
	for _, name := range o.Controllers {
		setup, ok := registry[name]
		if !ok {
			return unknown(name)
		}
		if err := setup(ctx, mgr, o, shared); err != nil {
			return fmt.Errorf("set up controller %s: %w", name, err)
		}
	}
	return nil
}

func unknown(name string) error {
	return fmt.Errorf("there is no controller %q; there are: %s", name, strings.Join(Names(), ", "))
}

// hosted are the options of what runs webhooks.
func (o Options) hosted() host.Options {
	return host.Options{
		Workers: o.Workers, TargetLabelSelector: o.TargetLabelSelector, AllowedAddresses: o.HookAllow, AllowAPIServers: o.HookAllowAPIServers,
		FieldManager: o.FieldManager, ProgressDeadline: o.ProgressDeadline, RollBack: inspect.RollBack,
		Namespace: o.Namespace,
		Named:     o.NamedAccounts,
	}
}

func (o Options) validate() error {
	if len(o.Controllers) == 0 {
		return fmt.Errorf("no controllers to run; there are: %s", strings.Join(Names(), ", "))
	}
	for _, name := range o.Controllers {
		if _, ok := registry[name]; !ok {
			return unknown(name)
		}
	}
	switch {
	case !o.LeaderElect:
		return nil
	case o.LeaderElectionID == "":
		return errors.New("leader election needs the name of a lease")
	case o.LeaderElectionNamespace == "":
		return errors.New("leader election needs the namespace of the lease: this process does not run in a pod, which would say it")
	default:
		return o.CheckTimes()
	}
}
