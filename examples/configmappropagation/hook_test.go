package configmappropagation

import (
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

const parent = `"parent": {"metadata": {"name": "p"}, "spec": {"source": {"namespace": "a", "name": "motd"}, "namespaceSelector": {"matchLabels": {"x": "y"}}}}`

// asks fails the test unless the hook answers so.
func asks(t *testing.T, path, body, want string) {
	t.Helper()
	server := httptest.NewServer(Hook())
	defer server.Close()
	r, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	var got, expected any
	if err := json.NewDecoder(r.Body).Decode(&got); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", r.Status, err)
	}
	if err := json.Unmarshal([]byte(want), &expected); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(expected, got); diff != "" {
		t.Error(diff)
	}
}

func TestCustomize(t *testing.T) {
	asks(t, "/customize", `{`+parent+`}`, `{"relatedResources": [
		{"apiVersion": "v1", "resource": "configmaps", "namespace": "a", "names": ["motd"]},
		{"apiVersion": "v1", "resource": "namespaces", "labelSelector": {"matchLabels": {"x": "y"}}}]}`)
}

func TestSync(t *testing.T) {
	const namespaces = `"Namespace.v1": {"c": {}, "a": {}, "b": {}, "going": {"metadata": {"deletionTimestamp": "2026-11-21T00:00:00Z"}}}`
	const meta = `"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "motd", "labels": {"propagated-by": "p"}, "namespace":`
	for name, c := range map[string]struct{ children, related, want string }{
		"a source": {
			``, `"ConfigMap.v1": {"a/motd": {"data": {"k": "v"}, "binaryData": {"b": "AA=="}}}, ` + namespaces,
			`{"status": {"copies": 2, "conditions": [{"type": "SourceFound", "status": "True", "message": "copies follow the source"}]}, "children": [
			{` + meta + `"b"}, "data": {"k": "v"}, "binaryData": {"b": "AA=="}}, {` + meta + `"c"}, "data": {"k": "v"}, "binaryData": {"b": "AA=="}}]}`,
		},
		"a source of nothing": {
			`"b/motd": {"data": {"k": "old"}}`, `"ConfigMap.v1": {"a/motd": {}}, "Namespace.v1": {"b": {}}`,
			`{"status": {"copies": 1, "conditions": [{"type": "SourceFound", "status": "True", "message": "copies follow the source"}]}, "children": [{` + meta + `"b"}}]}`,
		},
		"no source": {
			`"b/motd": {"data": {"k": "old"}}, "gone/motd": {}`, `"ConfigMap.v1": {}, ` + namespaces,
			`{"status": {"copies": 1, "conditions": [{"type": "SourceFound", "status": "False", "message": "copies stay as they are"}]}, "children": [
			{` + meta + `"b"}, "data": {"k": "old"}}]}`,
		},
		"no namespace": {
			``, `"ConfigMap.v1": {"a/motd": {}}, "Namespace.v1": {}`,
			`{"status": {"copies": 0, "conditions": [{"type": "SourceFound", "status": "True", "message": "copies follow the source"}]}, "children": []}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			asks(t, "/sync", `{`+parent+`, "children": {"ConfigMap.v1": {`+c.children+`}}, "related": {`+c.related+`}}`, c.want)
		})
	}
}
