package content

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// This file compares children with what a hook wants, and reads parents and revisions of kinds that have no Go type.

// LastApplied is the annotation in which a child carries what was asked for when it was written last.
const LastApplied = "metacontroller.k8s.io/last-applied-configuration"

// decoratedBy is the annotation of what a DecoratorController attached.
const decoratedBy = "metacontroller.k8s.io/decorator-controller"

// StraysFrom says in what a child differs from what a hook wants: it was made from something else, by what it says
// itself, or somebody has changed it since.
func StraysFrom(child, wanted client.Object) string {
	want := askedPart(AsTree(wanted))
	var applied map[string]any
	if json.Unmarshal([]byte(child.GetAnnotations()[LastApplied]), &applied) == nil {
		applied = askedPart(applied)
		if s := Missing("applied", want, applied); s != "" {
			return s
		}
		if encode(applied) != encode(want) {
			return "more was applied than is wanted: " + encode(applied)
		}
	}
	return strings.TrimPrefix(Missing("", want, Tree(child)), ".")
}

// askedPart is an object without what every answer may leave out.
func askedPart(o map[string]any) map[string]any {
	u := &unstructured.Unstructured{Object: o}
	u = u.DeepCopy()
	for _, path := range [][]string{
		{"apiVersion"},
		{"kind"},
		{"metadata", "namespace"},
		{"metadata", "creationTimestamp"},
		{"metadata", "annotations", decoratedBy}, // a DecoratorController's mark
		{"status"},
	} {
		unstructured.RemoveNestedField(u.Object, path...)
	}
	return u.Object
}

// PatchOf is what a revision holds of its parent.
func PatchOf(revision client.Object) map[string]any {
	patch, _ := AsTree(revision)["parentPatch"].(map[string]any)
	return patch
}

// AsTree is the content of an object, which nobody may change.
func AsTree(o client.Object) map[string]any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return Tree(o)
}

// Condition is the condition of a type that the status of an object has, nil if it has none.
func Condition(o client.Object, kind string) map[string]any {
	list, _ := At(AsTree(o), []string{"status", "conditions"}).([]any)
	for _, item := range list {
		if c, _ := item.(map[string]any); c != nil && c["type"] == kind {
			return c
		}
	}
	return nil
}

// Int64At is the whole number at a path of an object, 0 if there is none.
func Int64At(o client.Object, path ...string) int64 { return Number(At(AsTree(o), path)) }

// Number is a value as a whole number, 0 if it is none.
func Number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// encode is a tree as JSON, keys sorted, empty values left out.
func encode(v any) string { return Exact(Prune(v)) }

// Exact is a tree as JSON, keys sorted. An empty value is not the same as none: the API server keeps it in what a
// schema preserves, and a hook may ask.
func Exact(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// Floats is a tree as encoding/json reads it.
func Floats(v any) (out any) {
	encoded, err := json.Marshal(v)
	if err != nil || json.Unmarshal(encoded, &out) != nil {
		return nil
	}
	return out
}
