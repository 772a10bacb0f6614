package builder

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/revision"
)

// This file is what the served schema says about versioned paths.

var boat = schema.GroupVersionKind{Group: "example.com", Version: "v1", Kind: "Boat"}

const boats = `{"components":{"schemas":{
	"com.example.v1.Boat":{
		"type":"object",
		"x-kubernetes-group-version-kind":[{"group":"example.com","version":"v1","kind":"Boat"}],
		"properties":{
			"metadata":{"allOf":[{"$ref":"#/components/schemas/Meta"}],"description":"as ever"},
			"spec":{"type":"object","properties":{
				"image":{"type":"string"},
				"decks":{"type":"array","items":{"type":"object"}},
				"port":{"x-kubernetes-int-or-string":true},
				"labels":{"type":"object","additionalProperties":{"type":"string"}},
				"crew":{"type":"object","additionalProperties":{"type":"object","properties":{"name":{"type":"string"}}}},
				"any":{"type":"object","additionalProperties":true},
				"empty":{"type":"object"},
				"template":{"type":"object","x-kubernetes-preserve-unknown-fields":true}
			}}
		}
	},
	"Meta":{"type":"object","properties":{"labels":{"type":"object","additionalProperties":{"type":"string"}}}}
}}}`

// serving is an API server that serves this under that path.
type serving struct {
	path, text string
	err        error
}

func (s serving) Paths() (map[string]openapi.GroupVersion, error) {
	return map[string]openapi.GroupVersion{s.path: s}, s.err
}

func (s serving) Schema(string) ([]byte, error) { return []byte(s.text), nil }
func (s serving) ServerRelativeURL() string     { return "" }

func pathsOf(t *testing.T, texts ...string) []revision.Path {
	t.Helper()
	var out []revision.Path
	for _, text := range texts {
		path, err := revision.ParsePath(text)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, path)
	}
	return out
}

func TestPathsInTheServedSchema(t *testing.T) {
	for path, want := range map[string]string{
		"spec":                     "",
		"spec.image":               "",
		"spec.labels.app":          "",
		"spec.crew.cook.name":      "",
		"spec.any.thing.at":        "",
		"spec.template":            "",
		"spec.template.spec.where": "",
		"spec.port.number":         "", // it says nothing about that
		"metadata.labels":          "",
		"spec.templates":           "spec has no field templates",
		"specs.template":           "it has no field specs",
		"spec.image.tag":           "spec.image is of the type string, which has no fields",
		"spec.decks.0":             "spec.decks is of the type array, which has no fields",
		"spec.crew.cook.age":       "spec.crew.cook has no field age",
		"spec.labels.app.name":     "spec.labels.app is of the type string, which has no fields",
		"spec.empty.field":         "spec.empty has no field field",
		"metadata.label":           "metadata has no field label",
	} {
		t.Run(path, func(t *testing.T) {
			err := inSchema(serving{path: "apis/example.com/v1", text: boats}, boat, pathsOf(t, path))
			if want != "" {
				want = `field Versions: "` + path + `": in the schema that the API server serves for Boat, ` + want
			}
			if got := errorText(err); got != want {
				t.Errorf("%q, want %q", got, want)
			}
		})
	}
}

func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// Where no schema is served, nothing is refused; where the API server cannot be asked, the controller does not start.
func TestSchemasThatSayNothing(t *testing.T) {
	group := schema.GroupResource{Resource: "openapi"}
	for name, c := range map[string]struct {
		serving

		want string
	}{
		"another version":     {serving{path: "apis/example.com/v2", text: boats}, ""},
		"another kind":        {serving{path: "apis/example.com/v1", text: strings.ReplaceAll(boats, `"Boat"`, `"Ship"`)}, ""},
		"no OpenAPI":          {serving{err: apierrors.NewNotFound(group, "v3")}, ""},
		"may not be read":     {serving{err: apierrors.NewForbidden(group, "v3", errors.New("no"))}, ""},
		"the server is down":  {serving{err: errors.New("connection refused")}, "read the API server's schema of example.com/v1: connection refused"},
		"it is not JSON":      {serving{path: "apis/example.com/v1", text: "<html>"}, "read the API server's schema of example.com/v1: invalid character"},
		"it is about nothing": {serving{path: "apis/example.com/v1", text: "{}"}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			err := inSchema(c.serving, boat, pathsOf(t, "spec.templates"))
			if got := errorText(err); got != c.want && (c.want == "" || !strings.HasPrefix(got, c.want)) {
				t.Errorf("%q, want %q", got, c.want)
			}
		})
	}
}

// The API server of the manager is asked.
func TestTheServerIsAsked(t *testing.T) {
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		switch r.URL.Path {
		case "/openapi/v3":
			_, _ = w.Write([]byte(`{"paths":{"apis/example.com/v1":{"serverRelativeURL":"/openapi/v3/apis/example.com/v1?hash=1"}}}`))
		case "/openapi/v3/apis/example.com/v1":
			_, _ = w.Write([]byte(boats))
		default:
			http.NotFound(w, r)
		}
	}))
	t.Cleanup(server.Close)
	err := inServedSchema(&rest.Config{Host: server.URL}, server.Client(), boat, pathsOf(t, "spec.template", "spec.a", "spec.b"))
	if got := errorText(err); strings.Count(got, "has no field") != 2 {
		t.Errorf("%s", got)
	}
}
