package manager

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// TestProfiles: the pages that go tool pprof asks for are there, and nothing else.
func TestProfiles(t *testing.T) {
	for path, want := range map[string]struct {
		code int
		text string
	}{
		"/debug/pprof/":                  {http.StatusOK, "goroutine"},
		"/debug/pprof/heap?debug=1":      {http.StatusOK, "heap profile"},
		"/debug/pprof/goroutine?debug=1": {http.StatusOK, "TestProfiles"},
		"/debug/pprof/symbol":            {http.StatusOK, "num_symbols"},
		"/metrics":                       {http.StatusNotFound, "not found"},
	} {
		got := httptest.NewRecorder()
		profiles().ServeHTTP(got, httptest.NewRequestWithContext(t.Context(), http.MethodGet, path, nil))
		if got.Code != want.code || !strings.Contains(got.Body.String(), want.text) {
			t.Errorf("%s: %d %.200s", path, got.Code, got.Body)
		}
	}
}
