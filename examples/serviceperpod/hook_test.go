package serviceperpod

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func ask(t *testing.T, path, body string) (status int, answer string) {
	t.Helper()
	server := httptest.NewServer(Hook())
	defer server.Close()
	r, err := http.Post(server.URL+path, "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	b, err := io.ReadAll(r.Body)
	if err != nil {
		t.Fatal(err)
	}
	return r.StatusCode, strings.TrimSpace(string(b))
}

func object(ports, spec string) string {
	return `{"object": {"metadata": {"name": "db", "annotations": {"service-per-pod-label": "pod", "service-per-pod-ports": "` + ports + `"}}, "spec": {` + spec + `}}`
}

func TestSync(t *testing.T) {
	status, got := ask(t, "/sync", object("80:8080,443", `"replicas": 2, "ordinals": {"start": 4}`)+`}`)
	const ports = `"ports": [{"name": "port-80", "port": 80, "targetPort": 8080}, {"name": "port-443", "port": 443, "targetPort": 443}]`
	const want = `{"finalized": false, "attachments": [
		{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db-4", "labels": {"app": "service-per-pod"}}, "spec": {"selector": {"pod": "db-4"}, ` + ports + `}},
		{"apiVersion": "v1", "kind": "Service", "metadata": {"name": "db-5", "labels": {"app": "service-per-pod"}}, "spec": {"selector": {"pod": "db-5"}, ` + ports + `}}]}`
	if diff := cmp.Diff(parsed(t, want), parsed(t, got)); diff != "" || status != http.StatusOK {
		t.Errorf("%d, %s", status, diff)
	}
	if _, got = ask(t, "/sync", object("80", "")+`}`); strings.Count(got, `"Service"`) != 1 {
		t.Errorf("without replicas: %s", got)
	}
	if _, got = ask(t, "/sync", object("80", `"replicas": 0`)+`}`); got != `{"attachments":[],"finalized":false}` {
		t.Errorf("without pods: %s", got)
	}
}

func parsed(t *testing.T, text string) (out any) {
	t.Helper()
	if err := json.Unmarshal([]byte(text), &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func TestFinalize(t *testing.T) {
	left := object("80", "") + `, "attachments": {"Service.v1": {"db-0": {}}}, "finalizing": true}`
	if _, got := ask(t, "/finalize", left); got != `{"attachments":[],"finalized":false}` {
		t.Errorf("while a Service is left: %s", got)
	}
	if _, got := ask(t, "/finalize", object("80", "")+`, "attachments": {"Service.v1": {}}, "finalizing": true}`); got != `{"attachments":[],"finalized":true}` {
		t.Errorf("when none is: %s", got)
	}
}

func TestAnnotationsThatCannotBeRead(t *testing.T) {
	for _, ports := range []string{"", "http", "80:http", "80,,81"} {
		if status, got := ask(t, "/sync", object(ports, "")+`}`); status != http.StatusUnprocessableEntity || !strings.Contains(got, "is no port") {
			t.Errorf("%q: %d, %s", ports, status, got)
		}
	}
	if status, _ := ask(t, "/sync", "{"); status != http.StatusBadRequest {
		t.Errorf("half a question: %d", status)
	}
}
