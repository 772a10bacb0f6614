package install

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/deploy"
)

// chartIsAccepted: what the chart renders, with all controllers, is taken by a real API server without an unknown
// field, and its pods pass the restricted profile of Pod Security, which the namespace enforces.
func chartIsAccepted(t *testing.T) {
	s := cluster(t)
	c, err := client.New(s.Config(), client.Options{})
	if err != nil {
		t.Fatal(err)
	}
	const all = "dist/install-all.yaml"
	if out := must(t, "kubectl apply --server-side --validate=strict -f "+all); strings.Contains(out, "Warning") {
		t.Error(out)
	}
	var manager appsv1.Deployment
	if err := c.Get(t.Context(), types.NamespacedName{Namespace: deploy.Namespace, Name: "cairn-manager"}, &manager); err != nil {
		t.Fatal(err)
	}
	pod := &corev1.Pod{ObjectMeta: manager.Spec.Template.ObjectMeta, Spec: manager.Spec.Template.Spec}
	pod.Namespace, pod.GenerateName = deploy.Namespace, "cairn-manager-"
	if err := c.Create(t.Context(), pod, client.DryRunAll); err != nil {
		t.Error(err)
	}
	pod.Spec.Containers[0].SecurityContext.AllowPrivilegeEscalation = nil
	if err := c.Create(t.Context(), pod, client.DryRunAll); !apierrors.IsForbidden(err) {
		t.Errorf("the namespace enforces nothing: %v", err)
	}
}
