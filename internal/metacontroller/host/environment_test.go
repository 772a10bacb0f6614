package host

import (
	"net/netip"
	"slices"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/recorder"
)

// manager is the manager of an environment, which nothing is run in.
type manager struct {
	ctrl.Manager // nil: what is not below is not called
}

func (manager) GetConfig() *rest.Config                        { return &rest.Config{Host: "https://api.example.com"} }
func (manager) GetScheme() *runtime.Scheme                     { return runtime.NewScheme() }
func (manager) GetClient() client.Client                       { return nil }
func (manager) GetAPIReader() client.Reader                    { return nil }
func (manager) GetRESTMapper() meta.RESTMapper                 { return nil }
func (manager) GetEventRecorder(string) recorder.EventRecorder { return nil }
func (manager) Add(ctrlmanager.Runnable) error                 { return nil }

// foreign is a cache that the environment does not run.
type foreign struct{ cache.Cache }

func TestAPIServers(t *testing.T) {
	for name, c := range map[string]struct {
		config    rest.Config
		env, want []string
	}{
		"a name":          {config: rest.Config{Host: "https://api.example.com"}, want: []string{"api.example.com:443"}},
		"without TLS":     {config: rest.Config{Host: "http://api.example.com"}, want: []string{"api.example.com:80"}},
		"an address":      {config: rest.Config{Host: "https://127.0.0.1:6443/path"}, want: []string{"127.0.0.1:6443"}},
		"of version 6":    {config: rest.Config{Host: "https://[fd00::1]:6443"}, want: []string{"[fd00::1]:6443"}},
		"no scheme":       {config: rest.Config{Host: "10.0.0.1:6443", TLSClientConfig: rest.TLSClientConfig{Insecure: true}}, want: []string{"10.0.0.1:6443"}},
		"within a pod":    {config: rest.Config{Host: "https://10.0.0.1"}, env: []string{"10.96.0.1", "443"}, want: []string{"10.0.0.1:443", "10.96.0.1:443"}},
		"half of a pod's": {config: rest.Config{Host: "https://10.0.0.1"}, env: []string{"10.96.0.1", ""}, want: []string{"10.0.0.1:443"}},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := apiServers(&c.config, func(variable string) string {
				i := slices.Index([]string{"KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"}, variable)
				if len(c.env) == 0 || i < 0 {
					return ""
				}
				return c.env[i]
			})
			if err != nil || !slices.Equal(got, c.want) {
				t.Errorf("%q, %v", got, err)
			}
		})
	}
	if _, err := apiServers(&rest.Config{Host: "https://a b"}, func(string) string { return "" }); err == nil {
		t.Error("no error for no address")
	}
}

// TestEnvironment: what is given reaches those that share it.
func TestEnvironment(t *testing.T) {
	allowed := []netip.Prefix{netip.MustParsePrefix("127.0.0.1/32")}
	e, err := NewEnvironment(manager{}, Options{
		Cache: foreign{}, Metrics: prometheus.NewRegistry(), AllowedAddresses: allowed, AllowAPIServers: true,
	})
	if err != nil {
		t.Fatal(err)
	}
	if e.Workers != 5 || !slices.Equal(e.Guard.APIServers, []string{"api.example.com:443"}) || !e.Guard.AllowAPIServers ||
		!slices.Equal(e.Guard.Allow, allowed) || e.Compared == nil {
		t.Errorf("%+v", e)
	}
}

// TestEnvironmentsOfAProcess: a process may run several managers, and their hooks are counted together. A name that is
// taken by something else is an error.
func TestEnvironmentsOfAProcess(t *testing.T) {
	registry := prometheus.NewRegistry()
	for range 2 {
		if _, err := NewEnvironment(manager{}, Options{Cache: foreign{}, Metrics: registry}); err != nil {
			t.Fatal(err)
		}
	}
	registry = prometheus.NewRegistry()
	registry.MustRegister(prometheus.NewCounter(prometheus.CounterOpts{Name: "metacontroller_sync_requests_total", Help: "Something else."}))
	if _, err := NewEnvironment(manager{}, Options{Cache: foreign{}, Metrics: registry}); err == nil {
		t.Error("no error")
	}
}
