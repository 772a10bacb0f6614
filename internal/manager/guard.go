package manager

import (
	"io"
	"net/http"
	"regexp"
	"strings"
)

// This file keeps a manager that no longer leads from writing. Leader election alone does not: it reads the lease every
// few seconds, and a process that was stopped, or whose machine slept, continues where it was, beside the new leader.
// See docs/design/log/2026-11-22-writes-need-a-lease.md.

// guard goes into [rest.Config.Wrap]. It costs no request.
func (t *term) guard(next http.RoundTripper) http.RoundTripper { return &guarded{term: t, next: next} }

type guarded struct {
	term *term
	next http.RoundTripper
}

// RoundTrip sends reads and events at once, and a write while the lease is known to be ours. Otherwise the write waits,
// and fails with an error if the lease is lost.
func (g *guarded) RoundTrip(req *http.Request) (*http.Response, error) {
	if harmless(req) {
		return g.next.RoundTrip(req)
	}
	if err := g.term.await(req.Context()); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	// The process may also be stopped after this check. A request with a body is checked again when the body is sent; the
	// API server does not process a request without its end.
	if req.Body != nil && req.Body != http.NoBody {
		out := *req
		out.Body = &guardedBody{ReadCloser: req.Body, term: g.term}
		if again := req.GetBody; again != nil {
			out.GetBody = func() (io.ReadCloser, error) {
				body, err := again()
				if err != nil {
					return nil, err
				}
				return &guardedBody{ReadCloser: body, term: g.term}, nil
			}
		}
		req = &out
	}
	return g.next.RoundTrip(req)
}

// WrappedRoundTripper lets Kubernetes' libraries find the transport below.
func (g *guarded) WrappedRoundTripper() http.RoundTripper { return g.next }

// guardedBody is a body that ends with an error when the term does.
type guardedBody struct {
	io.ReadCloser

	term *term
}

// Read is io.Reader's.
func (b *guardedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if refused := b.term.may(); refused != nil {
		return 0, refused
	}
	return n, err
}

var coreEvents = regexp.MustCompile(`/api/v1/namespaces/[^/]+/events(/|$)`)

// harmless reports whether a request is a read, or an event: events only inform users, whichever manager leads.
func harmless(req *http.Request) bool {
	switch req.Method {
	case http.MethodGet, http.MethodHead, http.MethodOptions:
		return true
	}
	return strings.Contains(req.URL.Path, "/apis/events.k8s.io/") || coreEvents.MatchString(req.URL.Path)
}
