package check

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// This file writes down what a controller's own client asks for. It needs no audit log, and sees the body of a delete.

// Wire is a log of the writes that went through a client. Give Wrap to rest.Config.Wrap, below any transport that
// injects faults, so that it sees what the server answered and not what the controller was told.
type Wire struct {
	// User is the name to log.
	User string

	mu      sync.Mutex
	entries []Entry
}

// Entries returns what was written so far.
func (w *Wire) Entries() []Entry {
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Entry(nil), w.entries...)
}

// Wrap returns a transport that logs.
func (w *Wire) Wrap(next http.RoundTripper) http.RoundTripper { return wired{w, next} }

type wired struct {
	wire *Wire
	next http.RoundTripper
}

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// RoundTrip sends the request and logs it if it is a write that the server answered.
func (t wired) RoundTrip(request *http.Request) (*http.Response, error) {
	entry := Entry{User: t.wire.User, UserAgent: request.UserAgent(), Verb: verbs[request.Method]}
	if entry.Verb == "" || request.URL.Query().Has("dryRun") || !entry.path(request.URL.Path) {
		return t.next.RoundTrip(request)
	}
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		if err != nil {
			return nil, err
		}
		_ = request.Body.Close()
		request = request.Clone(request.Context())
		request.Body = io.NopCloser(bytes.NewReader(body))
		entry.readBody(body)
	}
	response, err := t.next.RoundTrip(request)
	if err != nil {
		return nil, err
	}
	body, err := io.ReadAll(response.Body)
	_ = response.Body.Close()
	if err != nil {
		return nil, err
	}
	response.Body = io.NopCloser(bytes.NewReader(body))
	entry.Code = response.StatusCode
	if o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		entry.readTyped(o)
	} else {
		entry.readResponse(body) // a custom resource
	}
	t.wire.mu.Lock()
	defer t.wire.mu.Unlock()
	t.wire.entries = append(t.wire.entries, entry)
	return response, nil
}

// path reads the object from /api/v1/namespaces/NS/pods/NAME/status, or /apis/GROUP/VERSION/....
func (e *Entry) path(path string) bool {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	switch {
	case len(parts) > 2 && parts[0] == "api":
		parts = parts[2:]
	case len(parts) > 3 && parts[0] == "apis":
		e.Group, parts = parts[1], parts[3:]
	default:
		return false
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		e.Namespace, parts = parts[1], parts[2:]
	}
	for i, field := range []*string{&e.Resource, &e.Name, &e.Subresource} {
		if i < len(parts) {
			*field = parts[i]
		}
	}
	if e.Verb == "delete" && e.Name == "" {
		e.Verb = "deletecollection"
	}
	return true
}

// readBody takes the precondition of a delete, whichever encoding the client speaks.
func (e *Entry) readBody(body []byte) {
	if e.Verb != "delete" {
		return
	}
	if o, _, err := clientgoscheme.Codecs.UniversalDeserializer().Decode(body, nil, nil); err == nil {
		if encoded, err := json.Marshal(o); err == nil {
			e.readRequest(encoded)
			return
		}
	}
	e.readRequest(body)
}

func (e *Entry) readTyped(o runtime.Object) {
	switch o := o.(type) {
	case *metav1.Status:
		if o.Details != nil {
			e.UID = o.Details.UID
		}
	case metav1.Object:
		e.readObject(o)
	}
}
