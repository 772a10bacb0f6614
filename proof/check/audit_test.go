package check_test

import (
	"io"
	"net/http"
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/proof/check"
	"github.com/cairn-dev/cairn/proof/check/recording"
)

// This file joins requests to what they did.

const auditLog = `
{"kind":"Event","stage":"RequestReceived","verb":"delete","user":{"username":"a"},"objectRef":{"resource":"pods","namespace":"ns","name":"web-n1-h1"}}
{"kind":"Event","stage":"ResponseComplete","verb":"get","user":{"username":"a"},"objectRef":{"resource":"pods","namespace":"ns","name":"web-n1-h1"}}
{"kind":"Event","stage":"ResponseComplete","verb":"delete","user":{"username":"admin"},"impersonatedUser":{"username":"sa"},"userAgent":"cairn/1 (x)","objectRef":{"resource":"pods","namespace":"ns","name":"web-n1-h1"},"requestObject":{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"U1"}},"responseStatus":{"code":200},"responseObject":{"kind":"Pod","apiVersion":"v1","metadata":{"name":"web-n1-h1","uid":"U1","resourceVersion":"109"}}}
{"kind":"Event","stage":"ResponseComplete","verb":"delete","user":{"username":"b"},"objectRef":{"resource":"controllerrevisions","apiGroup":"apps","namespace":"ns","name":"r"},"responseStatus":{"code":200},"responseObject":{"kind":"Status","apiVersion":"v1","details":{"uid":"U2"}}}
`

func TestParseAudit(t *testing.T) {
	entries, err := recording.ParseAudit(strings.NewReader(strings.TrimSpace(auditLog)))
	if err != nil {
		t.Fatal(err)
	}
	want := []check.Entry{
		{User: "sa", UserAgent: "cairn/1 (x)", Verb: "delete", Resource: "pods", Namespace: "ns", Name: "web-n1-h1", Code: 200, UID: "U1", RV: 109, Precondition: "U1"},
		{User: "b", Verb: "delete", Group: "apps", Resource: "controllerrevisions", Namespace: "ns", Name: "r", Code: 200, UID: "U2", Unread: true},
	}
	if len(entries) != 2 || entries[0] != want[0] || entries[1] != want[1] {
		t.Errorf("got  %+v\nwant %+v", entries, want)
	}
	if _, err := recording.ParseAudit(strings.NewReader("{\n")); err == nil {
		t.Error("a torn line was read")
	}
}

func TestAttach(t *testing.T) {
	w := newWorld(t)
	second(w) // 109 the edit, 110 the revision
	w.mark("web-n1-h1")
	w.remove(&corev1.Pod{}, "web-n1-h1")
	w.remove(&appsv1.ControllerRevision{}, "web-h2") // at once
	h := w.history()
	for i := range h.Events {
		h.Events[i].By = nil
	}
	pod := h.Events[2]
	request := func(verb, group, resource, name string, rv uint64) check.Entry {
		return check.Entry{User: manager, Verb: verb, Group: group, Resource: resource, Namespace: namespace, Name: name, RV: rv, Code: 200}
	}
	noop := request("patch", "apps", "daemonsets", "web", h.Events[0].RV)
	noop.Subresource = "status" // what it found was the user's edit
	failed := request("delete", "", "pods", "web-n1-h1", 0)
	failed.Code, failed.User = 409, "late"
	gone := request("delete", "apps", "controllerrevisions", "web-h2", 0)
	gone.UID = h.Events[4].Old.GetUID()
	lost := h.Attach([]check.Entry{
		noop, request("create", "apps", "controllerrevisions", "web-h2", h.Events[1].RV),
		failed, request("delete", "", "pods", "web-n1-h1", pod.RV), gone,
		request("patch", "apps", "controllerrevisions", "web-h2", h.Events[1].RV), // changed nothing
	}, func(e *check.Entry) bool { return e.User == manager })
	var got []string
	for _, e := range h.Events {
		verb := "-"
		if e.By != nil {
			verb = e.By.Verb
		}
		got = append(got, verb)
	}
	if s := strings.Join(got, " "); s != "- create delete - delete" {
		t.Errorf("got %s", s)
	}
	if len(lost) != 2 {
		t.Errorf("lost %+v", lost)
	}
}

type server func(*http.Request) *http.Response

func (s server) RoundTrip(r *http.Request) (*http.Response, error) { return s(r), nil }

func TestWire(t *testing.T) {
	wire := &recording.Wire{User: "sa"}
	sent := ""
	answer := `{"kind":"Pod","apiVersion":"v1","metadata":{"name":"p","uid":"U","resourceVersion":"7"}}`
	client := http.Client{Transport: wire.Wrap(server(func(r *http.Request) *http.Response {
		if r.Body != nil {
			body, _ := io.ReadAll(r.Body)
			sent = string(body)
		}
		return &http.Response{StatusCode: http.StatusOK, Body: io.NopCloser(strings.NewReader(answer))}
	}))}
	do := func(method, path, body string) {
		t.Helper()
		r, err := http.NewRequest(method, "http://x"+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		response, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, _ := io.ReadAll(response.Body); string(got) != answer {
			t.Errorf("the client got %s", got)
		}
	}
	options := `{"kind":"DeleteOptions","apiVersion":"v1","preconditions":{"uid":"U"}}`
	do(http.MethodGet, "/api/v1/namespaces/ns/pods/p", "")
	do(http.MethodPatch, "/apis/apps/v1/namespaces/ns/daemonsets/web/status?dryRun=All", "{}")
	do(http.MethodDelete, "/api/v1/namespaces/ns/pods/p", options)
	if sent != options {
		t.Errorf("the server got %s", sent)
	}
	do(http.MethodPatch, "/apis/apps/v1/namespaces/ns/daemonsets/web/status", "{}")
	do(http.MethodPost, "/api/v1/nodes", "{}")
	do(http.MethodDelete, "/api/v1/namespaces/ns/pods", "")
	got := wire.Entries()
	want := []check.Entry{
		{Verb: "delete", Resource: "pods", Namespace: "ns", Name: "p", Precondition: "U"},
		{Verb: "patch", Group: "apps", Resource: "daemonsets", Namespace: "ns", Name: "web", Subresource: "status"},
		{Verb: "create", Resource: "nodes", Name: "p"},
		{Verb: "deletecollection", Resource: "pods", Namespace: "ns", Name: "p"},
	}
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, e := range want {
		e.User, e.Code, e.UID, e.RV = "sa", 200, types.UID("U"), 7
		if got[i] != e {
			t.Errorf("got  %+v\nwant %+v", got[i], e)
		}
	}
}
