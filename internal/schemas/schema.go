// Package schemas reads the schemas that an API server serves: which fields objects of a kind can have. Where it serves
// none, or one that leaves open what fields there are, nothing is known.
//
// What may not come in: what is done about a field that does not exist.
package schemas

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/openapi"

	"github.com/cairn-dev/cairn/revision"
)

// Fetch returns the OpenAPI v3 document of a version, nil if there is none. Errors are those of the API server.
func Fetch(served openapi.Client, gv schema.GroupVersion) (*Document, error) {
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
	d := &Document{}
	return d, json.Unmarshal(raw, d)
}

// Document is what is read of an OpenAPI v3 document.
type Document struct {
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
func (d *Document) of(gvk schema.GroupVersionKind) *node {
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		if s := d.Components.Schemas[name]; s != nil && slices.Contains(s.Kinds, gvk) {
			return s
		}
	}
	return nil
}

// Fields returns the fields of objects of a kind, sorted. ok is false if the schema does not say which there are.
func (d *Document) Fields(gvk schema.GroupVersionKind) (fields []string, ok bool) {
	s := d.resolve(d.of(gvk))
	if s == nil || s.Open || len(s.Properties) == 0 {
		return nil, false
	}
	return slices.Sorted(maps.Keys(s.Properties)), true
}

// Lacks says what of a path objects of a kind cannot have, empty if it may be there.
func (d *Document) Lacks(gvk schema.GroupVersionKind, path revision.Path) string {
	s := d.of(gvk)
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
func (d *Document) resolve(s *node) *node {
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
