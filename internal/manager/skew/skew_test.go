package skew

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/rest"
)

// server serves these pages.
func server(t *testing.T, pages map[string]string) rest.Interface {
	t.Helper()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		page, ok := pages[r.URL.Path]
		if !ok {
			http.NotFound(w, r)
			return
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, page)
	}))
	t.Cleanup(s.Close)
	client, err := discovery.NewDiscoveryClientForConfig(&rest.Config{Host: s.URL})
	if err != nil {
		t.Fatal(err)
	}
	return client.RESTClient()
}

// TestTypes: the constant is what go.mod asks for, and so is what the build says.
func TestTypes(t *testing.T) {
	mod, err := os.ReadFile("../../../go.mod")
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`(?m)^\s+k8s\.io/api v0\.(\d+)\.`).FindSubmatch(mod)
	if found == nil {
		t.Fatal("go.mod asks for no k8s.io/api")
	}
	if want, err := strconv.Atoi(string(found[1])); err != nil || types != want || Types() != want {
		t.Errorf("the types are said to be of 1.%d, and of 1.%d by the build; go.mod asks for 1.%d", types, Types(), want)
	}
}

func TestOf(t *testing.T) {
	for page, want := range map[string]string{
		`{"major":"1","minor":"36","gitVersion":"v1.36.3"}`: "36",
		`{"major":"1","minor":"38+"}`:                       "38",
		`{"major":"2","minor":"1","gitVersion":"v2.1.0"}`:   "the API server calls itself v2.1.0",
		`{"major":"1","minor":"x"}`:                         "which is not a supported version",
		`[]`:                                                "read the API server's version",
	} {
		s, err := Of(t.Context(), server(t, map[string]string{"/version": page}))
		got := strconv.Itoa(s.Server)
		if err != nil {
			got = err.Error()
		} else if s.Types != Types() {
			t.Errorf("types of 1.%d", s.Types)
		}
		if !strings.Contains(got, want) {
			t.Errorf("%s: %s, want %s", page, got, want)
		}
	}
}

func TestSkew(t *testing.T) {
	for _, c := range []struct {
		server         int
		newer          int
		tooNew, tooOld bool
	}{{33, -3, false, true}, {34, -2, false, false}, {36, 0, false, false}, {37, 1, false, false}, {38, 2, true, false}} {
		s := Skew{Server: c.server, Types: 36}
		if s.Newer() != c.newer || s.TooNew() != c.tooNew || s.TooOld() != c.tooOld {
			t.Errorf("1.%d on 1.%d: newer %d, too new %v, too old %v", s.Server, s.Types, s.Newer(), s.TooNew(), s.TooOld())
		}
	}
}

// The types of this test are those of an older release than the schema.
type set struct {
	Meta `json:",inline"`

	Spec   setSpec `json:"spec"`
	Status struct{}
}

type Meta struct{}

type setSpec struct {
	Shared `json:",inline"`

	Template *template                    `json:"template,omitempty"`
	Limits   map[string]resource.Quantity `json:"limits"`
	Rules    map[string]rule              `json:"rules"`
	Data     []byte                       `json:"data"`
	hidden   int                          //nolint:unused // fields without a name in JSON are no fields
}

type Shared struct {
	Paused bool `json:"paused"`
}

type template struct {
	Main, Side []container
	Next       *template `json:"next"`
}

type container struct {
	Image string `json:"image"`
}

type rule struct {
	Ready bool `json:"ready"`
}

// document describes these types; with newer fields if new is true.
func documentOf(t *testing.T, newer bool) string {
	t.Helper()
	type m = map[string]any
	ref := func(name string) m {
		return m{"allOf": []any{m{"$ref": "#/components/schemas/" + name}}, "default": m{}}
	}
	text, flag := m{"type": "string"}, m{"type": "boolean"}
	schemas := m{
		"set": m{
			"x-kubernetes-group-version-kind": []any{m{"group": "test", "version": "v1", "kind": "Set"}},
			"properties":                      m{"metadata": ref("meta"), "spec": ref("setSpec"), "status": ref("status")},
		},
		"setSpec": m{"properties": m{
			"paused": flag, "data": text, "template": ref("template"),
			"limits": m{"additionalProperties": ref("quantity")}, "rules": m{"additionalProperties": ref("rule")},
		}},
		"quantity": m{"oneOf": []any{text, m{"type": "number"}}},
		"template": m{"properties": m{
			"Main": m{"items": ref("container")}, "Side": m{"items": ref("container")}, "next": m{"$ref": "#/components/schemas/template"},
		}},
		"container": m{"properties": m{"image": text}},
		"rule":      m{"properties": m{"ready": flag}},
		"status":    m{"properties": m{}},
	}
	if newer {
		for _, name := range []string{"setSpec", "template", "container", "rule", "status"} {
			schemas[name].(m)["properties"].(m)["new"] = text // as above
		}
	}
	out, err := json.Marshal(m{"components": m{"schemas": schemas}})
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}

func TestLost(t *testing.T) {
	kind := Kind{GroupVersion: schema.GroupVersion{Group: "test", Version: "v1"}, Kind: "Set", Type: reflect.TypeFor[set]()}
	for newer, want := range map[bool][]string{
		false: nil,
		true:  {"spec.new", "spec.rules.*.new", "spec.template.Main[].new", "spec.template.new"},
	} {
		got, err := Lost(t.Context(), server(t, map[string]string{"/openapi/v3/apis/test/v1": documentOf(t, newer)}), kind, kind)
		if err != nil || !slices.Equal(got, want) {
			t.Errorf("newer %v: %q, want %q (%v)", newer, got, want, err)
		}
	}
	for _, pages := range []map[string]string{
		{}, {"/openapi/v3/apis/test/v1": "{}"}, {"/openapi/v3/apis/test/v1": "<html>"},
	} {
		if got, err := Lost(t.Context(), server(t, pages), kind); err == nil {
			t.Errorf("%v: %q", pages, got)
		}
	}
}
