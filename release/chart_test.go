package release_test

import (
	"bytes"
	"errors"
	"flag"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"sigs.k8s.io/yaml"
)

var update = flag.Bool("update", false, "write the golden files anew")

// helm runs the helm that "make test" has built.
func helm(t *testing.T, args ...string) (string, error) {
	t.Helper()
	program, err := filepath.Abs("../bin/tools/helm")
	if err == nil {
		_, err = os.Stat(program)
	}
	if err != nil {
		t.Fatal(err, "(make bin/tools/helm first)")
	}
	cmd := exec.CommandContext(t.Context(), program, args...)
	cmd.Env = append(os.Environ(), "HOME="+t.TempDir())
	var stderr bytes.Buffer
	cmd.Stderr = &stderr
	out, err := cmd.Output()
	if err != nil {
		err = errors.New(stderr.String())
	}
	return string(out), err
}

// chart packs the chart and returns its path.
func chart(t *testing.T) string {
	t.Helper()
	name, err := newRelease(t).Chart()
	if err != nil {
		t.Fatal(err)
	}
	return name
}

// render renders the chart with values, in the namespace that is shipped.
func render(t *testing.T, chart string, values map[string]any, args ...string) (string, error) {
	t.Helper()
	data, err := yaml.Marshal(values)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "values.yaml")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return helm(t, append([]string{"template", "cairn", chart, "--namespace=cairn-system", "-f", file}, args...)...)
}

// TestChart: helm finds nothing wrong, and what comes of the values that people set is what the golden files say. The
// custom resources, which make generate writes, are left out of them.
func TestChart(t *testing.T) {
	packed := chart(t)
	if out, err := helm(t, "lint", "--strict", packed); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	for name, values := range map[string]map[string]any{
		"default":   {},
		"workloads": {"controllers": []string{"daemonset", "statefulset", "replicaset", "replicationcontroller", "cronjob"}},
		"one-namespace": {
			"controllers": []string{"composite", "decorator"}, "watchNamespace": "team", "askServer": false, "replicas": 1,
			"podDisruptionBudget": false, "networkPolicy": false, "metrics": map[string]any{"enabled": false},
		},
		"monitored": {"metrics": map[string]any{
			"certSecret": "metrics-tls", "serviceMonitor": map[string]any{"enabled": true},
			"prometheusRule": map[string]any{"enabled": true},
		}},
	} {
		values["crds"] = false
		got, err := render(t, packed, values)
		if err != nil {
			t.Error(err)
			continue
		}
		golden := filepath.Join("testdata", "chart", name+".yaml")
		if *update {
			if err := errors.Join(os.MkdirAll(filepath.Dir(golden), 0o755), os.WriteFile(golden, []byte(got), 0o600)); err != nil {
				t.Fatal(err)
			}
		}
		if want := string(readFile(t, golden)); got != want {
			t.Errorf("%s is another one than %s; if that is meant, go test . -run TestChart -update", name, golden)
		}
	}
}

// TestChartKeepsWhatIsStored: the custom resources come with the chart, and stay when it goes.
func TestChartKeepsWhatIsStored(t *testing.T) {
	got, err := render(t, chart(t), nil)
	if err != nil {
		t.Fatal(err)
	}
	if crds, kept := strings.Count(got, "kind: CustomResourceDefinition"), strings.Count(got, "helm.sh/resource-policy: keep"); crds != 4 || kept != crds {
		t.Errorf("%d custom resource definitions, of which %d are kept", crds, kept)
	}
}

// TestChartInAnotherNamespace: nothing is left of the one that the shipped manifests name.
func TestChartInAnotherNamespace(t *testing.T) {
	all := map[string]any{"controllers": []string{
		"composite", "cronjob", "daemonset", "decorator", "recorder", "replicaset", "replicationcontroller", "statefulset",
	}}
	got, err := render(t, chart(t), all, "--namespace=elsewhere")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(got) {
		if strings.Contains(line, "cairn-system") && !strings.HasPrefix(strings.TrimSpace(line), "#") {
			t.Errorf("it says %s", line)
		}
	}
}

// TestEveryValueIsRendered: each value of values.yaml changes what is rendered, or is refused by the schema, when it is
// another one. A value that does neither does nothing.
func TestEveryValueIsRendered(t *testing.T) {
	var defaults map[string]any
	if err := yaml.Unmarshal(readFile(t, "../deploy/chart/values.yaml"), &defaults); err != nil {
		t.Fatal(err)
	}
	// What a value is only used with.
	with := map[string]map[string]any{
		"askServer":                       {"controllers": []any{"daemonset"}},
		"metrics.serviceMonitor.interval": {"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}},
		"metrics.serviceMonitor.labels":   {"metrics": map[string]any{"serviceMonitor": map[string]any{"enabled": true}}},
		"metrics.prometheusRule.labels":   {"metrics": map[string]any{"prometheusRule": map[string]any{"enabled": true}}},
	}
	packed := chart(t)
	tried := 0
	for path, value := range leaves(nil, defaults) {
		base := with[path]
		before, err := render(t, packed, base)
		if err != nil {
			t.Fatal(err)
		}
		after, err := render(t, packed, merged(base, strings.Split(path, "."), another(path, value)))
		if err != nil {
			t.Errorf("%s: %v", path, err)
		} else if before == after {
			t.Errorf("%s changes nothing", path)
		}
		tried++
	}
	if tried < 20 {
		t.Errorf("%d values were tried", tried)
	}
}

// leaves are the values by their paths: those that are no objects, and objects that are empty or are given as a whole.
func leaves(at []string, values map[string]any) map[string]any {
	out := map[string]any{}
	for key, value := range values {
		path := append(slices.Clone(at), key)
		if inner, ok := value.(map[string]any); ok && len(inner) > 0 && key != "resources" {
			maps.Copy(out, leaves(path, inner))
			continue
		}
		out[strings.Join(path, ".")] = value
	}
	return out
}

// another is a value other than the default.
func another(path string, value any) any {
	switch path {
	case "controllers":
		return []any{"cronjob"}
	case "image.digest":
		return "sha256:" + strings.Repeat("a", 64)
	case "hostedIdentity":
		return "shared"
	case "progressDeadline":
		return "10m"
	case "image.pullPolicy":
		return "Always"
	case "metrics.serviceMonitor.interval":
		return "7s"
	case "extraArgs":
		return []any{"--v=4"}
	case "tolerations":
		return []any{map[string]any{"operator": "Exists"}}
	case "affinity":
		return map[string]any{"nodeAffinity": map[string]any{}}
	case "resources":
		return map[string]any{"limits": map[string]any{"memory": "1Mi"}}
	}
	switch v := value.(type) {
	case bool:
		return !v
	case float64:
		return v + 1
	case string:
		return "another"
	case []any:
		return []any{"another"}
	default:
		return map[string]any{"another": "one"}
	}
}

// merged is base with one more value.
func merged(base map[string]any, path []string, value any) map[string]any {
	out := map[string]any{}
	maps.Copy(out, base)
	if len(path) == 1 {
		out[path[0]] = value
		return out
	}
	inner, _ := out[path[0]].(map[string]any)
	out[path[0]] = merged(inner, path[1:], value)
	return out
}

// TestValuesThatCannotBe: the schema says which one it is.
func TestValuesThatCannotBe(t *testing.T) {
	packed := chart(t)
	for name, values := range map[string]map[string]any{
		"controllers/0": {"controllers": []string{"deployment"}},
		"controllers":   {"controllers": []string{}},
		"replicas":      {"replicas": "two"},
		"digest":        {"image": map[string]any{"digest": "latest"}},
		"replica":       {"replica": 2},
		"extraArgs":     {"extraArgs": []string{"manager"}},
	} {
		if _, err := render(t, packed, values); err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
