package check

import (
	"encoding/json"
	"strings"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/sandbox/check/content"
)

// This file compares children with what a hook wants, and reads parents and revisions of kinds that have no Go type.

// straysFrom says in what a child differs from what a hook wants: it was made from something else, by what it says itself,
// or somebody has changed it since.
func straysFrom(child, wanted client.Object) string {
	want := askedPart(asTree(wanted))
	var applied map[string]any
	if json.Unmarshal([]byte(child.GetAnnotations()[lastApplied]), &applied) == nil {
		applied = askedPart(applied)
		if s := content.Missing("applied", want, applied); s != "" {
			return s
		}
		if encode(applied) != encode(want) {
			return "more was applied than is wanted: " + encode(applied)
		}
	}
	return strings.TrimPrefix(content.Missing("", want, content.Tree(child)), ".")
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

// patchOf is what a revision holds of its parent.
func patchOf(revision client.Object) map[string]any {
	patch, _ := asTree(revision)["parentPatch"].(map[string]any)
	return patch
}

// asTree is the content of an object, which nobody may change.
func asTree(o client.Object) map[string]any {
	if u, ok := o.(*unstructured.Unstructured); ok {
		return u.Object
	}
	return content.Tree(o)
}

func int64At(o client.Object, path ...string) int64 { return number(content.At(asTree(o), path)) }

func number(v any) int64 {
	switch n := v.(type) {
	case int64:
		return n
	case float64:
		return int64(n)
	}
	return 0
}

// encode is a tree as JSON, keys sorted, empty values left out.
func encode(v any) string { return exact(content.Prune(v)) }

// exact is a tree as JSON, keys sorted. An empty value is not the same as none: the API server keeps it in what a schema
// preserves, and a hook may ask.
func exact(v any) string {
	encoded, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(encoded)
}

// floats is a tree as encoding/json reads it.
func floats(v any) (out any) {
	encoded, err := json.Marshal(v)
	if err != nil || json.Unmarshal(encoded, &out) != nil {
		return nil
	}
	return out
}
