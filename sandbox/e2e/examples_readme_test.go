package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"
)

// This file replays the session that the README of the examples shows: the binaries that make builds, and the hook as the
// program that it is.

func TestTheSessionInTheExamplesReadmeIsReal(t *testing.T) {
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	steps := transcript(t, filepath.Join(root, "examples/README.md"))
	if len(steps) < 10 {
		t.Fatalf("the README of the examples shows %d commands, want a whole session", len(steps))
	}
	binaries(t, root)
	dir := t.TempDir()
	if err := os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	startHook(t, root, filepath.Join(dir, "examples/catset/controller.yaml"))
	kubeconfig := filepath.Join(dir, "kubeconfig")
	stop := startBinary(t, root, "--kubeconfig="+kubeconfig)
	for _, s := range steps {
		cmd := exec.CommandContext(t.Context(), "bash", "-c", s.command)
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig, "PATH="+filepath.Join(root, "bin")+":"+os.Getenv("PATH"), "COLUMNS=120")
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("examples/README.md:%d: %s: %v\n%s", s.line, s.command, err, out)
		}
		if why := s.differs(string(out)); why != "" {
			t.Fatalf("examples/README.md:%d: $ %s\n%s\nIt printed:\n%s", s.line, s.command, why, out)
		}
	}
	stop()
}

// startHook starts the CatSet's hook on a port of its own, because others may be at work on this machine, and writes that
// into the manifest of its controller.
func startHook(t *testing.T, root, controller string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	b, err := os.ReadFile(controller)
	if err != nil {
		t.Fatal(err)
	}
	const at = "127.0.0.1:8080"
	if n := bytes.Count(b, []byte(at)); n != 1 {
		t.Fatalf("%s is there %d times in %s", at, n, controller)
	}
	if err := os.WriteFile(controller, bytes.ReplaceAll(b, []byte(at), []byte(address)), 0o600); err != nil {
		t.Fatal(err)
	}
	program := filepath.Join(t.TempDir(), "hook")
	build := exec.CommandContext(t.Context(), "go", "build", "-o", program, "./examples/catset/go")
	build.Dir = root
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%s: %v\n%s", build, err, out)
	}
	hook := exec.CommandContext(t.Context(), program, "--address", address)
	if err := hook.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = hook.Process.Kill()
		_ = hook.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return
		}
		if time.Now().After(deadline) {
			t.Fatalf("the hook does not listen: %v", err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // nothing tells when another process listens
	}
}
