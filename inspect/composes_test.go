package inspect

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/cairn-dev/cairn/revision"
)

func manifest(t *testing.T, text string) map[string]any {
	t.Helper()
	out := map[string]any{}
	if err := yaml.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

// TestLastApplied: the annotation follows the difference that the undo makes, and nothing else.
func TestLastApplied(t *testing.T) {
	const before = `{apiVersion: apps/v1, spec: {replicas: 3, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: b, image: "b:2", env: [{name: NEW, value: "2"}]}]}}}}`
	const after = `{apiVersion: apps/v1, spec: {replicas: 5, template: {spec: {dnsPolicy: ClusterFirst, containers: [{name: a, image: "a:1", imagePullPolicy: Always}]}}}}`
	for name, c := range map[string]struct{ applied, want string }{
		"follows": {
			`{apiVersion: apps/v1, metadata: {labels: {a: b}}, spec: {replicas: 3, template: {spec: {containers: [{name: b, image: "b:2", env: [{name: NEW, value: "2"}]}]}}}}`,
			`{"apiVersion":"apps/v1","metadata":{"labels":{"a":"b"}},"spec":{"replicas":5,"template":{"spec":{"containers":[{"image":"a:1","imagePullPolicy":"Always","name":"a"}]}}}}`,
		},
		"without a scale": {
			`{apiVersion: apps/v1, spec: {template: {spec: {containers: [{name: b, image: "b:2"}]}}}}`,
			`{"apiVersion":"apps/v1","spec":{"template":{"spec":{"containers":[{"image":"a:1","imagePullPolicy":"Always","name":"a"}]}}}}`,
		},
		"of another version": {`{apiVersion: apps/v1beta1, spec: {}}`, `{"apiVersion":"apps/v1beta1","spec":{}}`},
		"not a manifest":     {``, `{`},
		"none":               {``, ``},
	} {
		live := &unstructured.Unstructured{Object: manifest(t, before)}
		text := c.want
		if c.applied != "" {
			raw, err := yaml.YAMLToJSON([]byte(c.applied))
			if err != nil {
				t.Fatal(err)
			}
			text = string(raw)
		}
		if text != "" {
			live.SetAnnotations(map[string]string{corev1.LastAppliedConfigAnnotation: text})
		}
		restored := manifest(t, after)
		restored["metadata"] = live.Object["metadata"]
		got, err := lastApplied(live, restored, revision.Path{"spec", "replicas"})
		if err != nil || strings.TrimSuffix(got, "\n") != c.want {
			t.Errorf("%s: %s, %v", name, got, err)
		}
	}
}
