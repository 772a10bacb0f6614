package skew

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"
)

// This file finds the fields that an API server has and Go types have not, by walking through both.

// Kind is a kind of object with the Go type that it is read into.
type Kind struct {
	GroupVersion schema.GroupVersion
	Kind         string
	Type         reflect.Type
}

// Lost returns the fields in the spec of these kinds that the API server knows and the types do not, as
// spec.template.spec.containers[].field, sorted. A field of a type that is used in several places is returned once for
// each kind, for the first place.
func Lost(ctx context.Context, server rest.Interface, kinds ...Kind) ([]string, error) {
	documents := map[schema.GroupVersion]*document{}
	var out []string
	for _, kind := range kinds {
		if documents[kind.GroupVersion] == nil {
			d, err := fetch(ctx, server, kind.GroupVersion)
			if err != nil {
				return nil, err
			}
			documents[kind.GroupVersion] = d
		}
		fields, err := documents[kind.GroupVersion].lost(kind)
		if err != nil {
			return nil, err
		}
		out = append(out, fields...)
	}
	slices.Sort(out)
	return slices.Compact(out), nil
}

func fetch(ctx context.Context, server rest.Interface, gv schema.GroupVersion) (*document, error) {
	path := "/openapi/v3/apis/" + gv.String()
	if gv.Group == "" {
		path = "/openapi/v3/api/" + gv.Version
	}
	raw, err := server.Get().AbsPath(path).SetHeader("Accept", "application/json").Do(ctx).Raw()
	if err != nil {
		return nil, fmt.Errorf("read the API server's schema of %s: %w", gv, err)
	}
	d := &document{}
	if err := json.Unmarshal(raw, d); err != nil {
		return nil, fmt.Errorf("read the API server's schema of %s: %w", gv, err)
	}
	return d, nil
}

// document is what is looked at of an OpenAPI v3 document.
type document struct {
	Components struct {
		Schemas map[string]*node `json:"schemas"`
	} `json:"components"`
}

// node is a schema.
type node struct {
	Ref        string           `json:"$ref"`
	AllOf      []*node          `json:"allOf"`
	Properties map[string]*node `json:"properties"`
	Items      *node            `json:"items"`
	// Values is a schema, or true.
	Values json.RawMessage           `json:"additionalProperties"`
	Kinds  []schema.GroupVersionKind `json:"x-kubernetes-group-version-kind"`
}

func (d *document) lost(kind Kind) ([]string, error) {
	want := kind.GroupVersion.WithKind(kind.Kind)
	for _, name := range slices.Sorted(maps.Keys(d.Components.Schemas)) {
		s := d.Components.Schemas[name]
		if !slices.Contains(s.Kinds, want) {
			continue
		}
		w := walk{document: d, seen: map[pair]bool{}}
		spec, typ := s.Properties["spec"], fieldsOf(kind.Type)["spec"]
		if spec == nil || typ == nil {
			return nil, fmt.Errorf("%s has no spec", want)
		}
		w.into("spec", spec, typ)
		return w.out, nil
	}
	return nil, fmt.Errorf("the API server's schema of %s does not describe %s", kind.GroupVersion, kind.Kind)
}

// walk goes through a schema and a type side by side.
type walk struct {
	*document

	seen map[pair]bool
	out  []string
}

// pair is a named schema with the type that was found in the same place.
type pair struct {
	name string
	typ  reflect.Type
}

// into compares what is at path.
func (w *walk) into(path string, s *node, typ reflect.Type) {
	s, name := w.resolve(s)
	for typ.Kind() == reflect.Pointer {
		typ = typ.Elem()
	}
	if s == nil || opaque(typ) || name != "" && w.seen[pair{name, typ}] {
		return
	}
	w.seen[pair{name, typ}] = true
	switch typ.Kind() {
	case reflect.Struct:
		fields := fieldsOf(typ)
		for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
			at := path + "." + property
			if fields[property] == nil {
				w.out = append(w.out, at)
				continue
			}
			w.into(at, s.Properties[property], fields[property])
		}
	case reflect.Slice, reflect.Array:
		if s.Items != nil {
			w.into(path+"[]", s.Items, typ.Elem())
		}
	case reflect.Map:
		var values node
		if len(s.Values) > 0 && json.Unmarshal(s.Values, &values) == nil {
			w.into(path+".*", &values, typ.Elem())
		}
	default: // a value
	}
}

// resolve follows references. Those that have a default or a description of their own are in an allOf.
func (w *walk) resolve(s *node) (_ *node, name string) {
	for s != nil {
		ref := s.Ref
		if ref == "" && len(s.AllOf) == 1 {
			ref = s.AllOf[0].Ref
		}
		if ref == "" {
			return s, name
		}
		name = ref[strings.LastIndex(ref, "/")+1:]
		s = w.Components.Schemas[name]
	}
	return nil, name
}

// opaque reports whether a type reads JSON in its own way, as quantities and times do.
func opaque(typ reflect.Type) bool {
	return reflect.PointerTo(typ).Implements(reflect.TypeFor[json.Unmarshaler]())
}

// fieldsOf returns the fields of a type by their names in JSON, those of embedded types included.
func fieldsOf(typ reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for field := range typ.Fields() {
		name, options, _ := strings.Cut(field.Tag.Get("json"), ",")
		switch {
		case name == "-":
		case field.Anonymous && (name == "" || strings.Contains(options, "inline")):
			embedded := field.Type
			if embedded.Kind() == reflect.Pointer {
				embedded = embedded.Elem()
			}
			maps.Copy(out, fieldsOf(embedded))
		default:
			out[cmp.Or(name, field.Name)] = field.Type
		}
	}
	return out
}
