package inspect

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/inspect/object"
)

// Who takes an undo back is found by the marks that tools leave, and each tool is named once.
func TestWhoTakesAnUndoBack(t *testing.T) {
	for name, c := range map[string]struct {
		labels, annotations map[string]string
		want                string
	}{
		"nobody":             {},
		"kubectl apply":      {annotations: map[string]string{"kubectl.kubernetes.io/last-applied-configuration": "{}"}, want: "kubectl apply"},
		"Helm":               {annotations: map[string]string{"meta.helm.sh/release-name": "shop"}, labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, want: "Helm release shop"},
		"Helm, by label":     {labels: map[string]string{"app.kubernetes.io/managed-by": "Helm"}, want: "managed by Helm"},
		"somebody by label":  {labels: map[string]string{"app.kubernetes.io/managed-by": "kustomize"}},
		"Argo CD":            {annotations: map[string]string{"argocd.argoproj.io/tracking-id": "shop:apps/DaemonSet:shop/web"}, want: "Argo CD (shop:"},
		"Argo CD, by label":  {labels: map[string]string{"argocd.argoproj.io/instance": "shop"}, want: "Argo CD application shop"},
		"Flux Kustomization": {labels: map[string]string{"kustomize.toolkit.fluxcd.io/name": "apps"}, want: "Flux Kustomization apps"},
		"Flux HelmRelease":   {labels: map[string]string{"helm.toolkit.fluxcd.io/name": "shop"}, want: "Flux HelmRelease shop"},
	} {
		o := &metav1.ObjectMeta{Labels: c.labels, Annotations: c.annotations}
		got := rivals(object.Parent{Name: "web"}, o, nil, nil)
		if c.want == "" && len(got) > 0 || c.want != "" && (len(got) != 1 || !strings.Contains(got[0], c.want)) {
			t.Errorf("%s: %q", name, got)
		}
	}
}

func TestPausedIsSaid(t *testing.T) {
	for value, want := range map[any]bool{true: true, false: false, "yes": false} {
		o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"paused": value}}}
		o.SetKind("Fleet")
		if got := paused(o); got != want {
			t.Errorf("paused: %v is %t", value, got)
		}
	}
}
