package main

// This file runs cairn-sandbox for the tests: the test binary runs itself again.

import (
	"bufio"
	"bytes"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// runAsMain is the environment variable that makes the test binary be cairn-sandbox.
const runAsMain = "CAIRN_TEST_RUN_AS_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(runAsMain) != "" {
		main()
		os.Exit(0)
	}
	os.Exit(m.Run())
}

const (
	// readyBudget is generous: continuous integration runs other tests beside this one.
	readyBudget = time.Minute
	// stopBudget is three times what users are promised: they have the machine to themselves.
	stopBudget = 15 * time.Second
	// pollInterval is the pause between two looks.
	pollInterval = 20 * time.Millisecond
)

// process is a cairn-sandbox that runs.
type process struct {
	*exec.Cmd
	kubeconfig string
	output     chan string // all of stdout, once it is closed
	stderr     *bytes.Buffer
}

// testCommand returns cairn-sandbox with these arguments and a temporary directory of its own, and that directory.
func testCommand(t *testing.T, args ...string) (*exec.Cmd, string) {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	tmp := t.TempDir()
	cmd := exec.Command(self, args...)
	cmd.Env = append(os.Environ(), runAsMain+"=1", "TMPDIR="+tmp)
	return cmd, tmp
}

// start runs cmd until it is ready.
func start(t *testing.T, cmd *exec.Cmd) *process {
	t.Helper()
	p := &process{Cmd: cmd, output: make(chan string, 1), stderr: &bytes.Buffer{}}
	cmd.Stderr = p.stderr
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	ready := make(chan string, 1)
	go func() {
		var all strings.Builder
		lines := bufio.NewScanner(stdout)
		for lines.Scan() {
			all.WriteString(lines.Text() + "\n")
			if path, ok := strings.CutPrefix(lines.Text(), "  export KUBECONFIG="); ok {
				ready <- path
			}
		}
		close(ready)
		p.output <- all.String()
	}()
	select {
	case p.kubeconfig = <-ready:
		if p.kubeconfig == "" {
			t.Fatalf("it ended before it was ready\nstdout: %s\nstderr: %s", <-p.output, p.stderr)
		}
	case <-time.After(readyBudget):
		t.Fatalf("not ready after %s", readyBudget)
	}
	return p
}

// stop sends the signal and checks that the process ends in time, with exit code 0 and a clean terminal.
func (p *process) stop(t *testing.T, sig os.Signal) string {
	t.Helper()
	sent := time.Now()
	if err := p.Process.Signal(sig); err != nil {
		t.Fatal(err)
	}
	output := <-p.output
	err := p.Wait()
	if took := time.Since(sent); took > stopBudget {
		t.Errorf("%s: it took %s to stop, want %s or less", sig, took, stopBudget)
	}
	if err != nil || p.stderr.Len() > 0 {
		t.Errorf("%s: it ended with %v; stderr: %s", sig, err, p.stderr)
	}
	return output
}

func (p *process) client(t *testing.T) kubernetes.Interface {
	t.Helper()
	return clientFor(t, p.config(t))
}

func (p *process) config(t *testing.T) *rest.Config {
	t.Helper()
	cfg, err := clientcmd.BuildConfigFromFlags("", p.kubeconfig)
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func clientFor(t *testing.T, cfg *rest.Config) kubernetes.Interface {
	t.Helper()
	client, err := kubernetes.NewForConfig(cfg)
	if err != nil {
		t.Fatal(err)
	}
	return client
}

// refused checks that cmd ends with that exit code and one line on stderr that has want in it.
func refused(t *testing.T, cmd *exec.Cmd, exit int, want string) {
	t.Helper()
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	_ = cmd.Run()
	if code := cmd.ProcessState.ExitCode(); code != exit {
		t.Errorf("exit code %d, want %d", code, exit)
	}
	if text := stderr.String(); strings.Count(text, "\n") != 1 || !strings.Contains(text, want) {
		t.Errorf("stderr %q; want one line with %q", text, want)
	}
}
