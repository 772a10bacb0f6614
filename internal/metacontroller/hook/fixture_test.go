package hook_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log" //nolint:depguard // net/http takes no other logger
	"net/http"
	"net/http/httptest"
	"net/netip"
	"net/url"
	"sync"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/cairn-dev/cairn/api/metacontroller/v1alpha1"
	"github.com/cairn-dev/cairn/internal/metacontroller/hook"
)

var (
	podKind       = hook.ChildKind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Pod"}, Namespaced: true}
	setKind       = hook.ChildKind{GroupVersionKind: schema.GroupVersionKind{Group: "apps", Version: "v1", Kind: "StatefulSet"}, Namespaced: true}
	namespaceKind = hook.ChildKind{GroupVersionKind: schema.GroupVersionKind{Version: "v1", Kind: "Namespace"}}

	// quiet is for servers that are attacked.
	quiet = log.New(io.Discard, "", 0)

	now = time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC)
	// here is where test servers listen. No hook may be there unless somebody says so.
	here = []netip.Prefix{netip.MustParsePrefix("127.0.0.0/8")}
)

const noChildren = `{"status":{},"children":[]}`

func object(t testing.TB, src string) *unstructured.Unstructured {
	t.Helper()
	o := &unstructured.Unstructured{}
	if err := json.Unmarshal([]byte(src), &o.Object); err != nil {
		t.Fatal(err)
	}
	return o
}

func catset(version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"replicas": int64(2)}}}
	o.SetAPIVersion("ctl.example/v1")
	o.SetKind("CatSet")
	o.SetNamespace("ns")
	o.SetName("cats")
	o.SetUID("parent-uid")
	o.SetResourceVersion(version)
	return o
}

func pod(name, version string) *unstructured.Unstructured {
	o := &unstructured.Unstructured{Object: map[string]any{}}
	o.SetAPIVersion("v1")
	o.SetKind("Pod")
	o.SetNamespace("ns")
	o.SetName(name)
	o.SetUID(types.UID("uid-of-" + name))
	o.SetResourceVersion(version)
	return o
}

func pods(objects ...*unstructured.Unstructured) []hook.Group {
	return []hook.Group{{GroupVersionKind: podKind.GroupVersionKind, Objects: objects}}
}

// server is a webhook that remembers what it was told.
type server struct {
	*httptest.Server
	mu    sync.Mutex
	calls []call
}

type call struct {
	header http.Header
	body   string
}

// serve starts a webhook. answer gets the calls so far, this one included.
func serve(t testing.TB, answer func(w http.ResponseWriter, calls []call)) *server {
	t.Helper()
	s := unstarted(t, answer)
	s.Start()
	return s
}

func unstarted(t testing.TB, answer func(w http.ResponseWriter, calls []call)) *server {
	t.Helper()
	s := &server{}
	s.Server = httptest.NewUnstartedServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil || r.Method != http.MethodPost {
			t.Errorf("%s with %v", r.Method, err)
		}
		s.mu.Lock()
		s.calls = append(s.calls, call{r.Header, string(body)})
		calls := s.calls
		s.mu.Unlock()
		answer(w, calls)
	}))
	t.Cleanup(s.Close)
	return s
}

func (s *server) count() int {
	s.mu.Lock()
	defer s.mu.Unlock()
	return len(s.calls)
}

func (s *server) last() call {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[len(s.calls)-1]
}

func always(body string) func(http.ResponseWriter, []call) {
	return func(w http.ResponseWriter, _ []call) { fmt.Fprint(w, body) }
}

// options are a sync hook of a composite controller at a test server.
func options(address string) hook.Options {
	return hook.Options{
		Controller: hook.Controller{
			Type: hook.Composite, Name: "cats", Object: json.RawMessage(`{"kind":"CompositeController"}`),
			Children: []hook.ChildKind{podKind},
		},
		Kind:     hook.Sync,
		Declared: &v1alpha1.Hook{Webhook: &v1alpha1.Webhook{URL: &address}},
		Guard:    &hook.Guard{Allow: here},
		Proxy:    func(*http.Request) (*url.URL, error) { return nil, nil },
		Now:      func() time.Time { return now },
	}
}

func newHook(t testing.TB, o hook.Options) *hook.Hook {
	t.Helper()
	h, err := hook.New(o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(h.Close)
	return h
}

func failure(t testing.TB, err error) *hook.Error {
	t.Helper()
	var f *hook.Error
	if !errors.As(err, &f) {
		t.Fatalf("the error is %v", err)
	}
	return f
}
