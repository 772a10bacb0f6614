package main

import (
	"bytes"
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
	r, err := http.Post(url+"/sync", "application/json", strings.NewReader(body)) //nolint:gosec,noctx // a server of this test
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = r.Body.Close() }()
	if err := json.NewDecoder(r.Body).Decode(&answer); err != nil || r.StatusCode != http.StatusOK {
		t.Fatalf("%s: %v", r.Status, err)
	}
	for _, child := range answer["children"].([]any) { //nolint:forcetypeassert // the hook's own shape
		names = append(names, child.(m)["metadata"].(m)["name"].(string)) //nolint:forcetypeassert // likewise
	}
	return names, answer
}

const parent = `"parent": {"metadata": {"name": "nap"}, "spec": {"replicas": 3, "serviceName": "naps",
	"template": {"metadata": {"labels": {"app": "nap"}}, "spec": {"containers": [{"name": "cat", "image": "cat:1"}]}}}}`

func children(ready ...string) string {
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
	"at first":              {children(), []string{"nap-0"}, 0},
	"one is not ready":      {children("nap-0=False"), []string{"nap-0"}, 0},
	"one is":                {children("nap-0=True"), []string{"nap-1", "nap-0"}, 1},
	"all are":               {children("nap-0=True", "nap-1=True", "nap-2=True"), []string{"nap-2", "nap-1", "nap-0"}, 3},
	"the first is lost":     {children("nap-1=True", "nap-2=True"), []string{"nap-2", "nap-1", "nap-0"}, 2},
	"one too many":          {children("nap-0=True", "nap-1=True", "nap-2=True", "nap-3=True"), []string{"nap-2", "nap-1", "nap-0"}, 3},
	"no children are there": {`{` + parent + `, "children": {"Pod.v1": {}}}`, []string{"nap-0"}, 0},
}

func TestSync(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			names, answer := ask(t, server.URL, c.body)
			if !reflect.DeepEqual(names, c.names) || answer["status"].(m)["readyReplicas"] != c.ready { //nolint:forcetypeassert // the hook's own
				t.Errorf("%v, %v", names, answer["status"])
			}
			spec := answer["children"].([]any)[0].(m)["spec"].(m) //nolint:forcetypeassert // likewise
			if spec["hostname"] != names[0] || spec["subdomain"] != "naps" || spec["containers"] == nil {
				t.Errorf("%v", spec)
			}
		})
	}
	r, err := http.Post(server.URL, "application/json", strings.NewReader("{")) //nolint:noctx // a server of this test
	if err != nil || r.StatusCode != http.StatusBadRequest {
		t.Errorf("%v, %v", r, err)
	}
}

// TestPythonAnswersTheSame: whichever of the two one learns from, it is the same CatSet.
func TestPythonAnswersTheSame(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // to find a free port
	if err != nil {
		t.Fatal(err)
	}
	address := listener.Addr().String()
	_ = listener.Close()
	var stderr bytes.Buffer
	python := exec.CommandContext(t.Context(), "python3", "../python/catset.py", address)
	python.Stderr = &stderr
	if err := python.Start(); err != nil {
		t.Fatalf("this test needs python3: %v", err)
	}
	deadline := time.Now().Add(20 * time.Second)
	for {
		c, err := net.Dial("tcp", address) //nolint:noctx // a server of this test
		if err == nil {
			_ = c.Close()
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("it does not listen: %s", &stderr)
		}
		time.Sleep(20 * time.Millisecond) // nothing tells when another process listens
	}
	server := httptest.NewServer(http.HandlerFunc(serve))
	defer server.Close()
	for name, c := range cases {
		_, want := ask(t, server.URL, c.body)
		if _, got := ask(t, "http://"+address, c.body); !reflect.DeepEqual(got, want) {
			t.Errorf("%s: Python answers %v, Go %v", name, got, want)
		}
	}
}
