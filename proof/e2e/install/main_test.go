// Package install puts the chart and the commands of docs/install.md before a cluster that knows nothing of cairn.
package install

import (
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"

	"github.com/cairn-dev/cairn/sandbox"
	"github.com/cairn-dev/cairn/sandbox/sandboxtest"
)

func TestMain(m *testing.M) {
	code := sandboxtest.Main(m, sandbox.Options{Nodes: 3})
	_ = os.RemoveAll(dist)
	os.Exit(code)
}

// TestOnANewCluster: the page comes first, for it begins with nothing and ends with nothing.
func TestOnANewCluster(t *testing.T) {
	t.Run("the commands of the page", thePageIsReal)
	t.Run("the chart with all controllers", chartIsAccepted)
	t.Run("its admission policies", revisionsAreKept)
}

// The chart of two versions, and what is rendered from it, in a folder dist: what "make chart" leaves.
const first, second = "v0.1.0", "v0.2.0"

var dist, _ = os.MkdirTemp("", "cairn-dist-")

// charts makes them, once.
var charts = sync.OnceValue(func() error {
	for _, version := range []string{second, first} { // the manifests for kubectl are those of the first
		out, err := run(filepath.Join(root(), "release"), "go", "run", "./cmd/release", "-version", version, "-source", "..",
			"-out", filepath.Join(dist, "dist"), "-helm", filepath.Join(root(), "bin", "tools", "helm"), "chart")
		if err != nil {
			return errorf("%w (make build bin/tools/helm first)\n%s", err, out)
		}
	}
	return nil
})

// root is the folder of the repository.
func root() string {
	dir, err := filepath.Abs("../../..")
	if err != nil {
		panic(err)
	}
	return dir
}

// run runs a program in a folder, with the repository's kubectl, cairn and helm before others.
func run(dir, name string, args ...string) (string, error) {
	bin := filepath.Join(root(), "bin")
	cmd := exec.Command(name, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOWORK=off", "KUBECONFIG="+kubeconfig,
		"PATH="+bin+":"+filepath.Join(bin, "tools")+":"+os.Getenv("PATH"))
	out, err := cmd.CombinedOutput()
	return string(out), err
}

// kubeconfig is that of the sandbox.
var kubeconfig string

// cluster returns the sandbox, with the charts made.
func cluster(t *testing.T) *sandbox.Sandbox {
	t.Helper()
	s := sandboxtest.Get(t)
	kubeconfig = s.Kubeconfig()
	if err := charts(); err != nil {
		t.Fatal(err)
	}
	return s
}

// must runs a line of a shell in the folder that has dist in it.
func must(t *testing.T, line string) string {
	t.Helper()
	out, err := run(dist, "bash", "-c", line)
	if err != nil {
		t.Fatalf("%s: %v\n%s", line, err, out)
	}
	return out
}
