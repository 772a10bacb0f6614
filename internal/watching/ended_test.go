package watching

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Paths of lists and watches, behind a prefix as well, and of nothing else.
func TestResourceOf(t *testing.T) {
	for path, want := range map[string]string{
		"/api/v1/pods":                                  "/v1/pods",
		"/api/v1/namespaces":                            "/v1/namespaces",
		"/api/v1/namespaces/a/pods":                     "/v1/pods",
		"/apis/apps/v1/controllerrevisions":             "apps/v1/controllerrevisions",
		"/apis/ctl.example/v1/namespaces/a/catsets":     "ctl.example/v1/catsets",
		"/k8s/clusters/c-1/apis/ctl.example/v1/catsets": "ctl.example/v1/catsets",
		"/apis/ctl.example/v1":                          "",
		"/api/v1/namespaces/a/pods/web-0":               "",
		"/apis/ctl.example/v1/namespaces/a/catsets/x":   "",
		"/healthz": "",
	} {
		got := ""
		if of, ok := resourceOf(path); ok {
			got = of.Group + "/" + of.Version + "/" + of.Resource
		}
		if got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
}

// answers answers every request alike.
type answers struct {
	status int
	body   io.ReadCloser
}

func (a answers) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: a.status, Body: a.body}, nil
}

// A watch is told of once, when it has ended, and a list only if it is refused.
func TestEnds(t *testing.T) {
	for name, c := range map[string]struct {
		query  string
		status int
		before bool // told of before the stream has ended
		after  bool
	}{
		"a watch":         {"watch=true", http.StatusOK, false, true},
		"a refused watch": {"watch=true", http.StatusForbidden, true, true},
		"a list":          {"", http.StatusOK, false, false},
		"a refused list":  {"", http.StatusNotFound, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			told := 0
			way := tattling{answers{c.status, io.NopCloser(strings.NewReader("{}"))}, func(of schema.GroupVersionResource) {
				if of.Resource != "catsets" {
					t.Errorf("told of %v", of)
				}
				told++
			}}
			u := &url.URL{Path: "/apis/ctl.example/v1/catsets", RawQuery: c.query}
			response, err := way.RoundTrip(&http.Request{Method: http.MethodGet, URL: u})
			if err != nil {
				t.Fatal(err)
			}
			if (told == 1) != c.before {
				t.Errorf("told %d times before the end", told)
			}
			if _, err := io.ReadAll(response.Body); err != nil {
				t.Error(err)
			}
			if err := response.Body.Close(); err != nil {
				t.Error(err)
			}
			if (told == 1) != c.after || told > 1 {
				t.Errorf("told %d times", told)
			}
		})
	}
}
