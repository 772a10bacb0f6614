package hook

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/validate/content"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// This file checks the children of an answer. One bad child makes the whole answer unusable: acting on the others would
// delete, or leave out, the one that was meant.

// readChildren reads the list of children into the answer.
func (f Form) readChildren(fields map[string]any, a *Answer) *Error {
	field := f.Type.childrenField()
	value, there := fields[field]
	a.ChildrenPresence = Given
	switch {
	case !there:
		a.ChildrenPresence = Absent
		if len(f.Kinds) > 0 && (f.Hook != Finalize || !a.Finalized) {
			err := fmt.Errorf("the answer has no field %q: an empty list says that there should be none", field)
			return f.failure(Incomplete, err)
		}
		return nil
	case value == nil:
		a.ChildrenPresence = Null
		return nil
	}
	items, ok := value.([]any)
	if !ok {
		return f.failure(Malformed, fmt.Errorf("%s is %s, not a list", field, typeName(value)))
	}
	// Nothing is allocated for the length of the list: its items may all be numbers.
	j := judge{Form: f, field: field, seen: map[childKey]int{}}
	a.Children = []*unstructured.Unstructured{}
	for i, item := range items {
		child, err := j.child(i, item)
		if err != nil {
			j.bad = append(j.bad, ChildError{Field: field, Index: i, Child: describe(item), Problem: err.Error()})
			if len(j.bad) == mostBad {
				break
			}
			continue
		}
		a.Children = append(a.Children, child)
	}
	if len(j.bad) > 0 {
		return f.failure(Contradictory, j.bad)
	}
	return nil
}

// judge checks the children of one answer, one after the other.
type judge struct {
	Form
	field string
	seen  map[childKey]int
	bad   ChildrenError
}

// childKey is what tells children apart. Versions of one API name the same object.
type childKey struct {
	schema.GroupKind
	namespace, name string
}

// child returns the child at index i with its namespace, or what is wrong with it.
func (j *judge) child(i int, item any) (*unstructured.Unstructured, error) {
	o, ok := item.(map[string]any)
	if !ok {
		return nil, fmt.Errorf("is %s, not an object", typeName(item))
	}
	kind, err := j.kind(o)
	if err != nil {
		return nil, err
	}
	metadata, ok := o["metadata"].(map[string]any)
	if !ok {
		return nil, errors.New("has no metadata")
	}
	name, err := nameOf(metadata)
	if err != nil {
		return nil, err
	}
	namespace, err := j.namespace(kind, metadata)
	if err != nil {
		return nil, err
	}
	for _, field := range [...]string{"labels", "annotations"} {
		if err := stringMap(metadata, field); err != nil {
			return nil, err
		}
	}
	key := childKey{kind.GroupKind(), namespace, name}
	if first, twice := j.seen[key]; twice {
		return nil, fmt.Errorf("is there already, at %s[%d]", j.field, first)
	}
	j.seen[key] = i
	if namespace != "" {
		metadata["namespace"] = namespace
	}
	return &unstructured.Unstructured{Object: o}, nil
}

// kind returns the declared kind of a child.
func (j *judge) kind(o map[string]any) (ChildKind, error) {
	apiVersion, _ := o["apiVersion"].(string)
	kind, _ := o["kind"].(string)
	if apiVersion == "" || kind == "" {
		return ChildKind{}, errors.New("has no apiVersion or no kind")
	}
	gv, err := schema.ParseGroupVersion(apiVersion)
	if err != nil {
		return ChildKind{}, fmt.Errorf("has apiVersion %s, which is none", short(apiVersion))
	}
	for _, declared := range j.Kinds {
		switch {
		case declared.GroupKind() != gv.WithKind(kind).GroupKind():
		case declared.Version == gv.Version:
			return declared, nil
		default:
			return ChildKind{}, fmt.Errorf("has apiVersion %s, and the controller declares this kind in %s",
				short(apiVersion), declared.GroupVersion())
		}
	}
	return ChildKind{}, fmt.Errorf("the controller declares no %s with apiVersion %s among its child resources",
		short(kind), short(apiVersion))
}

// nameOf returns the name of a child. A generated one would be another one on every pass.
func nameOf(metadata map[string]any) (string, error) {
	switch name := metadata["name"].(type) {
	case nil:
		return "", errors.New("has no metadata.name")
	case string:
		if name == "" {
			return "", errors.New("has no metadata.name")
		}
		if problems := content.IsPathSegmentName(name); len(problems) > 0 {
			return "", fmt.Errorf("has metadata.name %s, which %s", short(name), problems[0])
		}
		return name, nil
	default:
		return "", fmt.Errorf("has a metadata.name that is %s, not a string", typeName(name))
	}
}

// namespace returns the namespace that a child is to have, empty for a cluster-scoped one. It keeps children in the
// namespace of their parent, if that has one.
func (j *judge) namespace(kind ChildKind, metadata map[string]any) (string, error) {
	value, ok := metadata["namespace"].(string)
	if !ok && metadata["namespace"] != nil {
		return "", fmt.Errorf("has a metadata.namespace that is %s, not a string", typeName(metadata["namespace"]))
	}
	switch {
	case !kind.Namespaced && j.Namespace != "":
		return "", fmt.Errorf("is cluster-scoped, and its parent is in namespace %s", j.Namespace)
	case !kind.Namespaced && value != "":
		return "", fmt.Errorf("is cluster-scoped, and has namespace %s", short(value))
	case !kind.Namespaced:
		delete(metadata, "namespace")
		return "", nil
	case value == "" && j.Namespace == "":
		return "", errors.New("has no namespace, and its parent has none that it could take")
	case value == "":
		return j.Namespace, nil
	case j.Namespace != "" && value != j.Namespace:
		return "", fmt.Errorf("has namespace %s, and its parent is in %s", short(value), j.Namespace)
	}
	if problems := content.IsPathSegmentName(value); len(problems) > 0 {
		return "", fmt.Errorf("has namespace %s, which %s", short(value), problems[0])
	}
	return value, nil
}

// stringMap checks that labels and annotations are maps of strings. With a number among them, selectors would see none.
func stringMap(metadata map[string]any, field string) error {
	value := metadata[field]
	o, ok := value.(map[string]any)
	if !ok && value != nil {
		return fmt.Errorf("has metadata.%s that are %s, not an object", field, typeName(value))
	}
	for _, key := range slices.Sorted(maps.Keys(o)) {
		if _, ok := o[key].(string); !ok {
			return fmt.Errorf("has metadata.%s with %s, which is %s, not a string", field, short(key), typeName(o[key]))
		}
	}
	return nil
}

// describe names a child by what it has.
func describe(item any) string {
	o, _ := item.(map[string]any)
	metadata, _ := o["metadata"].(map[string]any)
	kind, _ := o["kind"].(string)
	name, _ := metadata["name"].(string)
	switch {
	case kind == "" && name == "":
		return ""
	case kind == "":
		return short(name)
	case name == "":
		return short(kind)
	default:
		return short(kind + " " + name)
	}
}
