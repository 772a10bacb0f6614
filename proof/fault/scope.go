package fault

import (
	"net/http"
	"path"
	"slices"
)

// This file keeps a manager inside one namespace, so that several of them can run at once on one cluster, each in the
// middle of its own scenario, and so that what one run leaves behind costs the next one no write. And it keeps events
// from the API server, which would spend a fifth of a sweep on them.

// Within returns a wrapper for rest.Config.Wrap that turns each list and watch of a resource over all namespaces into
// one of a single namespace. The manager believes that it sees the whole cluster. Resources are those to narrow, by
// their plural names; cluster-wide ones, such as nodes, are left out.
func Within(namespace string, resources ...string) func(http.RoundTripper) http.RoundTripper {
	return func(next http.RoundTripper) http.RoundTripper {
		return &scope{namespace: namespace, resources: resources, next: next}
	}
}

type scope struct {
	namespace string
	resources []string
	next      http.RoundTripper
}

// WrappedRoundTripper is for client-go, which looks for the transport underneath.
func (s *scope) WrappedRoundTripper() http.RoundTripper { return s.next }

// RoundTrip sends the request to one namespace if it is for all of them.
func (s *scope) RoundTrip(req *http.Request) (*http.Response, error) {
	info, err := requestInfo.NewRequestInfo(req)
	all := err == nil && info.IsResourceRequest && (info.Verb == "list" || info.Verb == "watch") && info.Namespace == "" && info.Name == ""
	if !all || !slices.Contains(s.resources, info.Resource) {
		return s.next.RoundTrip(req)
	}
	// The path of such a request ends with the resource.
	out := req.Clone(req.Context())
	out.URL.Path = path.Join(path.Dir(req.URL.Path), "namespaces", s.namespace, info.Resource)
	out.URL.RawPath = ""
	return s.next.RoundTrip(out)
}

// WithoutEvents is a wrapper for rest.Config.Wrap that answers the creation of an event with the event, and sends
// nothing: no promise is about events, no fault is for them, and nobody reads those of a sweep.
func WithoutEvents(next http.RoundTripper) http.RoundTripper { return &eventless{next} }

type eventless struct{ next http.RoundTripper }

// WrappedRoundTripper is for client-go, which looks for the transport underneath.
func (e *eventless) WrappedRoundTripper() http.RoundTripper { return e.next }

// RoundTrip sends the request unless it creates an event.
func (e *eventless) RoundTrip(req *http.Request) (*http.Response, error) {
	info, err := requestInfo.NewRequestInfo(req)
	if err != nil || info.Verb != "create" || info.Resource != "events" {
		return e.next.RoundTrip(req)
	}
	return &http.Response{
		Status: "201 Created", StatusCode: http.StatusCreated, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: http.Header{"Content-Type": req.Header["Content-Type"]}, Body: req.Body, ContentLength: req.ContentLength, Request: req,
	}, nil
}
