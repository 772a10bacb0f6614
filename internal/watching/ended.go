package watching

import (
	"io"
	"net/http"
	"strings"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file sees from the requests of a cache that a watch has ended, or could not begin: a reflector tells of errors
// only.

// tattling carries the requests of a cache, and tells of each watch that has ended and each list or watch that was
// refused.
type tattling struct {
	http.RoundTripper

	tell func(schema.GroupVersionResource)
}

// RoundTrip implements [http.RoundTripper].
func (t tattling) RoundTrip(r *http.Request) (*http.Response, error) {
	response, err := t.RoundTripper.RoundTrip(r)
	if err != nil || r.Method != http.MethodGet {
		return response, err
	}
	of, ok := resourceOf(r.URL.Path)
	switch {
	case !ok:
	case response.StatusCode >= http.StatusBadRequest:
		t.tell(of)
	case r.URL.Query().Get("watch") == "true":
		response.Body = &watched{ReadCloser: response.Body, end: sync.OnceFunc(func() { t.tell(of) })}
	}
	return response, nil
}

// watched is the stream of a watch.
type watched struct {
	io.ReadCloser

	end func()
}

func (w *watched) Read(p []byte) (int, error) {
	n, err := w.ReadCloser.Read(p)
	if err != nil {
		w.end()
	}
	return n, err
}

func (w *watched) Close() error {
	w.end()
	return w.ReadCloser.Close()
}

// resourceOf is the resource that is listed under a path of the API: of all namespaces or of one, behind whatever
// prefix the server has.
func resourceOf(path string) (schema.GroupVersionResource, bool) {
	var of schema.GroupVersionResource
	if _, rest, found := strings.Cut(path, "/apis/"); found {
		parts := strings.SplitN(rest, "/", 3)
		if len(parts) < 3 {
			return of, false
		}
		of.Group, of.Version, path = parts[0], parts[1], parts[2]
	} else if _, rest, found := strings.Cut(path, "/api/"); found {
		version, rest, _ := strings.Cut(rest, "/")
		of.Version, path = version, rest
	} else {
		return of, false
	}
	if rest, found := strings.CutPrefix(path, "namespaces/"); found {
		if _, in, found := strings.Cut(rest, "/"); found {
			path = in
		}
	}
	of.Resource = path
	return of, path != "" && !strings.Contains(path, "/")
}
