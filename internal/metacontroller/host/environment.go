package host

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/events"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

// This file holds what all hosted controllers of a manager share.

const (
	// defaultWorkers is how many parents a hosted controller works on at once, as Metacontroller does.
	defaultWorkers = 5
	// encoded bounds what is kept of objects as JSON, in bytes.
	encoded = 64 << 20
	// reporter is who sends events: dashboards and scripts ask for Metacontroller's.
	reporter = "metacontroller"
)

// Options tune what a manager hosts. The zero value is what a cluster should run.
type Options struct {
	// Workers is how many parents each hosted controller works on at once. Zero means 5.
	Workers int
	// TargetLabelSelector narrows the controllers that are run, by their labels. Nil selects all.
	TargetLabelSelector labels.Selector
	// FieldManager, unless it is empty, is the name under which children are applied by server-side apply.
	FieldManager string
	// AllowedAddresses are special addresses that hooks may have all the same, such as 127.0.0.1/32 for a sidecar.
	AllowedAddresses []netip.Prefix
	// AllowAPIServers lets hooks be served behind the API server's own address.
	AllowAPIServers bool
	// Namespace, unless it is empty, is the only one that is watched: for a manager that may not look at others. Resources
	// whose objects are in no namespace cannot be watched then.
	Namespace string
	// Metrics takes the metrics of hooks. Nil is controller-runtime's registry.
	Metrics prometheus.Registerer
	// Clock is for tests; nil means the system's.
	Clock clock.WithTicker
	// Cache, Config and Authority are for tests that have no API server. Nil means a cache of its own, the manager's config, and
	// what the API server says; with a cache that is given, which whoever made it runs, nobody is asked.
	Cache     cache.Cache
	Config    *rest.Config
	Authority Authority
}

// Environment is what all hosted controllers of a manager share. Make one with [NewEnvironment].
type Environment struct {
	// Cache holds unstructured objects of the kinds that are watched, and Metacontroller's own types. What it returns is not
	// copied and may not be changed. A kind is watched from the first GetInformer on, and as long as the context of some
	// GetInformer, [Environment.Index] or [Events] for it has not ended.
	Cache cache.Cache
	// Client writes. Do not read with it: some kinds come from a cache. Live reads from the API server.
	Client client.Client
	Live   client.Reader
	Mapper meta.RESTMapper
	// Authority says what is served and allowed. It may be nil, and then nobody is asked.
	Authority Authority
	// Recorder sends events about controllers and parents.
	Recorder events.EventRecorder
	Clock    clock.WithTicker
	// Encoder, Memory, Metrics, Guard and Secrets are those of all hooks.
	Encoder *hook.Encoder
	Memory  *hook.Memory
	Metrics *hook.Metrics
	Guard   *hook.Guard
	Secrets hook.Secrets
	// Compared is what children were compared with: see package children. Nil means that each controller has one of its own.
	Compared *apply.Memo
	// Transport, unless it is nil, carries the calls of hooks: see [hook.Options].
	Transport http.RoundTripper
	// Workers is how many parents each hosted controller works on at once.
	Workers int
	// Selector narrows the controllers that are run. Nil selects all.
	Selector labels.Selector
	// FieldManager, unless it is empty, is the name under which children are applied by server-side apply. Otherwise they are
	// merged as Metacontroller does by default.
	FieldManager string
}

// NewEnvironment returns the environment of what mgr hosts. The environments of one manager share their caches, so call it
// for each package that hosts controllers. It returns an error if mgr cannot take another cache, or if somebody else has
// taken the names of our metrics.
func NewEnvironment(mgr ctrl.Manager, o Options) (*Environment, error) {
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
	servers, err := apiServers(o.Config, os.Getenv)
	if err != nil {
		return nil, err
	}
	measured, err := hookMetrics(o.Metrics)
	if err != nil {
		return nil, err
	}
	common, err := commonsOf(mgr, o)
	if err != nil {
		return nil, err
	}
	return &Environment{
		Cache:        common.cache,
		Client:       common.client,
		Live:         common.live,
		Mapper:       common.cache.mapper,
		Authority:    common.cache.authority,
		Recorder:     common.recorder,
		Clock:        o.Clock,
		Encoder:      common.encoder,
		Memory:       common.memory,
		Compared:     common.compared,
		Metrics:      measured,
		Guard:        &hook.Guard{Allow: o.AllowedAddresses, APIServers: servers, AllowAPIServers: o.AllowAPIServers},
		Secrets:      common.secrets,
		Workers:      o.Workers,
		Selector:     o.TargetLabelSelector,
		FieldManager: o.FieldManager,
	}, nil
}

// commons are what the environments of one manager have in common: whoever decorates an object that somebody else composes
// watches the same kinds.
type commons struct {
	cache  *informers
	client client.Client
	live   client.Reader
	// recorder sends events.
	recorder events.EventRecorder
	secrets  *Secrets
	encoder  *hook.Encoder
	memory   *hook.Memory
	compared *apply.Memo
}

// managers holds the commons of each manager that hosts controllers, until it has ended.
var managers = struct {
	sync.Mutex
	commons map[ctrl.Manager]*commons
}{commons: map[ctrl.Manager]*commons{}}

func commonsOf(mgr ctrl.Manager, o Options) (*commons, error) {
	managers.Lock()
	defer managers.Unlock()
	if c := managers.commons[mgr]; c != nil {
		return c, nil
	}
	c := &commons{client: mgr.GetClient(), live: mgr.GetAPIReader()}
	kinds, err := c.informers(mgr, o)
	if err != nil {
		return nil, fmt.Errorf("make a cache for hosted controllers: %w", err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	secrets, err := NewSecrets(ctx, o.Config, o.Clock)
	if err != nil {
		cancel()
		return nil, err
	}
	kinds.ended = func() {
		cancel()
		managers.Lock()
		defer managers.Unlock()
		delete(managers.commons, mgr)
	}
	if err := mgr.Add(kinds); err != nil {
		return nil, fmt.Errorf("add a cache for hosted controllers: %w", err)
	}
	c.cache, c.secrets, c.encoder, c.memory = kinds, secrets, hook.NewEncoder(encoded), hook.NewMemory(hook.MostRemembered)
	c.compared = apply.NewMemo(apply.MemoBytes)
	managers.commons[mgr] = c
	return c, nil
}

// informers returns the cache. If it is not somebody else's, kinds may come and go, and client and reader can follow.
func (c *commons) informers(mgr ctrl.Manager, o Options) (*informers, error) {
	if o.Cache != nil {
		kinds, err := newInformers(mgr, o, mgr.GetRESTMapper())
		if err == nil {
			kinds.authority, c.recorder = o.Authority, mgr.GetEventRecorder(reporter)
		}
		return kinds, err
	}
	renewed, err := newRenewed(o.Config, mgr.GetHTTPClient(), mgr.GetScheme())
	if err != nil {
		return nil, err
	}
	asked, err := kubernetes.NewForConfigAndClient(o.Config, mgr.GetHTTPClient())
	if err != nil {
		return nil, err
	}
	kinds, err := newInformers(mgr, o, renewedMapper{renewed})
	if err != nil {
		return nil, err
	}
	kinds.authority, kinds.renew = server{asked}, renewed.renew
	recording := newRecording(asked.CoreV1(), mgr.GetLogger().WithName("events"))
	kinds.begun, kinds.over, c.recorder = recording.start, recording.stop, recording.recorder(mgr.GetScheme())
	c.client, c.live = renewedClient{renewed}, renewedClient{renewed}
	return kinds, nil
}

// registries holds the metrics of hooks by where they are registered: a process may run several managers.
var registries = struct {
	sync.Mutex
	metrics map[prometheus.Registerer]*hook.Metrics
}{metrics: map[prometheus.Registerer]*hook.Metrics{}}

func hookMetrics(r prometheus.Registerer) (*hook.Metrics, error) {
	registries.Lock()
	defer registries.Unlock()
	if m := registries.metrics[r]; m != nil {
		return m, nil
	}
	m, err := hook.NewMetrics(r)
	if err != nil {
		return nil, fmt.Errorf("register the metrics of hooks: %w", err)
	}
	registries.metrics[r] = m
	return m, nil
}

// apiServers returns host:port of the API server as we reach it, and as the pods of this cluster do.
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
