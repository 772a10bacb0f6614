package main

// This file checks what becomes of the administrator's credentials.

import (
	"bytes"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
	"time"
)

// TestTwoSandboxesOneKubeconfig: the second one is refused while the first one runs, which goes on as before.
func TestTwoSandboxesOneKubeconfig(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	first, _ := testCommand(t, "--nodes=0", "--kubeconfig="+kubeconfig)
	p := start(t, first)
	second, tmp := testCommand(t, "--nodes=0", "--kubeconfig="+kubeconfig)
	refused(t, second, 1, kubeconfig+" is that of a sandbox that runs")
	if left, err := os.ReadDir(tmp); err != nil || len(left) > 0 {
		t.Errorf("the second left behind: %v (%v)", left, err)
	}
	if _, err := p.client(t).Discovery().ServerVersion(); err != nil {
		t.Errorf("the first, by the kubeconfig: %v", err)
	}
	// Somebody writes another cluster's credentials there.
	const theirs = "apiVersion: v1\nkind: Config\nclusters:\n- name: prod\n  cluster: {server: https://prod}\n"
	if err := os.WriteFile(kubeconfig, []byte(theirs), 0o600); err != nil {
		t.Fatal(err)
	}
	p.stop(t, syscall.SIGTERM)
	if got, err := os.ReadFile(kubeconfig); err != nil || string(got) != theirs {
		t.Errorf("at the end the file of another cluster is %q (%v)", got, err)
	}
}

// TestSecondSignal: a second signal ends the process at once, and it leaves no credentials behind.
func TestSecondSignal(t *testing.T) {
	kubeconfig := filepath.Join(t.TempDir(), "config")
	cmd, tmp := testCommand(t, "--nodes=1", "--kubeconfig="+kubeconfig)
	p := start(t, cmd)
	if err := p.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	ended := make(chan error, 1)
	go func() {
		<-p.output
		ended <- p.Wait()
	}()
	again := time.NewTicker(time.Millisecond)
	defer again.Stop()
	var err error
	for running := true; running; {
		select {
		case err = <-ended:
			running = false
		case <-again.C:
			_ = p.Process.Signal(syscall.SIGTERM)
		}
	}
	status, ok := p.ProcessState.Sys().(syscall.WaitStatus)
	if _, failed := err.(*exec.ExitError); !failed || !ok || status.Signal() != syscall.SIGTERM { //nolint:errorlint // Wait wraps nothing
		t.Fatalf("it ended with %v, want the end by the second signal", err)
	}
	if _, err := os.Stat(kubeconfig); !os.IsNotExist(err) {
		t.Errorf("the kubeconfig: %v", err)
	}
	err = filepath.WalkDir(tmp, func(path string, d fs.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		content, err := os.ReadFile(path)
		if bytes.Contains(content, []byte("PRIVATE KEY")) || bytes.Contains(content, []byte("client-key-data")) {
			t.Errorf("%s holds a key", path)
		}
		return err
	})
	if err != nil {
		t.Error(err)
	}
}
