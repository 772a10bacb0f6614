package sandbox

// This file runs kube-apiserver.

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"strconv"
	"syscall"
	"time"

	"github.com/spf13/pflag"
	utilerrors "k8s.io/apimachinery/pkg/util/errors"
	"k8s.io/kube-aggregator/pkg/apiserver"
	"k8s.io/kubernetes/cmd/kube-apiserver/app"
	"k8s.io/kubernetes/cmd/kube-apiserver/app/options"
)

const (
	// serviceRange holds the addresses of Services. No packet ever goes there.
	serviceRange = "10.96.0.0/16"
	apiServiceIP = "10.96.0.1"
	issuer       = "https://kubernetes.default.svc.cluster.local"

	// drainTimeout is how long requests that are not watches may take to finish once the server has been told to stop.
	drainTimeout = 500 * time.Millisecond
)

// listenAPI takes the port. A port that is taken is reported here, before anything is started.
func listenAPI(ctx context.Context, port int) (*trackedListener, error) {
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
	if errors.Is(err, syscall.EADDRINUSE) {
		return nil, fmt.Errorf("%w: 127.0.0.1:%d; choose another port, or 0 for any free one", ErrPortInUse, port)
	}
	if err != nil {
		return nil, fmt.Errorf("listen on 127.0.0.1:%d: %w", port, err)
	}
	bound, err := netip.ParseAddrPort(l.Addr().String())
	if err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return &trackedListener{Listener: l, port: int(bound.Port())}, nil
}

// apiServer is a kube-apiserver that does not run yet.
type apiServer interface {
	// run serves until ctx is done and every connection is closed.
	run(ctx context.Context) error
	// abandon gives the port up, if it is not to run.
	abandon() error
}

// newAPIServer builds a server. It owns the listener from here on, and closes it if there is an error.
func (s *Sandbox) newAPIServer(ctx context.Context, listener *trackedListener) (apiServer, error) {
	if s.options.Binaries != "" {
		return &programServer{sandbox: s, listener: listener}, nil
	}
	server, err := embedAPIServer(ctx, listener, s.apiServerFlags(), s.options.Requests)
	if err != nil {
		_ = listener.Close()
		return nil, err
	}
	return server, nil
}

// apiServerFlags are those of the server, but for its port.
func (s *Sandbox) apiServerFlags() []string {
	keys := s.pki
	return []string{
		"--etcd-servers=" + s.etcd.endpoint,
		"--feature-gates=" + s.options.FeatureGates,
		"--bind-address=127.0.0.1",
		"--tls-cert-file=" + keys.serverCert(),
		"--tls-private-key-file=" + keys.serverKey(),
		"--client-ca-file=" + keys.caFile(),
		"--anonymous-auth=false",
		"--authorization-mode=Node,RBAC",
		// In addition to the default plugins: whoever sets blockOwnerDeletion must be allowed to finalize the owner.
		"--enable-admission-plugins=OwnerReferencesPermissionEnforcement",
		"--allow-privileged=true",
		"--service-account-issuer=" + issuer,
		"--service-account-key-file=" + keys.saKeyFile(),
		"--service-account-signing-key-file=" + keys.saKeyFile(),
		"--service-cluster-ip-range=" + serviceRange,
		// The endpoint of the kubernetes service may not be a loopback address, and nothing in a simulated pod dials it.
		"--endpoint-reconciler-type=none",
		"--profiling=false",
	}
}

// embeddedServer is a kube-apiserver in this process.
type embeddedServer struct {
	listener *trackedListener
	chain    *apiserver.APIAggregator
}

// embedAPIServer builds one. requests may be nil.
func embedAPIServer(
	ctx context.Context, listener *trackedListener, arguments []string, requests func(Request),
) (*embeddedServer, error) {
	o := options.NewServerRunOptions()
	flags := pflag.NewFlagSet(apiServerProgram, pflag.ContinueOnError)
	for _, set := range o.Flags().FlagSets {
		flags.AddFlagSet(set)
	}
	if err := flags.Parse(arguments); err != nil {
		return nil, fmt.Errorf("kube-apiserver flags: %w", err)
	}
	o.SecureServing.Listener = listener
	o.SecureServing.BindPort = listener.port
	if err := o.GenericServerRunOptions.ComponentGlobalsRegistry.Set(); err != nil {
		return nil, fmt.Errorf("kube-apiserver feature gates: %w", err)
	}
	completed, err := o.Complete(ctx)
	if err != nil {
		return nil, fmt.Errorf("kube-apiserver options: %w", err)
	}
	if errs := completed.Validate(); len(errs) > 0 {
		return nil, fmt.Errorf("kube-apiserver options: %w", utilerrors.NewAggregate(errs))
	}
	config, err := app.NewConfig(completed)
	if err != nil {
		return nil, fmt.Errorf("configure kube-apiserver: %w", err)
	}
	if requests != nil { // the aggregator is the outermost of the servers in the chain: all requests come to it
		config.Aggregator.GenericConfig.AuditBackend = requestLog(requests)
		config.Aggregator.GenericConfig.AuditPolicyRuleEvaluator = requestLog(requests)
	}
	ready, err := config.Complete()
	if err != nil {
		return nil, fmt.Errorf("configure kube-apiserver: %w", err)
	}
	chain, err := app.CreateServerChain(ready)
	if err != nil {
		return nil, fmt.Errorf("build kube-apiserver: %w", err)
	}
	// The default is the request timeout, a minute: an HTTP server that shuts down waits for its watches, and they end
	// when the client does.
	chain.GenericAPIServer.ShutdownTimeout = drainTimeout
	return &embeddedServer{listener: listener, chain: chain}, nil
}

// abandon gives the port up.
func (a *embeddedServer) abandon() error { return a.listener.Close() }

// run serves until ctx is done and every connection is closed.
func (a *embeddedServer) run(ctx context.Context) error {
	prepared, err := a.chain.PrepareRun()
	if err != nil {
		return fmt.Errorf("prepare kube-apiserver: %w", err)
	}
	// A handler that hangs, in an admission webhook say, would hold up the end as well. Its request ends with its
	// connection.
	stopClosing := context.AfterFunc(ctx, func() {
		time.AfterFunc(drainTimeout, a.listener.closeConnections)
	})
	defer stopClosing()
	err = prepared.Run(ctx)
	a.listener.closeConnections()
	return err
}
