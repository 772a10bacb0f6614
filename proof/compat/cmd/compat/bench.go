package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/netip"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/client-go/tools/clientcmd"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/proof/compat"
	"github.com/cairn-dev/cairn/sandbox/install"
)

const (
	nodes    = 3
	patience = time.Minute // nothing here takes a tenth of that
	interval = 100 * time.Millisecond
)

// bench is a sandbox with the controller of a system.
type bench struct {
	client.Client
	out        io.Writer
	kubeconfig string
	files      string // a folder for the files of the controller's process
	port       int    // where the controller serves its webhooks
	processes  []*process
}

// run builds the system's controller, runs it, and tries its kinds one after the other. An error is a reason why it
// could not be tried; what is wrong with a kind is in its row.
func (s system) run(ctx context.Context, out io.Writer) ([]row, error) {
	published, err := compat.Dir(ctx, s.module)
	if err != nil {
		return nil, err
	}
	work, err := filepath.Abs(filepath.Join("bin", "compat", s.name))
	if err != nil {
		return nil, err
	}
	controller, err := s.build(ctx, out, published, work)
	if err != nil {
		return nil, err
	}
	files, err := os.MkdirTemp("", "compat-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(files)
	b := &bench{out: out, files: files}
	defer b.stop()
	if err := b.begin(ctx, work); err != nil {
		return nil, err
	}
	if err := b.install(ctx, filepath.Join(published, s.manifests)); err != nil {
		return nil, fmt.Errorf("install %s: %w", s.title, err)
	}
	if s.namespace != "" {
		if _, err := b.kubectl(ctx, "", "create", "namespace", s.namespace); err != nil {
			return nil, err
		}
	}
	how, err := s.start(b)
	if err != nil {
		return nil, err
	}
	if err := b.process(ctx, filepath.Join(work, "controller.log"), how, controller); err != nil {
		return nil, err
	}
	if err := b.mount(ctx, s.certificates); err != nil {
		return nil, err
	}
	var rows []row
	for _, k := range s.kinds {
		rows = append(rows, s.row(k, b.try(ctx, k)))
		if err := b.alive(ctx); err != nil {
			return nil, err
		}
	}
	return rows, nil
}

// build returns the file of the system's controller, which is built once. The module's go.mod decides, and is not
// touched in the module cache.
func (s system) build(ctx context.Context, out io.Writer, published, work string) (string, error) {
	file := filepath.Join(work, "controller-"+compat.Version(s.module))
	if _, err := os.Stat(file); err == nil {
		return file, nil
	}
	fmt.Fprintf(out, "compat: building %s: some minutes\n", s.title)
	source := filepath.Join(work, "source")
	if err := os.RemoveAll(source); err != nil {
		return "", err
	}
	if err := os.CopyFS(source, os.DirFS(published)); err != nil {
		return "", err
	}
	cmd := exec.CommandContext(ctx, "go", "build", "-o", file, s.main)
	cmd.Dir = source
	cmd.Env = append(os.Environ(), "GOWORK=off", "GOFLAGS=-mod=mod")
	cmd.Stdout, cmd.Stderr = out, out
	if err := cmd.Run(); err != nil {
		return "", fmt.Errorf("build %s in %s: %w", s.main, source, err)
	}
	return file, nil
}

// begin starts the sandbox, and returns when its API server answers.
func (b *bench) begin(ctx context.Context, work string) error {
	b.kubeconfig = filepath.Join(b.files, "kubeconfig")
	ports, err := free(1)
	if err != nil {
		return err
	}
	b.port = ports[0]
	how := command{args: []string{
		"--data-dir", filepath.Join(b.files, "data"), "--kubeconfig", b.kubeconfig, "--nodes", strconv.Itoa(nodes),
	}}
	if err := b.process(ctx, filepath.Join(work, "sandbox.log"), how, filepath.Join("bin", "cairn-sandbox")); err != nil {
		return err
	}
	return b.until(ctx, "all nodes of the sandbox are there", func() error {
		config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
		if err != nil {
			return err
		}
		if b.Client, err = client.New(config, client.Options{}); err != nil {
			return err
		}
		var list corev1.NodeList
		if err := b.List(ctx, &list); err != nil {
			return err
		}
		if len(list.Items) < nodes {
			return fmt.Errorf("there are %d of %d", len(list.Items), nodes)
		}
		return nil
	})
}

// install applies what the kustomization in the folder says, but for what would run the controller in a pod.
func (b *bench) install(ctx context.Context, folder string) error {
	text, err := b.kubectl(ctx, "", "kustomize", folder)
	if err != nil {
		return err
	}
	changed, err := outside(text, b.port)
	if err != nil {
		return err
	}
	config, err := clientcmd.BuildConfigFromFlags("", b.kubeconfig)
	if err != nil {
		return err
	}
	if err := install.Apply(ctx, config, changed); err != nil {
		return err
	}
	_, err = b.kubectl(ctx, "", "wait", "--for=condition=Established", "crd", "--all", "--timeout=60s")
	return err
}

// mount does what the kubelet does for a pod that mounts a Secret, as soon as its controller has filled it.
func (b *bench) mount(ctx context.Context, secret string) error {
	namespace, name, ok := strings.Cut(secret, "/")
	if !ok {
		return nil
	}
	var got corev1.Secret
	if err := b.until(ctx, "the controller has made its certificate", func() error {
		if err := b.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, &got); err != nil {
			return err
		}
		if len(got.Data[corev1.TLSCertKey]) == 0 {
			return fmt.Errorf("the Secret %s has no %s", secret, corev1.TLSCertKey)
		}
		return nil
	}); err != nil {
		return err
	}
	for file, data := range got.Data {
		if _, err := b.keep(file, data); err != nil {
			return err
		}
	}
	return nil
}

// keep writes a file for the controller's process.
func (b *bench) keep(name string, data []byte) (file string, err error) {
	file = filepath.Join(b.files, name)
	return file, os.WriteFile(file, data, 0o600)
}

// process is a program that runs until stop.
type process struct {
	cmd  *exec.Cmd
	log  string
	done chan struct{}
}

// process starts a program, which writes to a log.
func (b *bench) process(ctx context.Context, log string, how command, program string) error {
	if err := os.MkdirAll(filepath.Dir(log), 0o750); err != nil {
		return err
	}
	file, err := os.Create(log)
	if err != nil {
		return err
	}
	cmd := exec.CommandContext(context.WithoutCancel(ctx), program, how.args...)
	cmd.Env = append(append(os.Environ(), "KUBECONFIG="+b.kubeconfig), how.env...)
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return errors.Join(fmt.Errorf(`start %s ("make build" makes it): %w`, program, err), file.Close())
	}
	p := &process{cmd: cmd, log: log, done: make(chan struct{})}
	go func() {
		defer close(p.done)
		defer file.Close()
		_ = cmd.Wait() // that it has ended is what counts
	}()
	b.processes = append(b.processes, p)
	return nil
}

// alive returns an error if a process has ended.
func (b *bench) alive(ctx context.Context) error {
	if err := ctx.Err(); err != nil {
		return err
	}
	for _, p := range b.processes {
		select {
		case <-p.done:
			return fmt.Errorf("%s has ended; why is in %s", filepath.Base(p.cmd.Path), p.log)
		default:
		}
	}
	return nil
}

// stop ends the processes, the last one first, and waits for each.
func (b *bench) stop() {
	for _, p := range slices.Backward(b.processes) {
		_ = p.cmd.Process.Signal(os.Interrupt) // it may have ended
		select {
		case <-p.done:
		case <-time.After(20 * time.Second):
			_ = p.cmd.Process.Kill()
			<-p.done
		}
	}
}

// until asks until the answer is nil. The error says what did not become true, and the last answer.
func (b *bench) until(ctx context.Context, what string, ask func() error) error {
	deadline := time.After(patience)
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		last := ask()
		if last == nil {
			return nil
		}
		if err := b.alive(ctx); err != nil {
			return err
		}
		select {
		case <-ticker.C:
		case <-deadline:
			return fmt.Errorf("after %s it is not so that %s: %w", patience, what, last)
		}
	}
}

// kubectl runs kubectl with a file as its input, and returns what it prints. The error has what it complains about.
func (b *bench) kubectl(ctx context.Context, stdin string, args ...string) (string, error) {
	cmd := exec.CommandContext(ctx, filepath.Join("bin", "kubectl"), args...)
	cmd.Env = append(os.Environ(), "KUBECONFIG="+b.kubeconfig)
	cmd.Stdin = strings.NewReader(stdin)
	var complaint strings.Builder
	cmd.Stderr = &complaint
	raw, err := cmd.Output()
	if err != nil {
		err = fmt.Errorf("kubectl %s: %w: %s", args[0], err, strings.TrimSpace(complaint.String()))
	}
	return string(raw), err
}

// free returns ports of this host that nobody listens to.
func free(n int) (ports []int, err error) {
	var listeners []net.Listener
	defer func() {
		for _, l := range listeners {
			_ = l.Close() // nobody has connected
		}
	}()
	for range n {
		l, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // it is closed at once
		if err != nil {
			return nil, err
		}
		listeners = append(listeners, l)
		addr, err := netip.ParseAddrPort(l.Addr().String())
		if err != nil {
			return nil, err
		}
		ports = append(ports, int(addr.Port()))
	}
	return ports, nil
}
