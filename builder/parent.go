package builder

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"reflect"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	utiljson "k8s.io/apimachinery/pkg/util/json"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/apiutil"

	"github.com/cairn-dev/cairn/history"
	"github.com/cairn-dev/cairn/revision"
)

// This file is what a kind of parents is for its revisions, for [Controller] and for [Attach]: which of its fields are
// versioned, how a revision is stored, and what a parent looks like that is restored from one. Nothing about children
// may come in.

// versioned is a kind of parents that was found to be sound.
type versioned struct {
	parent   schema.GroupVersionKind
	resource schema.GroupResource
	target   *revision.Target
	// generational says that every edit of the versioned fields raises metadata.generation.
	generational bool
	// example is a parent, of which only the type matters.
	example client.Object
}

// revisions is the kind that every history is stored in.
var revisions = appsv1.SchemeGroupVersion.WithKind("ControllerRevision")

// arguments are what an author calls the two things that [describeParent] looks at.
type arguments struct{ parent, versions string }

// describeParent checks a kind of parents, and asks the API server about it. The error joins all that is wrong.
func describeParent[P client.Object](
	scheme *runtime.Scheme, mapper meta.RESTMapper, parent P, paths []string, called arguments,
) (versioned, error) {
	v := versioned{example: parent}
	if isNil(parent) {
		return v, fmt.Errorf("%s is not set: it has to be an empty parent, for instance &v1.Fleet{}", called.parent)
	}
	var wrong []error
	var err error
	if v.parent, v.resource, err = served(scheme, mapper, parent); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", called.parent, err))
	}
	if !scheme.Recognizes(revisions) {
		wrong = append(wrong, fmt.Errorf("the scheme of the manager does not know %s: add the types of k8s.io/api/apps/v1 to it", revisions))
	}
	if err := readPaths[P](&v, paths); err != nil {
		wrong = append(wrong, fmt.Errorf("%s: %w", called.versions, err))
	}
	return v, errors.Join(wrong...)
}

// readPaths reads the field paths.
func readPaths[P client.Object](v *versioned, texts []string) error {
	var normalize revision.Normalizer
	_, untyped := v.example.(*unstructured.Unstructured)
	if !untyped {
		normalize = revision.Typed[P]()
	}
	// Kinds of Kubernetes itself need not have a generation, and ConfigMaps have none.
	v.generational = strings.Contains(v.parent.Group, ".")
	var paths []revision.Path
	for _, text := range texts {
		path, err := revision.ParsePath(text)
		if err == nil {
			err = askedFor(path)
		}
		if err == nil && !untyped {
			err = inType(reflect.TypeFor[P](), path)
		}
		if err != nil {
			return fmt.Errorf("%q: %w", text, err)
		}
		v.generational = v.generational && path[0] == "spec"
		paths = append(paths, path)
	}
	var err error
	v.target, err = revision.FieldPaths(normalize, paths...)
	return err
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

// askedFor refuses what nobody asks for: what controllers say, and what the API server keeps of an object. An undo
// could not restore it.
func askedFor(path revision.Path) error {
	switch path[0] {
	case "status", "apiVersion", "kind":
		return fmt.Errorf("%s is not desired state, so no revision can restore it; version what users write, usually a field of spec", path[0])
	case "metadata":
		if len(path) == 1 || path[1] != "labels" && path[1] != "annotations" {
			return errors.New("of metadata only labels and annotations are desired state; version what users write, usually a field of spec")
		}
	}
	return nil
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

// format is how the revisions are stored: with the labels that labelsOf returns, by which the parent selects them.
// children are the kinds of what is made from them, none if nobody needs to know.
func (v *versioned) format(labelsOf func(parent client.Object) map[string]string, children ...schema.GroupVersionKind) format {
	f := &history.Apps{
		Parent:       v.parent,
		Versioned:    v.target,
		ByGeneration: v.generational,
		HashLabel:    HashLabel,
		SelectorOf: func(parent client.Object) (labels.Selector, error) {
			return labels.ValidatedSelectorFromSet(labelsOf(parent))
		},
		Children:   children,
		ChildLabel: HashLabel,
		NewParent:  v.empty,
		Labels:     labelsOf,
	}
	description := f.Description()
	f.Annotations = func(client.Object) map[string]string { return description }
	return format{f}
}

// label is the label of what belongs to a parent whose author has not chosen others.
func (v *versioned) label(parent client.Object) map[string]string {
	key := strings.ToLower(v.parent.Kind)
	if v.parent.Group != "" {
		key = v.parent.Group + "/" + key
	}
	return map[string]string{key: revision.LabelValue(parent.GetName())}
}

// inServedSchema checks the versioned fields of parents without a Go type against the schema that the API server
// serves.
func (v *versioned) inServedSchema(mgr ctrl.Manager) error {
	if _, untyped := v.example.(*unstructured.Unstructured); !untyped {
		return nil
	}
	return inServedSchema(mgr.GetConfig(), mgr.GetHTTPClient(), v.parent, v.target.Paths())
}

// empty returns an empty parent.
func (v *versioned) empty() client.Object {
	out := v.example.DeepCopyObject().(client.Object)
	if u, ok := out.(*unstructured.Unstructured); ok {
		u.Object = map[string]any{}
		u.SetGroupVersionKind(v.parent)
		return out
	}
	reflect.ValueOf(out).Elem().SetZero()
	return out
}

// restore returns a copy of a parent with its versioned fields taken from a snapshot.
func (v *versioned) restore(parent client.Object, snapshot *revision.Snapshot) (client.Object, error) {
	tree, err := snapshot.Restore(parent)
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(tree)
	if err != nil {
		return nil, err
	}
	out := v.empty()
	if u, ok := out.(*unstructured.Unstructured); ok {
		return out, utiljson.Unmarshal(raw, &u.Object)
	}
	return out, json.Unmarshal(raw, out)
}
