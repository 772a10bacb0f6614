package catset

import (
	"bytes"
	"context"
	"encoding/json"
	"net"
	"net/http"
	"net/http/httptest"
	"os/exec"
	"reflect"
	"strings"
	"testing"
	"time"
)

// ask sends a request to the hook, and returns the names of the pods in its answer, and the answer.
func ask(t *testing.T, url, body string) (names []string, answer m) {
	t.Helper()
	r, err := http.Post(url+"/sync", "application/json", strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", r.Status, err)
	}
	for _, child := range answer["children"].([]any) {
		names = append(names, child.(m)["metadata"].(m)["name"].(string))
	}
	return names, answer
}

// parent is a CatSet of three that has once grown to so many.
func parent(status, spec string) string {
	return `"parent": {"metadata": {"name": "nap"}, "status": {` + status + `}, "spec": {` + spec + `
	"template": {"metadata": {"labels": {"app": "nap"}}, "spec": {"containers": [{"name": "cat", "image": "cat:1"}]}}}}`
}

const three = `"replicas": 3, "serviceName": "naps",`

// children is what the hook is told of pods, such as nap-0=True for one that is ready.
func children(parent string, ready ...string) string {
	pods := make([]string, 0, len(ready))
	for _, r := range ready {
		name, status, _ := strings.Cut(r, "=")
		pods = append(pods, `"`+name+`": {"status": {"conditions": [{"type": "Ready", "status": "`+status+`"}]}}`)
	}
	return `{` + parent + `, "children": {"Pod.v1": {` + strings.Join(pods, ",") + `}}}`
}

var cases = map[string]struct {
	body  string
	names []string
	ready float64
}{
	"at first":               {children(parent("", three)), []string{"nap-0"}, 0},
	"one is not ready":       {children(parent(`"replicas": 1`, three), "nap-0=False"), []string{"nap-0"}, 0},
	"one is":                 {children(parent(`"replicas": 1`, three), "nap-0=True"), []string{"nap-1", "nap-0"}, 1},
	"all are":                {children(parent(`"replicas": 3`, three), "nap-0=True", "nap-1=True", "nap-2=True"), []string{"nap-2", "nap-1", "nap-0"}, 3},
	"the first is lost":      {children(parent(`"replicas": 3`, three), "nap-1=True", "nap-2=True"), []string{"nap-2", "nap-1", "nap-0"}, 2},
	"the last is lost":       {children(parent(`"replicas": 3`, three), "nap-0=True", "nap-1=False"), []string{"nap-2", "nap-1", "nap-0"}, 1},
	"the status is lost":     {children(parent("", three), "nap-1=False", "nap-2=True"), []string{"nap-2", "nap-1", "nap-0"}, 1},
	"one too many":           {children(parent(`"replicas": 4`, three), "nap-0=True", "nap-1=True", "nap-2=True", "nap-3=True"), []string{"nap-2", "nap-1", "nap-0"}, 3},
	"without a service":      {children(parent("", `"replicas": 1,`)), []string{"nap-0"}, 0},
	"a pod without a status": {`{` + parent("", three) + `, "children": {"Pod.v1": {"nap-0": {}}}}`, []string{"nap-0"}, 0},
}

func TestSync(t *testing.T) {
	server := httptest.NewServer(Hook())
	defer server.Close()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			names, answer := ask(t, server.URL, c.body)
			status := answer["status"].(m)
			if !reflect.DeepEqual(names, c.names) || status["readyReplicas"] != c.ready || status["replicas"] != float64(len(names)) {
				t.Errorf("%v, %v", names, answer["status"])
			}
			spec := answer["children"].([]any)[0].(m)["spec"].(m)
			if spec["hostname"] != names[0] || spec["containers"] == nil {
				t.Errorf("%v", spec)
			}
			if _, given := spec["subdomain"]; given != strings.Contains(c.body, "naps") {
				t.Errorf("%v", spec)
			}
		})
	}
}

func TestNobodyWantsAny(t *testing.T) {
	server := httptest.NewServer(Hook())
	defer server.Close()
	// An answer without children is a failure: none is an empty list.
	if names, answer := ask(t, server.URL, children(parent(`"replicas": 3`, `"replicas": 0,`), "nap-0=True")); len(names) > 0 {
		t.Errorf("%v", answer)
	}
	r, err := http.Post(server.URL+"/sync", "application/json", strings.NewReader("{"))
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Errorf("%v, %v", r, err)
	}
}

// TestPythonAnswersTheSame: whichever of the two one learns from, it is the same CatSet.
func TestPythonAnswersTheSame(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	var stderr bytes.Buffer
	python := exec.CommandContext(context.WithoutCancel(t.Context()), "python3", "python/catset.py", address)
	python.Stderr = &stderr
	if err := python.Start(); err != nil {
		t.Fatalf("this test needs python3: %v", err)
	}
	t.Cleanup(func() { // the context alone kills it too late: by then this process may have ended
		_ = python.Process.Kill()
		_ = python.Wait()
	})
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.Dial("tcp", address)
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not listen: %s", &stderr)
		}
		time.Sleep(20 * time.Millisecond) //nolint:forbidigo // nothing tells when another process listens
	}
	server := httptest.NewServer(Hook())
	defer server.Close()
	for name, c := range cases {
		_, want := ask(t, server.URL, c.body)
		if _, got := ask(t, "http://"+address, c.body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Python answers %v, Go %v", name, got, want)
		}
	}
}
