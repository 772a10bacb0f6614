package host

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/internal/hosting"
	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
	"github.com/cairn-dev/cairn/internal/watching"
	"github.com/cairn-dev/cairn/pass"
)

// This file holds what all hosted controllers of a manager share.

const (
	// defaultWorkers is how many parents a hosted controller reconciles at once, as Metacontroller does.
	defaultWorkers = 5
	// encoded bounds what is kept of objects as JSON, in bytes.
	encoded = 64 << 20
	// reporter is the source of events, which dashboards and scripts filter by: Metacontroller's.
	reporter = "metacontroller"
)

// Options tune what a manager hosts. The zero value is what a cluster should run.
type Options struct {
	// Workers is how many parents each hosted controller reconciles at once. Zero means 5.
	Workers int
	// TargetLabelSelector narrows the controllers that are run, by their labels. Nil selects all.
	TargetLabelSelector labels.Selector
	// FieldManager, unless it is empty, is the name under which children are applied by server-side apply.
	FieldManager string
	// ProgressDeadline is after how long without progress a rollout has failed where nothing else says so. Zero means
	// never.
	ProgressDeadline time.Duration
	// RollBack rolls rollouts back that have exceeded it, where a parent asks for that. Nil rolls nothing back.
	RollBack pass.RollBack
	// AllowedAddresses are special addresses that hooks may have nevertheless, such as 127.0.0.1/32 for a sidecar.
	AllowedAddresses []netip.Prefix
	// AllowAPIServers lets hooks have the API server's own address.
	AllowAPIServers bool
	// Namespace, unless it is empty, is the only one that is watched: for a manager that may not look at others. Resources
	// whose objects are in no namespace cannot be watched then.
	Namespace string
	// Named runs only the controllers that name a ServiceAccount: see [Environment.For].
	Named bool
	// Metrics takes the metrics of hooks. Nil is controller-runtime's registry.
	Metrics prometheus.Registerer
	// Clock is for tests; nil means the system's.
	Clock clock.WithTicker
	// Cache, Config and Authority are for tests that have no API server. Nil means a cache of its own, the manager's
	// config, and the API server as the authority; a given cache is run by the caller, and then there is no authority
	// unless one is given.
	Cache     cache.Cache
	Config    *rest.Config
	Authority watching.Authority
}

// Environment is what all hosted controllers of a manager share. Make one with [NewEnvironment].
type Environment struct {
	// Host is what the hosting of controllers needs. Its recorder sends events about parents, too.
	*hosting.Host

	// Encoder, Memory, Metrics, Guard and Secrets are those of all hooks.
	Encoder *hook.Encoder
	Memory  *hook.Memory
	Metrics *hook.Metrics
	Guard   *hook.Guard
	Secrets hook.Secrets
	// Compared is what children were compared with: see package children. Nil means that each controller has one of its
	// own.
	Compared *apply.Memo
	// Transport, unless it is nil, carries the calls of hooks: see [hook.Options].
	Transport http.RoundTripper
	// Selector narrows the controllers that are run. Nil selects all.
	Selector labels.Selector
	// FieldManager, unless it is empty, is the name under which children are applied by server-side apply. Otherwise they
	// are merged as Metacontroller does by default.
	FieldManager string
	// ProgressDeadline is after how long without progress a rollout has failed where nothing else says so. Zero means
	// never.
	ProgressDeadline time.Duration
	// RollBack rolls rollouts back that have exceeded it, where a parent asks for that. Nil rolls nothing back.
	RollBack pass.RollBack

	// accounts are the environments of those that name a ServiceAccount, nil with a cache that is the caller's. named says
	// that no others are run.
	accounts *accounts
	named    bool
}

// NewEnvironment returns the environment of what mgr hosts. Make one for a manager, and give it to all that hosts
// controllers: a decorator and a composite of the same objects watch the same kinds. It returns an error if mgr cannot
// take another cache, or if the names of our metrics are taken.
func NewEnvironment(mgr ctrl.Manager, o Options) (*Environment, error) {
	o.setDefaults(mgr)
	servers, err := apiServers(o.Config, os.Getenv)
	if err != nil {
		return nil, err
	}
	e := &Environment{
		Host:         &hosting.Host{Workers: o.Workers},
		Encoder:      hook.NewEncoder(encoded),
		Memory:       hook.NewMemory(hook.MostRemembered),
		Compared:     apply.NewMemo(apply.MemoBytes),
		Guard:        &hook.Guard{Allow: o.AllowedAddresses, APIServers: servers, AllowAPIServers: o.AllowAPIServers},
		Selector:     o.TargetLabelSelector,
		FieldManager: o.FieldManager, ProgressDeadline: o.ProgressDeadline, RollBack: o.RollBack,
		named: o.Named,
	}
	if e.Metrics, err = hook.NewMetrics(o.Metrics); err != nil {
		return nil, fmt.Errorf("register the metrics of hooks: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	if err := e.connect(ctx, mgr, o, cancel); err != nil {
		cancel()
		return nil, err
	}
	return e, nil
}

func (o *Options) setDefaults(mgr ctrl.Manager) {
	if o.Config == nil {
		o.Config = mgr.GetConfig()
	}
	if o.Clock == nil {
		o.Clock = clock.RealClock{}
	}
	if o.Workers == 0 {
		o.Workers = defaultWorkers
	}
	if o.Metrics == nil {
		o.Metrics = metrics.Registry
	}
}

// connect has mgr watch the API server, and send events for as long as it does. over is called after that. Secrets are
// read until ctx ends.
func (e *Environment) connect(ctx context.Context, mgr ctrl.Manager, o Options, over func()) (err error) {
	watched, err := hook.NewWatchedSecrets(ctx, o.Config, o.Clock)
	if err != nil {
		return err
	}
	e.Secrets = watched
	w := watching.Options{
		Config: o.Config, Clock: o.Clock, Authority: o.Authority, Namespace: o.Namespace, Cache: o.Cache,
		Begun: func() error { return nil }, Over: over,
	}
	if o.Cache != nil {
		e.Recorder = mgr.GetEventRecorder(reporter)
		e.Server, err = watching.New(mgr, w)
		return err
	}
	asked, err := kubernetes.NewForConfigAndClient(o.Config, mgr.GetHTTPClient())
	if err != nil {
		return err
	}
	e.accounts = &accounts{
		config: o.Config, namespace: o.Namespace, watched: watched, life: ctx, open: map[types.NamespacedName]*account{},
	}
	found := &endpoints{get: asked.DiscoveryV1().EndpointSlices(metav1.NamespaceDefault).Get, clock: o.Clock}
	e.Guard.Endpoints = found.list
	recording := newRecording(asked.CoreV1(), mgr.GetLogger().WithName("events"))
	e.Recorder = recording.recorder(mgr.GetScheme())
	w.Authority, w.Begun = watching.AuthorityOf(asked), recording.start
	w.Over = func() { recording.stop(); over() }
	e.Server, err = watching.New(mgr, w)
	return err
}

// apiServers returns host:port of the API server as this process reaches it, and as the pods of this cluster do.
func apiServers(config *rest.Config, env func(string) string) ([]string, error) {
	u, _, err := rest.DefaultServerUrlFor(config)
	if err != nil {
		return nil, fmt.Errorf("the API server's address: %w", err)
	}
	port := u.Port()
	switch {
	case port != "":
	case u.Scheme == "http":
		port = "80"
	default:
		port = "443"
	}
	servers := []string{net.JoinHostPort(u.Hostname(), port)}
	if host, port := env("KUBERNETES_SERVICE_HOST"), env("KUBERNETES_SERVICE_PORT"); host != "" && port != "" {
		servers = append(servers, net.JoinHostPort(host, port))
	}
	return servers, nil
}
