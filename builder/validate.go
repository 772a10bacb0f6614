package builder

import (
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cairn-dev/cairn/revision"
)

// This file refuses what cannot work before the controller starts. Without it, such mistakes are found when pods are rolled over
// and over, or never: docs/design/2026-11-23-a-controller-as-a-value.md.

// described is a controller that was found to be sound.
type described[P client.Object] struct {
	parentKind[P]

	kinds []childKind
}

// childKind is what a rule is about.
type childKind struct {
	Rule

	gvk      schema.GroupVersionKind
	resource schema.GroupResource
}

// describe checks a controller, and asks the API server about its kinds. The error joins all that is wrong.
func (c Controller[P]) describe(scheme *runtime.Scheme, mapper meta.RESTMapper) (*described[P], error) {
	if isNil(c.Parent) {
		return nil, errors.New("field Parent is not set: it has to be an empty parent, for instance &v1.Fleet{}")
	}
	parent, errs := describeParent(scheme, mapper, c.Parent, c.Versions, c.Labels)
	d := &described[P]{parentKind: parent}
	if c.Children == nil {
		errs = append(errs, errors.New("field Children is not set: it has to return the children that a parent wants"))
	}
	if len(c.Owns) == 0 {
		errs = append(errs, errors.New("field Owns is empty: it has to name the kinds of children"))
	}
	seen := map[schema.GroupVersionKind]bool{}
	for i, rule := range c.Owns {
		if isNil(rule.kind) {
			errs = append(errs, fmt.Errorf("field Owns[%d] is no rule: make it with builder.Rolled", i))
			continue
		}
		gvk, resource, err := served(scheme, mapper, rule.kind)
		switch {
		case err != nil:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %w", i, err))
		case seen[gvk]:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %s stands there twice", i, gvk.Kind))
		case rule.applied && rule.named:
			errs = append(errs, fmt.Errorf("field Owns[%d]: %s is applied, and NamedByRevision is for kinds that are rolled", i, gvk.Kind))
		}
		seen[gvk] = true
		d.kinds = append(d.kinds, childKind{rule, gvk, resource})
	}
	return d, errors.Join(errs...)
}

// served returns the kind and the resource of an object, which has to be in a namespace.
func served(scheme *runtime.Scheme, mapper meta.RESTMapper, o client.Object) (schema.GroupVersionKind, schema.GroupResource, error) {
	gvk, err := apiutil.GVKForObject(o, scheme)
	if err != nil {
		return gvk, schema.GroupResource{}, fmt.Errorf(
			"%w; add its types to the manager's scheme, or set apiVersion and kind of an unstructured object", err)
	}
	mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
	if err != nil {
		return gvk, schema.GroupResource{}, fmt.Errorf("the API server does not serve %s; is its CRD installed? %w", gvk, err)
	}
	if mapping.Scope.Name() != meta.RESTScopeNameNamespace {
		return gvk, schema.GroupResource{}, fmt.Errorf("%s is in no namespace, which is not supported yet", gvk.Kind)
	}
	return gvk, mapping.Resource.GroupResource(), nil
}

// inType reports that objects of a Go type have no field of that path.
func inType(t reflect.Type, path revision.Path) error {
	for i, name := range path {
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		switch t.Kind() {
		case reflect.Map, reflect.Interface:
			return nil // any key will do
		case reflect.Struct:
		default:
			return fmt.Errorf("%s is a %s, which has no fields", path[:i], t.Kind())
		}
		fields := fieldsOf(t)
		next, ok := fields[name]
		if !ok {
			return fmt.Errorf("%s has no field %s", t, name)
		}
		t = next
	}
	return nil
}

// fieldsOf are the fields of a struct by the names that they have in JSON, inlined ones included.
func fieldsOf(t reflect.Type) map[string]reflect.Type {
	out := map[string]reflect.Type{}
	for f := range t.Fields() {
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		inline := f.Anonymous && name == "" || strings.Contains(options, "inline")
		switch {
		case inline && f.Type.Kind() == reflect.Struct:
			maps.Copy(out, fieldsOf(f.Type))
		case name == "":
			out[f.Name] = f.Type
		case name != "-":
			out[name] = f.Type
		}
	}
	return out
}

func isNil(o client.Object) bool {
	if o == nil {
		return true
	}
	v := reflect.ValueOf(o)
	return v.Kind() == reflect.Pointer && v.IsNil()
}
