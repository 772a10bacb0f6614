package manager

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"
)

// This file serves probes and metrics. controller-runtime can do so too, but does not say which port it got for port 0,
// and ten managers on one machine need different ports.

// headerTimeout bounds how long a client may take to send a request.
const headerTimeout = 10 * time.Second

// listen adds the servers. A port that is taken is an error here, before anything else starts. The manager is ready
// when its caches are filled and all other checks pass.
func listen(ctx context.Context, mgr ctrl.Manager, o Options, ready []func() error) error {
	probes := http.NewServeMux()
	for path, checker := range map[string]healthz.Checker{"/healthz": healthz.Ping, "/readyz": readiness(mgr.GetCache(), ready)} {
		handler := http.StripPrefix(path, &healthz.Handler{Checks: map[string]healthz.Checker{path[1:]: checker}})
		probes.Handle(path, handler)
		probes.Handle(path+"/", handler)
	}
	scrape := http.NewServeMux()
	scrape.Handle("/metrics", promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError}))
	return errors.Join(
		serve(ctx, mgr, o, "probes", o.HealthProbeBindAddress, probes),
		serve(ctx, mgr, o, "metrics", o.MetricsBindAddress, scrape),
		serve(ctx, mgr, o, "profiles", o.PprofBindAddress, profiles()),
	)
}

// profiles serves the profiles of the Go runtime.
func profiles() http.Handler {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/cmdline", pprof.Cmdline)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/symbol", pprof.Symbol)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	return mux
}

func serve(ctx context.Context, mgr ctrl.Manager, o Options, what, address string, handler http.Handler) error {
	if address == Off || address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve %s: %w; choose another address, or %q for none", what, err, Off)
	}
	o.Logger.Info("Listening", "for", what, "address", listener.Addr().String())
	return mgr.Add(&ctrlmanager.Server{
		Name:     what,
		Server:   &http.Server{Handler: handler, ReadHeaderTimeout: headerTimeout},
		Listener: listener,
	})
}

// readiness checks whether the caches have synced, and all other checks: a manager that waits for leadership is ready
// to take over; one that cannot list, or can never lead, is not.
func readiness(c cache.Cache, others []func() error) healthz.Checker {
	return func(req *http.Request) error {
		ctx, cancel := context.WithTimeout(req.Context(), time.Second)
		defer cancel()
		if !c.WaitForCacheSync(ctx) {
			return errors.New("the caches are not filled yet")
		}
		for _, other := range others {
			if err := other(); err != nil {
				return err
			}
		}
		return nil
	}
}
