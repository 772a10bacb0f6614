package recording

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"sync"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	clientgoscheme "k8s.io/client-go/kubernetes/scheme"
)

// This file writes down what a controller's own client asks for. It needs no audit log, and sees the body of a delete.

// Wire is a log of the writes that went through a client. Give Wrap to rest.Config.Wrap, below any transport that
// injects faults, so that it sees what the server answered and not what the controller was told. A write that the
// controller gives up, because its process is killed say, is followed to its end: the server may do it all the same.
type Wire struct {
	// User is the name to log.
	User string

	mu      sync.Mutex
	entries []Entry
	due     map[chan struct{}]bool // closed when the answer is in entries, or will never be
}

// Entries returns what was written so far. It waits for the answers that are due, and not for those to requests that
// are sent meanwhile: writers may go on.
func (w *Wire) Entries() []Entry {
	w.mu.Lock()
	due := slices.Collect(maps.Keys(w.due))
	w.mu.Unlock()
	for _, answered := range due {
		<-answered
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	return append([]Entry(nil), w.entries...)
}

// expect notes that an answer is due, and returns the channel that says that it is there.
func (w *Wire) expect() chan struct{} {
	done := make(chan struct{})
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.due == nil {
		w.due = map[chan struct{}]bool{}
	}
	w.due[done] = true
	return done
}

func (w *Wire) answered(done chan struct{}) {
	w.mu.Lock()
	delete(w.due, done)
	w.mu.Unlock()
	close(done)
}

// Wrap returns a transport that logs.
func (w *Wire) Wrap(next http.RoundTripper) http.RoundTripper { return wired{w, next} }

type wired struct {
	wire *Wire
	next http.RoundTripper
}

// WrappedRoundTripper is for client-go, which looks for the transport underneath.
func (t wired) WrappedRoundTripper() http.RoundTripper { return t.next }

var verbs = map[string]string{
	http.MethodPost: "create", http.MethodPut: "update", http.MethodPatch: "patch", http.MethodDelete: "delete",
}

// RoundTrip sends the request and logs it if it is a write that the server answered.
func (t wired) RoundTrip(request *http.Request) (*http.Response, error) {
	entry := Entry{User: t.wire.User, UserAgent: request.UserAgent(), Verb: verbs[request.Method]}
	if entry.Verb == "" || request.URL.Query().Has("dryRun") || !entry.path(request.URL.Path) {
		return t.next.RoundTrip(request)
	}
	caller := request.Context()
	request = request.Clone(context.WithoutCancel(caller))
	if request.Body != nil {
		body, err := io.ReadAll(request.Body)
		_ = request.Body.Close()
		if err != nil {
			return nil, err
		}
		request.Body = io.NopCloser(bytes.NewReader(body))
		entry.readBody(body)
	}
	var (
		response *http.Response
		err      error
		done     = t.wire.expect()
	)
	go func() {
		defer t.wire.answered(done)
		response, err = t.send(request, entry) //nolint:bodyclose // it is in memory, and the caller closes it
	}()
	select {
	case <-done:
		return response, err
	case <-caller.Done():
		return nil, caller.Err()
	}
}

// send waits for the whole answer and logs it.
func (t wired) send(request *http.Request, entry Entry) (*http.Response, error) {
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

// readBody takes the precondition of a delete and the counters of a status, whichever encoding the client speaks.
func (e *Entry) readBody(body []byte) {
	if e.Verb != "delete" && e.Subresource != "status" {
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
