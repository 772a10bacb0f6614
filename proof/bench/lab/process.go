package lab

// This file runs a program as a process of its own, so that its processor time, its memory and its bytes are nobody
// else's.

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

// Cairn is the package of the program cairn, for [Build].
const Cairn = "github.com/cairn-dev/cairn/cmd/cairn"

// ProfileVariable is the environment variable with the address, such as 127.0.0.1:6060, at which the profiles of a
// process can be had while it is measured: go tool pprof http://127.0.0.1:6060/debug/pprof/profile.
const ProfileVariable = "CAIRN_BENCH_PPROF"

// ticks is in how many parts Linux divides a second when it tells what a process has used.
const ticks = 100

// built are the programs of this test binary by their packages, in a folder of their own.
var built struct {
	mu    sync.Mutex
	dir   string
	paths map[string]string
}

// Build returns the path of a program, built once for all benchmarks of a test binary, without C and symbols, as
// programs are released. TestMain removes it with [RemoveBuilt].
func Build(tb testing.TB, program string) string {
	tb.Helper()
	built.mu.Lock()
	defer built.mu.Unlock()
	if path, ok := built.paths[program]; ok {
		return path
	}
	if built.dir == "" {
		dir, err := os.MkdirTemp("", "cairn-bench-") //nolint:usetesting // it outlives the test
		if err != nil {
			tb.Fatal(err)
		}
		built.dir, built.paths = dir, map[string]string{}
	}
	path := filepath.Join(built.dir, filepath.Base(program))
	cmd := exec.CommandContext(tb.Context(), "go", "build", "-buildvcs=false", "-ldflags=-s -w", "-o", path, program)
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0")
	if out, err := cmd.CombinedOutput(); err != nil {
		tb.Fatalf("build %s: %v\n%s", program, err, out)
	}
	built.paths[program] = path
	return path
}

// RemoveBuilt removes what [Build] has built. Call it after the last test.
func RemoveBuilt() {
	built.mu.Lock()
	defer built.mu.Unlock()
	if built.dir != "" {
		_ = os.RemoveAll(built.dir)
	}
}

// Process is a program that runs. Make one with [Start].
type Process struct {
	testing.TB

	cmd   *exec.Cmd
	log   *bytes.Buffer
	ended chan error
	stop  func()
}

// Kubeconfig stands for the path of the kubeconfig in arguments of [Start], for programs that do not look at
// KUBECONFIG.
const Kubeconfig = "$KUBECONFIG"

// Start runs a program as cfg's user, which it finds by KUBECONFIG, until [Process.Stop] or the end of the test.
func Start(tb testing.TB, cfg *rest.Config, path string, args ...string) *Process {
	tb.Helper()
	kubeconfig := filepath.Join(tb.TempDir(), "kubeconfig")
	if err := clientcmd.WriteToFile(*kubeconfigOf(cfg), kubeconfig); err != nil {
		tb.Fatal(err)
	}
	for n := range args {
		args[n] = strings.ReplaceAll(args[n], Kubeconfig, kubeconfig)
	}
	p := &Process{TB: tb, log: &bytes.Buffer{}, ended: make(chan error, 1)}
	p.stop = sync.OnceFunc(p.end)
	p.cmd = exec.CommandContext(context.WithoutCancel(tb.Context()), path, args...)
	p.cmd.Env = append(os.Environ(), clientcmd.RecommendedConfigPathEnvVar+"="+kubeconfig)
	p.cmd.Stdout, p.cmd.Stderr = io.Discard, p.log
	if err := p.cmd.Start(); err != nil {
		tb.Fatal(err)
	}
	go func() { p.ended <- p.cmd.Wait() }()
	tb.Cleanup(p.Stop)
	return p
}

// Runs ends the test if the process has ended by itself.
func (p *Process) Runs() {
	p.Helper()
	select {
	case err := <-p.ended:
		p.ended <- err
		p.Fatalf("the process ended by itself: %v; its log:\n%s", err, p.tail())
	default:
	}
}

// Stop ends the process as Kubernetes does, and waits for its end.
func (p *Process) Stop() {
	p.Helper()
	p.stop()
}

func (p *Process) end() {
	select {
	case err := <-p.ended:
		p.Errorf("the process ended by itself: %v; its log:\n%s", err, p.tail())
		return
	default:
	}
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	if err := <-p.ended; p.Failed() {
		p.Logf("the process ended with %v; its log:\n%s", err, p.tail())
	}
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

// tail is the end of the log.
func (p *Process) tail() string {
	lines := strings.Split(strings.TrimSpace(p.log.String()), "\n")
	return strings.Join(lines[max(0, len(lines)-30):], "\n")
}

// CPU is the processor time that the process has used, user's and system's. It is exact to 10 ms.
func (p *Process) CPU() time.Duration {
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

// Peak is the most memory that the process has had at once, in bytes.
func (p *Process) Peak() int64 {
	p.Helper()
	kilobytes, err := strconv.ParseInt(p.proc("status", `VmHWM:\s+(\d+) kB`), 10, 64)
	if err != nil {
		p.Fatal(err)
	}
	return kilobytes << 10
}

// Connections is how many sockets the process has.
func (p *Process) Connections() int {
	p.Helper()
	dir := fmt.Sprintf("/proc/%d/fd", p.cmd.Process.Pid)
	open, err := os.ReadDir(dir)
	if err != nil {
		p.Fatalf("the process's costs can be read on Linux only: %v", err)
	}
	count := 0
	for _, file := range open {
		if to, err := os.Readlink(filepath.Join(dir, file.Name())); err == nil && strings.HasPrefix(to, "socket:") {
			count++
		}
	}
	return count
}

// Moved is how many bytes the process has read and written in all, from connections and files, TLS included.
func (p *Process) Moved() int64 {
	p.Helper()
	var sum int64
	for _, expression := range []string{`rchar: (\d+)`, `wchar: (\d+)`} {
		n, err := strconv.ParseInt(p.proc("io", expression), 10, 64)
		if err != nil {
			p.Fatal(err)
		}
		sum += n
	}
	return sum
}

// proc returns what the kernel says about the process in one of its files: the part that the expression's group
// matches.
func (p *Process) proc(file, expression string) string {
	p.Helper()
	raw, err := os.ReadFile(fmt.Sprintf("/proc/%d/%s", p.cmd.Process.Pid, file))
	if err != nil {
		p.Fatalf("the process's costs can be read on Linux only: %v", err)
	}
	found := regexp.MustCompile(expression).FindSubmatch(raw)
	if found == nil {
		p.Fatalf("%s says %s, want %s", file, raw, expression)
	}
	return string(found[1])
}
