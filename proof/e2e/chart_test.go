package e2e

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/deploy"
)

// TestChartIsAccepted: what the chart renders, with all controllers, is taken by a real API server without an unknown
// field, and its pods pass the restricted profile of Pod Security, which the namespace enforces.
func TestChartIsAccepted(t *testing.T) {
	e := newLonelyEnv(t)
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	binaries(t)
	dist := t.TempDir()
	making := exec.CommandContext(t.Context(), "go", "run", "./cmd/release", "-version", "v0.0.1", "-source", "..", "-out", dist,
		"-helm", filepath.Join(root, "bin", "tools", "helm"), "chart")
	making.Dir, making.Env = filepath.Join(root, "release"), append(os.Environ(), "GOWORK=off")
	if out, err := making.CombinedOutput(); err != nil {
		t.Fatalf("%v (make bin/tools/helm first)\n%s", err, out)
	}
	all := filepath.Join(dist, "install-all.yaml")
	in := "--namespace=" + deploy.Namespace
	defer func() {
		e.must(e.kubectl(in, "delete", "--ignore-not-found", "deployment/cairn-manager", "pdb/cairn-manager",
			"networkpolicy/cairn-manager", "service/cairn-metrics"))
	}()
	if out := e.must(e.kubectl(in, "apply", "--server-side", "--force-conflicts", "--validate=strict", "-f", all)); strings.Contains(out, "Warning") {
		t.Error(out)
	}
	var manager appsv1.Deployment
	if err := e.Get(t.Context(), types.NamespacedName{Namespace: deploy.Namespace, Name: "cairn-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: manager.Spec.Template.ObjectMeta, Spec: manager.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = deploy.Namespace, "cairn-manager-"
	if err := e.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	if err := e.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the namespace enforces nothing: %v", err)
	}
}
