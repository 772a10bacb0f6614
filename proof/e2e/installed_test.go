package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestInstalled: the manager as a process with a token and the shipped roles rolls out, keeps the history, holds the
// lease, and says nothing of a right that it lacks.
func TestInstalled(t *testing.T) {
	beside(t)
	binaries(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	kubeconfig := filepath.Join(dir, "kubeconfig")
	stop := startBinary(t, root, "--installed", "--nodes=3", "--kubeconfig="+kubeconfig, "--data-dir="+filepath.Join(dir, "data"))
	run := func(command string) string {
		t.Helper()
		words := strings.Fields(command)
		cmd := exec.CommandContext(t.Context(), filepath.Join(root, "bin", words[0]), words[1:]...)
		cmd.Env = append(os.Environ(), "KUBECONFIG="+kubeconfig)
		out, err := cmd.CombinedOutput()
		if err != nil {
			t.Fatalf("%s: %v\n%s", command, err, out)
		}
		return string(out)
	}
	run("kubectl create -f " + filepath.Join(dir, "data", "examples"))
	for _, object := range []string{"daemonset/web", "statefulset/db"} {
		run("kubectl rollout status " + object + " --timeout=60s")
	}
	run("kubectl set image daemonset/web web=nginx:1.29")
	run("kubectl rollout status daemonset/web --timeout=60s")
	run("cairn undo ds/web --yes")
	run("kubectl rollout status daemonset/web --timeout=60s")
	if got := run("cairn history ds/web"); !regexp.MustCompile(`(?m)^3 +\* +3 `).MatchString(got) {
		t.Errorf("the history after an undo:\n%s", got)
	}
	if got := run("kubectl get lease -n cairn-system -o jsonpath={.items[*].spec.holderIdentity}"); got == "" {
		t.Error("nobody holds the lease")
	}
	stop()
	log, err := os.ReadFile(filepath.Join(dir, "data", "sandbox.log"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(log)) {
		if strings.Contains(line, `logger="manager"`) && strings.Contains(line, "forbidden") {
			t.Errorf("the manager says: %s", line)
		}
	}
	if !strings.Contains(string(log), `logger="manager"`) {
		t.Error("the manager has logged nothing, so the lack of complaints says nothing")
	}
}
