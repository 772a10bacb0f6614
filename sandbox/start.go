package sandbox

// This file starts a sandbox, and knows when it is ready.

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
)

// pollInterval is the pause between two looks at a condition of the start. A look costs well under a millisecond.
const pollInterval = 20 * time.Millisecond

// Sandbox is a running control plane with simulated nodes. Its methods may be called from several goroutines.
type Sandbox struct {
	options  Options
	data     *dataDir
	pki      *pki
	addr     string // host:port of the API server
	admin    *rest.Config
	file     *kubeconfigFile
	etcd     *etcdServer
	closeLog func() error

	// mu also guards what is written to data and file, for Abandon.
	mu       sync.Mutex
	stopping bool
	api      *component
	clients  []*component // everything that talks to the API server
	cause    error        // why the sandbox ends, when not because Stop was called
	failed   chan struct{}

	restarting sync.Mutex // held by whoever takes the API server away for a while

	stopOnce sync.Once
	stopErr  error
	stopped  chan struct{}
}

// DataDir returns the directory that holds the sandbox's state. Stop removes it when it is a temporary one.
func (s *Sandbox) DataDir() string { return s.data.path }

// running is the process's sandbox. There is one at a time.
var running atomic.Pointer[Sandbox]

// Start runs a control plane in this process and returns when it is ready: the API server says so, the default
// namespace and its service account exist, and the simulated nodes are Ready and take pods. It takes a few seconds.
//
// The sandbox stops when lifetime is done, when Stop is called or when one of its parts fails; Done tells. Errors of
// Start wrap one of the package's error values where a caller can do something about them, and leave nothing behind.
func Start(lifetime context.Context, o Options) (_ *Sandbox, err error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	ctx, cancel := context.WithCancelCause(lifetime)
	defer cancel(nil)
	s := &Sandbox{options: o, failed: make(chan struct{}), stopped: make(chan struct{})}
	if !running.CompareAndSwap(nil, s) {
		return nil, ErrAlreadyRunning
	}
	defer func() {
		if err != nil {
			// What a component reported explains more than "context canceled" does.
			if lifetime.Err() != nil {
				err = fmt.Errorf("start: %w", context.Cause(lifetime))
			} else if cause := s.failure(); cause != nil {
				err = cause
			}
			_ = s.Stop(context.WithoutCancel(ctx))
		}
	}()
	go func() {
		select {
		case <-s.failed:
			cancel(s.failure())
		case <-ctx.Done():
		}
	}()

	listener, err := s.open(ctx)
	if err != nil {
		return nil, err
	}
	o.progress("etcd")
	if s.etcd, err = startEtcd(ctx, s.data); err != nil {
		_ = listener.Close()
		return nil, err
	}
	o.progress("kube-apiserver")
	server, err := s.newAPIServer(ctx, listener)
	if err != nil {
		return nil, err
	}
	s.api = startComponent(context.WithoutCancel(ctx), "kube-apiserver", server.run, s.fail)
	if err := s.startClients(ctx); err != nil {
		return nil, err
	}
	if err := s.startManager(ctx); err != nil {
		return nil, err
	}
	go s.stopWhen(lifetime)
	return s, nil
}

// open does all that can be refused before anything runs: the data directory, the port, the files.
func (s *Sandbox) open(ctx context.Context) (_ *trackedListener, err error) {
	data, err := openDataDir(s.options.DataDir)
	if err != nil {
		return nil, err
	}
	s.mu.Lock()
	s.data = data
	s.mu.Unlock()
	if err := s.openLog(); err != nil {
		return nil, err
	}
	if s.pki, err = openPKI(s.data.pki()); err != nil {
		return nil, err
	}
	listener, err := listenAPI(ctx, s.options.Port)
	if err != nil {
		return nil, err
	}
	s.addr = listener.Addr().String()
	if err := s.writeKubeconfig(); err != nil {
		_ = listener.Close()
		return nil, err
	}
	return listener, nil
}

// writeKubeconfig makes the administrator's credentials, and writes them to the file that users read.
func (s *Sandbox) writeKubeconfig() (err error) {
	if s.admin, err = s.ConfigFor(adminUser, mastersName); err != nil {
		return err
	}
	s.admin.UserAgent = ""
	path := s.options.Kubeconfig
	if path == "" {
		path = s.data.kubeconfig()
	}
	file, err := takeKubeconfig(path, s.admin)
	s.mu.Lock()
	s.file = file
	s.mu.Unlock()
	return err
}

func (s *Sandbox) openLog() error {
	takeOverLogging()
	w := s.options.Log
	if w == nil {
		f, err := openLog(s.data.log())
		if err != nil {
			return fmt.Errorf("%w: %w", ErrDataDirUnusable, err)
		}
		w, s.closeLog = f, f.Close
	}
	sink.redirect(w)
	fatal := func(code int) {
		s.fail(fmt.Errorf("a component gave up with exit code %d; its last words: %s", code, sink.complaint()))
	}
	onFatal.Store(&fatal)
	return nil
}

// startClients starts everything that talks to the API server, and waits for the cluster to be ready.
func (s *Sandbox) startClients(ctx context.Context) error {
	client, err := kubernetes.NewForConfig(s.admin)
	if err != nil {
		return err
	}
	// The controllers get 403 until the API server has written the default roles, and then wait longer and longer before
	// they try again. So they start as soon as it has, and no earlier.
	if err := poll(ctx, "kube-apiserver to be ready", func(ctx context.Context) error {
		return client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	}); err != nil {
		return err
	}
	if err := createStorageClass(ctx, client); err != nil {
		return err
	}
	s.options.progress("controllers, scheduler, nodes")
	for _, c := range []struct {
		name string
		run  func(context.Context) error
	}{
		{"kube-controller-manager", s.runControllers},
		{schedulerName, s.runScheduler},
		{"the simulated kubelets", s.runKubelets},
		{"the simulated volumes", s.runVolumes},
	} {
		if _, err := s.launch(context.WithoutCancel(ctx), c.name, c.run); err != nil {
			return err
		}
	}
	if err := s.firstNodes(ctx); err != nil {
		return err
	}
	for _, kind := range s.options.upstreamKinds() {
		if _, err := s.RunUpstream(context.WithoutCancel(ctx), kind); err != nil {
			return err
		}
	}
	if err := poll(ctx, "the default service account", func(ctx context.Context) error {
		_, err := client.CoreV1().ServiceAccounts(metav1.NamespaceDefault).Get(ctx, "default", metav1.GetOptions{})
		return err
	}); err != nil {
		return err
	}
	return s.waitForNodes(ctx, client)
}

// startManager runs the caller's manager, if there is one.
func (s *Sandbox) startManager(ctx context.Context) error {
	if s.options.Manager == nil {
		return nil
	}
	s.options.progress("manager")
	_, err := s.launch(context.WithoutCancel(ctx), "the manager", func(ctx context.Context) error {
		return s.options.Manager(ctx, s.Config())
	})
	return err
}

// waitForNodes waits until every node is Ready and takes pods.
func (s *Sandbox) waitForNodes(ctx context.Context, client kubernetes.Interface) error {
	return poll(ctx, "the nodes to be ready", func(ctx context.Context) error {
		nodes, err := client.CoreV1().Nodes().List(ctx, metav1.ListOptions{})
		if err != nil {
			return err
		}
		for _, node := range nodes.Items {
			if !usable(&node) {
				return fmt.Errorf("node %s is not ready", node.Name)
			}
		}
		return nil
	})
}

// usable tells whether pods can be scheduled to the node, or it was made unusable on purpose.
func usable(node *corev1.Node) bool {
	if node.Spec.Unschedulable || node.Annotations[ReadyAnnotation] == "false" {
		return true
	}
	for _, taint := range node.Spec.Taints {
		if taint.Key == corev1.TaintNodeNotReady {
			return false
		}
	}
	for _, c := range node.Status.Conditions {
		if c.Type == corev1.NodeReady {
			return c.Status == corev1.ConditionTrue
		}
	}
	return false
}

// launch starts a component that talks to the API server.
func (s *Sandbox) launch(ctx context.Context, name string, run func(context.Context) error) (*component, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stopping {
		return nil, ErrStopped
	}
	c := startComponent(ctx, name, run, s.fail)
	s.clients = append(s.clients, c)
	return c, nil
}

// poll calls check until it succeeds or ctx is done.
func poll(ctx context.Context, what string, check func(context.Context) error) error {
	var last error
	err := wait.PollUntilContextCancel(ctx, pollInterval, true, func(ctx context.Context) (bool, error) {
		last = check(ctx)
		return last == nil, nil
	})
	if err == nil {
		return nil
	}
	if cause := context.Cause(ctx); cause != nil {
		err = cause
	}
	if last != nil && !errors.Is(last, context.Canceled) && !apierrors.IsNotFound(last) {
		return fmt.Errorf("wait for %s: %w (last: %w)", what, err, last)
	}
	return fmt.Errorf("wait for %s: %w", what, err)
}
