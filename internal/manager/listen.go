package manager

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/http/pprof"
	"time"

	"github.com/prometheus/client_golang/prometheus/promhttp"
	"k8s.io/utils/clock"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/healthz"
	ctrlmanager "sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/metrics"

	"github.com/cairn-dev/cairn/internal/manager/scrape"
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
	return errors.Join(
		serve(ctx, mgr, o, "probes", o.HealthProbeBindAddress, probes, nil),
		serveMetrics(ctx, mgr, o),
		serve(ctx, mgr, o, "profiles", o.PprofBindAddress, profiles(), nil),
	)
}

// serveMetrics serves them to everybody, or over TLS to those whom the API server lets. Who waits for the lease asks
// it, too: the client is not the one that writes only with the lease.
func serveMetrics(ctx context.Context, mgr ctrl.Manager, o Options) error {
	handler := promhttp.HandlerFor(metrics.Registry, promhttp.HandlerOpts{ErrorHandling: promhttp.HTTPErrorOnError})
	var secure *tls.Config
	if o.MetricsSecure && o.MetricsBindAddress != Off && o.MetricsBindAddress != "" {
		guard, err := scrape.New(o.Config, clock.RealClock{})
		if err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
		cfg, watch, err := scrape.TLS(o.MetricsCertDir)
		if err != nil {
			return fmt.Errorf("serve metrics: %w", err)
		}
		if watch != nil {
			if err := mgr.Add(watch); err != nil {
				return fmt.Errorf("serve metrics: %w", err)
			}
		}
		handler, secure = guard.Handler(handler), cfg
	}
	mux := http.NewServeMux()
	mux.Handle("/metrics", handler)
	return serve(ctx, mgr, o, "metrics", o.MetricsBindAddress, mux, secure)
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

// serve serves over TLS if secure is not nil.
func serve(ctx context.Context, mgr ctrl.Manager, o Options, what, address string, handler http.Handler, secure *tls.Config) error {
	if address == Off || address == "" {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", address)
	if err != nil {
		return fmt.Errorf("serve %s: %w; choose another address, or %q for none", what, err, Off)
	}
	o.Logger.Info("Listening", "for", what, "address", listener.Addr().String(), "tls", secure != nil)
	if secure != nil {
		listener = tls.NewListener(listener, secure)
	}
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
