package sandbox

// This file runs kube-apiserver, kube-controller-manager and kube-scheduler of another version of Kubernetes, as
// programs (Options.Binaries). What they are told is what the parts of this process are told; etcd and the simulated
// kubelets are of this process.

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"

	"k8s.io/apiserver/pkg/apis/audit"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/rest"
)

// The programs in Options.Binaries.
const (
	apiServerProgram         = "kube-apiserver"
	controllerManagerProgram = "kube-controller-manager"
	schedulerProgram         = "kube-scheduler"
)

// program runs one until ctx is done or it ends. What it prints on its standard output goes to lines, the rest to the
// log.
func (s *Sandbox) program(ctx context.Context, name string, lines *lineWriter, args ...string) error {
	cmd := exec.CommandContext(ctx, filepath.Join(s.options.Binaries, name), args...)
	cmd.Stderr = &sink
	if lines != nil {
		cmd.Stdout = lines
	}
	cmd.Cancel = func() error { return cmd.Process.Signal(syscall.SIGTERM) }
	cmd.WaitDelay = drainTimeout            // an API server waits for its watches, which end when the client does
	if err := cmd.Run(); ctx.Err() == nil { // to end by a signal counts as an error
		return err
	}
	return nil
}

// lineWriter hands each whole line to a function.
type lineWriter struct {
	begun []byte // of a line
	line  func([]byte)
}

// Write is io.Writer's.
func (w *lineWriter) Write(p []byte) (int, error) {
	w.begun = append(w.begun, p...)
	for {
		line, after, whole := bytes.Cut(w.begun, []byte("\n"))
		if !whole {
			return len(p), nil
		}
		w.line(line)
		w.begun = after
	}
}

// auditPolicy asks for what requestLog asks for.
const auditPolicy = `{"apiVersion": "audit.k8s.io/v1", "kind": "Policy",
"rules": [{"level": "Metadata", "omitStages": ["RequestReceived"]}]}`

// programServer is a kube-apiserver that is a program.
type programServer struct {
	sandbox  *Sandbox
	listener *trackedListener
}

// run gives the port to the program and runs it.
func (p *programServer) run(ctx context.Context) error {
	s := p.sandbox
	args := append(s.apiServerFlags(), "--secure-port="+strconv.Itoa(p.listener.port))
	var lines *lineWriter
	if s.options.Requests != nil {
		policy := filepath.Join(s.data.path, "audit-policy.json")
		if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
			return err
		}
		args = append(args, "--audit-policy-file="+policy, "--audit-log-path=-")
		lines = &lineWriter{line: s.audited}
	}
	if err := p.abandon(); err != nil {
		return err
	}
	return s.program(ctx, apiServerProgram, lines, args...)
}

// abandon gives the port up.
func (p *programServer) abandon() error { return p.listener.Close() }

// audited hands out a request that the program wrote down. What is no event is an error of this package: it is logged.
func (s *Sandbox) audited(line []byte) {
	var published auditv1.Event
	var event audit.Event
	err := json.Unmarshal(line, &published)
	if err == nil {
		err = auditv1.Convert_v1_Event_To_audit_Event(&published, &event, nil)
	}
	if err != nil {
		_, _ = fmt.Fprintf(&sink, "E the audit of %s: %v: %s\n", apiServerProgram, err, line)
		return
	}
	requestLog(s.options.Requests).ProcessEvents(&event)
}

// runControllersProgram runs the controllers that a kube-controller-manager has, but for those that the sandbox has
// none of. Each has its own identity and rights.
func (s *Sandbox) runControllersProgram(ctx context.Context) error {
	file := filepath.Join(s.options.Binaries, controllerManagerProgram)
	help, err := exec.CommandContext(ctx, file, "--help").Output()
	if err != nil {
		return fmt.Errorf("%s --help: %w", controllerManagerProgram, err)
	}
	args := s.controllerFlags(func(name string) bool { return strings.Contains(string(help), name) })
	return s.program(ctx, controllerManagerProgram, nil, append(args,
		"--use-service-account-credentials=true", "--service-account-private-key-file="+s.pki.saKeyFile(),
		"--kube-api-qps=10000", "--kube-api-burst=10000", "--feature-gates="+s.options.FeatureGates)...)
}

// runSchedulerProgram runs the scheduler.
func (s *Sandbox) runSchedulerProgram(ctx context.Context, kubeconfig string) error {
	var args []string
	for _, f := range schedulerFlags(kubeconfig) {
		args = append(args, "--"+f.name+"="+f.value)
	}
	return s.program(ctx, schedulerProgram, nil, args...)
}

// runUpstreamProgram is RunUpstreamWith: a kube-controller-manager that runs the one controller. Its requests go
// through a proxy on the loopback interface, and from there through the transport of cfg.
func (s *Sandbox) runUpstreamProgram(ctx context.Context, kind string, cfg *rest.Config) (stop func(), err error) {
	proxy, err := newProxy(ctx, cfg, kind+"s")
	if err != nil {
		return nil, err
	}
	name := "the upstream controller for " + kind
	kubeconfig, err := s.privateKubeconfig(kind+"-"+proxy.port, &rest.Config{Host: "http://127.0.0.1:" + proxy.port})
	if err != nil {
		proxy.close()
		return nil, err
	}
	c, err := s.launch(ctx, name, func(ctx context.Context) error {
		defer proxy.close()
		return s.program(ctx, controllerManagerProgram, nil, "--kubeconfig="+kubeconfig, "--controllers="+upstreamControllers[kind].name,
			"--leader-elect=false", "--secure-port=0", "--kube-api-qps=10000", "--kube-api-burst=10000")
	})
	if err != nil {
		proxy.close()
		return nil, err
	}
	stop = func() {
		c.cancel()
		<-c.done
	}
	select {
	case <-proxy.watched:
		return stop, nil
	case <-c.done:
	case <-ctx.Done():
	}
	stop()
	return nil, fmt.Errorf("start %s: it has watched nothing", name)
}

// proxy hands requests on.
type proxy struct {
	server  *http.Server
	port    string
	watched chan struct{} // closed when the first watch of the resource has begun
}

// Forward returns a handler that hands requests on to the API server of cfg, through its transport: with the
// credentials of cfg, for a program that is to have them, and whatever else cfg wraps requests in. Who asks is not
// looked at, so that it is for the loopback interface only. The error says what in cfg cannot be used.
func Forward(cfg *rest.Config) (*httputil.ReverseProxy, error) {
	target, err := url.Parse(cfg.Host)
	if err != nil {
		return nil, err
	}
	transport, err := rest.TransportFor(cfg)
	if err != nil {
		return nil, err
	}
	return &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(target) },
		Transport:     transport,
		FlushInterval: -1, // each event of a watch at once
	}, nil
}

// newProxy serves on a free port of the loopback interface, without TLS, whoever asks.
func newProxy(ctx context.Context, cfg *rest.Config, resource string) (*proxy, error) {
	forward, err := Forward(cfg)
	if err != nil {
		return nil, err
	}
	l, err := new(net.ListenConfig).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	_, port, err := net.SplitHostPort(l.Addr().String())
	if err != nil {
		return nil, err
	}
	p := &proxy{port: port, watched: make(chan struct{})}
	begun := sync.OnceFunc(func() { close(p.watched) })
	forward.ModifyResponse = func(r *http.Response) error {
		u := r.Request.URL
		if r.StatusCode == http.StatusOK && strings.HasSuffix(u.Path, "/"+resource) && u.Query().Has("watch") {
			begun()
		}
		return nil
	}
	p.server = &http.Server{ReadHeaderTimeout: time.Minute, Handler: forward}
	go func() { _ = p.server.Serve(l) }()
	return p, nil
}

// close ends all requests.
func (p *proxy) close() { _ = p.server.Close() }
