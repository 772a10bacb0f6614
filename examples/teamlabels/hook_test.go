package teamlabels

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestHook(t *testing.T) {
	server := httptest.NewServer(Hook())
	defer server.Close()
	const object = `"object": {"metadata": {"namespace": "a"}}`
	for name, c := range map[string]struct{ path, body, want string }{
		"customize": {
			"/customize", `{"parent": {"metadata": {"namespace": "a"}}}`,
			`{"relatedResources":[{"apiVersion":"v1","names":["a"],"resource":"namespaces"}]}`,
		},
		"both labels": {
			"/sync", `{` + object + `, "related": {"Namespace.v1": {"a": {"metadata": {"labels": {"team": "x", "cost-centre": "7", "other": "o"}}}}}}`,
			`{"labels":{"cost-centre":"7","team":"x"}}`,
		},
		"one is not there": {
			"/sync", `{` + object + `, "related": {"Namespace.v1": {"a": {"metadata": {"labels": {"team": ""}}}}}}`,
			`{"labels":{"cost-centre":null,"team":""}}`,
		},
		"the namespace is not known": {"/sync", `{` + object + `, "related": {"Namespace.v1": {}}}`, `{"labels":{}}`},
	} {
		t.Run(name, func(t *testing.T) {
			r, err := http.Post(server.URL+c.path, "application/json", strings.NewReader(c.body))
			if err != nil {
				t.Fatal(err)
			}
			defer func() { _ = r.Body.Close() }()
			got, err := io.ReadAll(r.Body)
			if err != nil || r.StatusCode != http.StatusOK || strings.TrimSpace(string(got)) != c.want {
				t.Errorf("%s %s, %v; want %s", r.Status, got, err, c.want)
			}
		})
	}
}
