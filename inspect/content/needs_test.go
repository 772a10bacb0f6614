package content

import (
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

// TestAddedNeeds: what only the restored pods need, wherever their template is. Optional references are not needed.
func TestAddedNeeds(t *testing.T) {
	const before = `
spec: {template: {spec: {serviceAccountName: web, containers: [{name: a, envFrom: [{configMapRef: {name: kept}}]}]}}}`
	const after = `
spec:
  template:
    spec:
      serviceAccountName: old
      priorityClassName: high
      runtimeClassName: gvisor
      volumes:
      - {name: a, configMap: {name: volume}}
      - {name: b, configMap: {name: not-needed, optional: true}}
      - {name: c, secret: {secretName: volume}}
      - {name: d, secret: {secretName: not-needed, optional: true}}
      - {name: e, persistentVolumeClaim: {claimName: data}}
      - {name: f, projected: {sources: [{configMap: {name: projected}}, {secret: {name: projected}}, {secret: {name: not-needed, optional: true}}]}}
      initContainers:
      - {name: i, envFrom: [{secretRef: {name: env}}, {configMapRef: {name: kept}}]}
      containers:
      - {name: a, env: [{name: X, valueFrom: {configMapKeyRef: {name: key, key: x}}}, {name: Y, valueFrom: {secretKeyRef: {name: key, key: x}}}]}
`
	var documents [][]byte
	for _, text := range []string{before, after} {
		raw, err := yaml.YAMLToJSON([]byte(text))
		if err != nil {
			t.Fatal(err)
		}
		documents = append(documents, raw)
	}
	needs, err := AddedNeeds(documents[0], documents[1])
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, n := range needs {
		text := n.Kind.Kind + "/" + n.Name
		if n.Admission {
			text += "!"
		}
		got = append(got, text)
	}
	const want = "ConfigMap/key ConfigMap/projected ConfigMap/volume PersistentVolumeClaim/data PriorityClass/high! " +
		"RuntimeClass/gvisor! Secret/env Secret/key Secret/projected Secret/volume ServiceAccount/old!"
	if strings.Join(got, " ") != want {
		t.Errorf("%s\nwant\n%s", got, want)
	}
}
