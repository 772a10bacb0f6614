package composite

// This file runs "cairn manager" as a process of its own, so that its processor time and its memory are nobody else's.

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

// profileVariable is the environment variable with the address, such as 127.0.0.1:6060, at which the manager's profiles can
// be had while it is measured: go tool pprof http://127.0.0.1:6060/debug/pprof/profile.
const profileVariable = "CAIRN_BENCH_PPROF"

// ticks is in how many parts Linux divides a second when it tells what a process has used.
const ticks = 100

// manager is a cairn manager that runs.
type manager struct {
	testing.TB

	cmd *exec.Cmd
	log *bytes.Buffer
}

// binaryDir is where binary has built, empty if nobody asked for it.
var binaryDir string

// binary is the path of cairn, built once for all benchmarks.
var binary = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "cairn-bench-")
	if err != nil {
		return "", err
	}
	binaryDir = dir
	path := filepath.Join(dir, "cairn")
	cmd := exec.CommandContext(context.Background(), "go", "build", "-buildvcs=false", "-o", path, "github.com/cairn-dev/cairn/cmd/cairn")
	if out, err := cmd.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build cairn: %w\n%s", err, out)
	}
	return path, nil
})

// removeBinary removes what binary built.
func removeBinary() {
	if binaryDir != "" {
		_ = os.RemoveAll(binaryDir)
	}
}

// startManager runs the composite controller as cfg's user until the test ends.
func startManager(tb testing.TB, cfg *rest.Config) *manager {
	tb.Helper()
	path, err := binary()
	if err != nil {
		tb.Fatal(err)
	}
	kubeconfig := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigOf(cfg), kubeconfig); err != nil {
		tb.Fatal(err)
	}
	p := &manager{TB: tb, log: &bytes.Buffer{}}
	args := []string{
		"manager", "--kubeconfig=" + kubeconfig, "--controllers=composite", "--leader-elect=false", "--hook-allow-address=127.0.0.1",
		"--metrics-bind-address=off", "--health-probe-bind-address=off", "--log-level=debug",
	}
	if address := os.Getenv(profileVariable); address != "" {
		args = append(args, "--pprof-bind-address="+address)
	}
	p.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), path, args...)
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, p.log
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() { ended <- p.cmd.Wait() }()
	tb.Cleanup(func() {
		select {
		case err := <-ended:
			tb.Errorf("the manager ended by itself: %v; its log:\n%s", err, p.tail())
			return
		default:
		}
		_ = p.cmd.Process.Signal(syscall.SIGTERM)
		if err := <-ended; tb.Failed() {
			tb.Logf("the manager ended with %v; its log:\n%s", err, p.tail())
		}
	})
	return p
}

func kubeconfigOf(cfg *rest.Config) *clientcmdapi.Config {
	const name = "bench"
	return &clientcmdapi.Config{
		Clusters:       map[string]*clientcmdapi.Cluster{name: {Server: cfg.Host, CertificateAuthorityData: cfg.CAData}},
		AuthInfos:      map[string]*clientcmdapi.AuthInfo{name: {ClientCertificateData: cfg.CertData, ClientKeyData: cfg.KeyData}},
		Contexts:       map[string]*clientcmdapi.Context{name: {Cluster: name, AuthInfo: name}},
		CurrentContext: name,
	}
}

// tail is the end of the manager's log.
func (p *manager) tail() string {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// cpu is the processor time that the manager has used, user's and system's. It is exact to 10 ms.
func (p *manager) cpu() time.Duration {
	p.Helper()
	fields := strings.Fields(p.proc("stat", `\) (.*)`)) // the name of the program is in parentheses, and may hold anything
	var used time.Duration
	for _, field := range fields[11:13] {
		n, err := strconv.ParseInt(field, 10, 64)
		if err != nil {
			p.Fatal(err)
		}
		used += time.Duration(n) * time.Second / ticks
	}
	return used
}

// peak is the most memory that the manager has had at once, in bytes.
func (p *manager) peak() int64 {
	p.Helper()
	kilobytes, err := strconv.ParseInt(p.proc("status", `VmHWM:\s+(\d+) kB`), 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return kilobytes << 10
}

// proc returns what the kernel says about the manager in one of its files: the part that the expression's group matches.
func (p *manager) proc(file, expression string) string {
	p.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		p.Fatalf("the manager's costs can be read on Linux only: %v", err)
	}
	found := regexp.MustCompile(expression).FindSubmatch(raw)
	if found == nil {
		p.Fatalf("%s says %s, want %s", file, raw, expression)
	}
	return string(found[1])
}
