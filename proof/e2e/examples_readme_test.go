package e2e

import (
	"bytes"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// This file replays the session that the README of the examples shows: the binaries that make builds, and the hook as
// the programs that it is.

func TestTheSessionInTheExamplesReadmeIsReal(t *testing.T) {
	beside(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	steps := transcript(t, filepath.Join(root, "examples", "README.md"))
	if len(steps) < 10 {
		t.Fatalf("the README of the examples shows %d commands, want a whole session", len(steps))
	}
	binaries(t)
	dir := t.TempDir()
	must(t, os.CopyFS(filepath.Join(dir, "examples"), os.DirFS(filepath.Join(root, "examples"))))
	address := moveHook(t, filepath.Join(dir, "examples", "catset", "controller.yaml"))
	program := filepath.Join(dir, "hook")
	if out, err := exec.CommandContext(t.Context(), "go", "build", "-o", program, root+"/examples/catset/go").CombinedOutput(); err != nil {
		t.Fatalf("build the hook: %v\n%s", err, out)
	}
	stopHook := startHook(t, address, program, "--address", address)
	kubeconfig := filepath.Join(dir, "kubeconfig")
	stop := startBinary(t, root, "--kubeconfig="+kubeconfig)
	for _, s := range steps {
		if strings.HasPrefix(s.command, "cairn undo") { // from here on the other one answers, which nobody notices
			stopHook()
			startHook(t, address, "python3", filepath.Join(root, "examples", "catset", "python", "catset.py"), address)
		}
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

// moveHook writes a free port into the manifest of the CatSet's controller, because others may be at work on this
// machine.
func moveHook(t *testing.T, controller string) (address string) {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address = listener.Addr().String()
	_ = listener.Close()
	b, err := os.ReadFile(controller)
	if err != nil {
		t.Fatal(err)
	}
	const documented = "127.0.0.1:8080"
	if n := bytes.Count(b, []byte(documented)); n != 1 {
		t.Fatalf("%s is there %d times in %s", documented, n, controller)
	}
	must(t, os.WriteFile(controller, bytes.ReplaceAll(b, []byte(documented), []byte(address)), 0o600))
	return address
}

// startHook starts a hook's program and waits until it listens.
func startHook(t *testing.T, address, program string, args ...string) (stop func()) {
	t.Helper()
	hook := exec.CommandContext(t.Context(), program, args...)
	must(t, hook.Start())
	stop = sync.OnceFunc(func() {
		_ = hook.Process.Kill()
		_ = hook.Wait()
	})
	t.Cleanup(stop)
	deadline := time.Now().Add(time.Minute)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			return stop
		}
		if time.Now().After(deadline) {
			t.Fatalf("%s does not listen: %v", program, err)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // nothing tells when another process listens
	}
}
