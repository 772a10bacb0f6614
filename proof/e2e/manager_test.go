package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	coordinationv1 "k8s.io/api/coordination/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
	"k8s.io/utils/ptr"

	"github.com/cairn-dev/cairn/deploy"
	"github.com/cairn-dev/cairn/sandbox/install"
)

// This file runs the manager as its users do: the binary, with the token of its service account, several at a time.

// process is a running `cairn manager`.
type process struct {
	cmd *exec.Cmd
	// addresses are where it serves metrics and probes, as it says in its log.
	addresses map[string]string
	mu        sync.Mutex
	log       strings.Builder
}

// manager starts the binary with the rights of the shipped roles and waits until it says where it listens.
func (e *env) manager(root, kubeconfig string, flags ...string) *process {
	e.Helper()
	p := &process{addresses: map[string]string{}}
	p.cmd = exec.Command(filepath.Join(root, "bin", "cairn"), append([]string{
		"manager",
		"--controllers=daemonset", "--kubeconfig=" + kubeconfig, "--log-format=json",
		"--metrics-bind-address=127.0.0.1:0", "--health-probe-bind-address=127.0.0.1:0",
	}, flags...)...)
	stderr, err := p.cmd.StderrPipe()
	if err != nil {
		e.Fatal(err)
	}
	must(e, p.cmd.Start())
	e.Cleanup(func() { _ = p.cmd.Process.Kill() })
	go p.follow(stderr)
	e.eventually("wait until the manager says where it listens", func() error {
		if p.address("metrics") == "" || p.address("probes") == "" {
			return fmt.Errorf("its log: %s", p.text())
		}
		return nil
	})
	return p
}

// follow reads the log and picks the addresses out of it.
func (p *process) follow(log io.Reader) {
	lines := bufio.NewScanner(log)
	for lines.Scan() {
		var entry struct{ For, Address string }
		_ = json.Unmarshal(lines.Bytes(), &entry) // a line that is no JSON is kept as text
		p.mu.Lock()
		p.log.WriteString(lines.Text() + "\n")
		if entry.For != "" {
			p.addresses[entry.For] = entry.Address
		}
		p.mu.Unlock()
	}
}

func (p *process) address(name string) string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.addresses[name]
}

func (p *process) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.log.String()
}

// get fetches a page that must be there.
func (e *env) get(url string) string {
	e.Helper()
	var body string
	e.eventually("get "+url, func() error {
		resp, err := http.Get(url)
		if err != nil {
			return err
		}
		defer func() { _ = resp.Body.Close() }()
		b, err := io.ReadAll(resp.Body)
		if err != nil || resp.StatusCode != http.StatusOK {
			return fmt.Errorf("%s %s %w", resp.Status, b, err)
		}
		body = string(b)
		return nil
	})
	return body
}

// installed builds the manager, gives it the roles that are shipped, and returns the root of the repository and a
// kubeconfig with which it is nobody else.
func (e *env) installed() (root, kubeconfig string) {
	e.Helper()
	must := func(err error) {
		e.Helper()
		if err != nil {
			e.Fatal(err)
		}
	}
	root, err := filepath.Abs("../..")
	must(err)
	binaries(e.T)
	_, err = install.Roles(e.Context(), e.sandbox.Config(), []string{"daemonset"}, true)
	must(err)
	cfg, err := e.sandbox.ServiceAccountConfig(e.Context(), deploy.Namespace, deploy.ServiceAccount)
	must(err)
	kubeconfig = filepath.Join(e.TempDir(), "kubeconfig")
	must(clientcmd.WriteToFile(kubeconfigOf(cfg), kubeconfig))
	return root, kubeconfig
}

func TestManagersTakeTurns(t *testing.T) {
	e := newLonelyEnv(t) // its managers are processes
	root, kubeconfig := e.installed()

	first := e.manager(root, kubeconfig)
	e.eventually("wait for a leader", func() error {
		if e.holder() == "" {
			return fmt.Errorf("the log of the manager: %s", first.text())
		}
		return nil
	})
	leader := e.holder()
	second := e.manager(root, kubeconfig)
	for _, p := range []*process{first, second} {
		e.get("http://" + p.address("probes") + "/healthz")
		e.get("http://" + p.address("probes") + "/readyz")
		if metrics := e.get("http://" + p.address("metrics") + "/metrics"); !strings.Contains(metrics, "rest_client_requests_total") {
			t.Errorf("no rest_client_requests_total among the metrics:\n%s", metrics)
		}
	}
	ds := e.daemonSet("led", "app:1", func(ds *appsv1.DaemonSet) { ds.Spec.RevisionHistoryLimit = ptr.To[int32](10) })
	e.create(ds)
	e.rolledOut(ds)
	if metrics := e.get("http://" + first.address("metrics") + "/metrics"); !strings.Contains(metrics, `controller_runtime_reconcile_total{controller="daemonset"`) {
		t.Errorf("the leader's metrics show no pass:\n%s", metrics)
	}
	if e.holder() != leader {
		t.Errorf("the second manager took over from the first")
	}

	began := time.Now()
	if err := end(first.cmd, 20*time.Second); err != nil {
		t.Errorf("first manager: %v\n%s", err, first.text())
	}
	t.Logf("the first manager ended %s after SIGTERM", time.Since(began).Round(time.Millisecond))
	e.image(ds, "app:2")
	e.rolledOut(ds)
	if now := e.holder(); now == leader || now == "" {
		t.Errorf("the lease is held by %q, want the second manager", now)
	}
	if err := end(second.cmd, 20*time.Second); err != nil {
		t.Errorf("second manager: %v\n%s", err, second.text())
	}
	for line := range strings.Lines(first.text() + second.text()) {
		// Namespaces of other tests may be on their way out: that is forbidden to everybody.
		if strings.Contains(line, "orbidden") && !strings.Contains(line, "is being terminated") {
			t.Errorf("the shipped roles do not suffice: %s", line)
		}
	}
}

// TestLeaseThatCannotBeHad: a manager that can never lead says so within seconds, with what to do, and is not ready.
func TestLeaseThatCannotBeHad(t *testing.T) {
	e := newLonelyEnv(t) // its managers are processes
	root, kubeconfig := e.installed()
	for want, try := range map[string]struct{ kubeconfig, namespace string }{
		"where lease nowhere/metacontroller should be, does not exist": {e.as("lost-manager"), "nowhere"},
		"it may not get lease " + e.namespace + "/metacontroller":      {kubeconfig, e.namespace},
	} {
		p := e.manager(root, try.kubeconfig, "--leader-election", "--leader-election-id=metacontroller", "--leader-election-namespace="+try.namespace)
		e.eventually("wait until it says what is wrong", func() error {
			for line := range strings.Lines(p.text()) {
				if strings.Contains(line, `"level":"ERROR"`) && strings.Contains(line, want) && strings.Contains(line, "--leader-elect-namespace") {
					return nil
				}
			}
			return fmt.Errorf("want %s\n%s", want, p.text())
		})
		resp, err := http.Get("http://" + p.address("probes") + "/readyz")
		if err != nil {
			t.Fatal(err)
		}
		_ = resp.Body.Close()
		if resp.StatusCode == http.StatusOK {
			t.Errorf("%s: it is ready", want)
		}
		if err := end(p.cmd, 20*time.Second); err != nil {
			t.Errorf("%v\n%s", err, p.text())
		}
	}
}

// holder returns who holds the manager's lease.
func (e *env) holder() string {
	e.Helper()
	var lease coordinationv1.Lease
	if err := e.Get(e.Context(), types.NamespacedName{Namespace: deploy.Namespace, Name: deploy.LeaseName}, &lease); err != nil {
		return ""
	}
	return ptr.Deref(lease.Spec.HolderIdentity, "")
}

// kubeconfigOf writes what a rest.Config says as kubectl reads it.
func kubeconfigOf(cfg *rest.Config) clientcmdapi.Config {
	out := *clientcmdapi.NewConfig()
	out.Clusters["sandbox"] = &clientcmdapi.Cluster{Server: cfg.Host, CertificateAuthorityData: cfg.CAData}
	out.AuthInfos["manager"] = &clientcmdapi.AuthInfo{Token: cfg.BearerToken, TokenFile: cfg.BearerTokenFile}
	out.Contexts["sandbox"] = &clientcmdapi.Context{Cluster: "sandbox", AuthInfo: "manager"}
	out.CurrentContext = "sandbox"
	return out
}
