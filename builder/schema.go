package builder

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/openapi"
	"k8s.io/client-go/rest"

	"github.com/cairn-dev/cairn/revision"
)

// This file checks the versioned paths of parents without a Go type against the schema that the API server serves. Where it serves
// none, or one that leaves open what fields there are, nothing is refused.

// inServedSchema asks the API server of a manager. The error names the paths that its schema does not know; any other one is the API
// server's, and a later start may do.
func inServedSchema(config *rest.Config, over *http.Client, gvk schema.GroupVersionKind, paths []revision.Path) error {
	client, err := discovery.NewDiscoveryClientForConfigAndClient(config, over)
	if err != nil {
		return fmt.Errorf("ask the API server for its schema: %w", err)
	}
	return inSchema(client.OpenAPIV3(), gvk, paths)
}

// inSchema reports the paths that objects of a kind cannot have.
func inSchema(served openapi.Client, gvk schema.GroupVersionKind, paths []revision.Path) error {
	d, err := fetchSchema(served, gvk.GroupVersion())
	if apierrors.IsNotFound(err) || apierrors.IsForbidden(err) || d == nil && err == nil {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the API server's schema of %s: %w", gvk.GroupVersion(), err)
	}
	var errs []error
	for _, path := range paths {
		if why := d.lacks(d.of(gvk), path); why != "" {
			errs = append(errs, fmt.Errorf("field Versions: %q: in the schema that the API server serves for %s, %s", path, gvk.Kind, why))
		}
	}
	return errors.Join(errs...)
}

// fetchSchema returns the OpenAPI v3 document of a version, nil if there is none.
func fetchSchema(served openapi.Client, gv schema.GroupVersion) (*document, error) {
	all, err := served.Paths()
	if err != nil {
		return nil, err
	}
	at, ok := all["apis/"+gv.String()]
	if gv.Group == "" {
		at, ok = all["api/"+gv.Version]
	}
	if !ok {
		return nil, nil //nolint:nilnil // there is none, which is an answer
	}
	raw, err := at.Schema(runtime.ContentTypeJSON)
	if err != nil {
		return nil, err
	}
	d := &document{}
	return d, json.Unmarshal(raw, d)
}

// document is what is read of an OpenAPI v3 document.
type document struct {
	Components struct {
		Schemas map[string]*node `json:"schemas"`
	} `json:"components"`
}

// node is a schema.
type node struct {
	Ref        string           `json:"$ref"`
	AllOf      []*node          `json:"allOf"`
	Type       string           `json:"type"`
	Properties map[string]*node `json:"properties"`
	// Values is a schema, or a boolean.
	Values json.RawMessage `json:"additionalProperties"`
	// Open says that fields are kept which the schema does not name.
	Open  bool                      `json:"x-kubernetes-preserve-unknown-fields"`
	Kinds []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

// of returns the schema of a kind, nil if there is none.
func (d *document) of(gvk schema.GroupVersionKind) *node {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if s := d.Components.Schemas[name]; s != nil && slices.Contains(s.Kinds, gvk) {
			return s
		}
	}
	return nil
}

// lacks says what of a path a schema does not know, empty if it may be there.
func (d *document) lacks(s *node, path revision.Path) string {
	for i, name := range path {
		s = d.resolve(s)
		if s == nil || s.Open {
			return ""
		}
		next, values := s.Properties[name], &node{}
		switch open := string(s.Values); {
		case next != nil:
		case open != "" && open != "false":
			if open != "true" && json.Unmarshal(s.Values, values) != nil {
				return ""
			}
			next = values
		case s.Type != "" && s.Type != "object":
			return fmt.Sprintf("%s is of the type %s, which has no fields", path[:i], s.Type)
		case s.Type == "" && len(s.Properties) == 0:
			return "" // it says nothing
		case i == 0:
			return fmt.Sprintf("it has no field %s", name)
		default:
			return fmt.Sprintf("%s has no field %s", path[:i], name)
		}
		s = next
	}
	return ""
}

// resolve follows references. Those that have a default or a description of their own are in an allOf.
func (d *document) resolve(s *node) *node {
	for range 10 { // a schema that refers to itself alone says nothing
		if s == nil {
			return nil
		}
		ref := s.Ref
		if ref == "" && len(s.AllOf) == 1 {
			ref = s.AllOf[0].Ref
		}
		if ref == "" {
			return s
		}
		s = d.Components.Schemas[ref[strings.LastIndex(ref, "/")+1:]]
	}
	return nil
}
