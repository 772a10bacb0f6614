package decorator

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/cairn-dev/cairn/internal/metacontroller/apply"
)

// This file holds what is written to a decorated object itself. It is pure.

// edit is what an object is to have, whatever else it has.
type edit struct {
	labels, annotations map[string]string
	finalizers          []string
	// restate says that it should have this status as well.
	restate bool
	status  map[string]any
}

// editOf returns the edit that changes nothing.
func editOf(o *unstructured.Unstructured) *edit {
	return &edit{labels: o.GetLabels(), annotations: o.GetAnnotations(), finalizers: o.GetFinalizers()}
}

// patch returns the merge patch that brings the edit to an object. It holds UID and resourceVersion: it is refused if
// the object has changed, or was replaced, since the edit was made.
func (e *edit) patch(o *unstructured.Unstructured) ([]byte, error) {
	want := &unstructured.Unstructured{Object: maps.Clone(o.Object)}
	metadata, _ := o.Object["metadata"].(map[string]any)
	want.Object["metadata"] = maps.Clone(metadata)
	want.SetLabels(e.labels)
	want.SetAnnotations(e.annotations)
	want.SetFinalizers(e.finalizers)
	if e.restate {
		want.Object["status"] = e.status
	}
	return apply.Result{Object: want.Object}.Patch(o.Object)
}

// without returns finalizers without one of them.
func without(finalizers []string, name string) []string {
	return slices.DeleteFunc(slices.Clone(finalizers), func(f string) bool { return f == name })
}

// stated is a status that was written, and what the API server made of it: fields that a schema does not know are
// dropped, and a kind may have no status at all. It is not written again because of a dropped field.
type stated struct {
	wanted, kept any
}

// holds reports whether an object has the status that the hook asks for, as far as the API server keeps it. {} is a
// status: a hook may check whether there is one at all.
func (s stated) holds(o *unstructured.Unstructured, wanted map[string]any) bool {
	has := o.Object["status"]
	return has != nil && same(has, wanted) || s.wanted != nil && same(s.wanted, wanted) && same(has, s.kept)
}

// same reports whether two values are equal to the API server.
func same(a, b any) bool {
	was := map[string]any{"value": a}
	return len(apply.Result{Object: map[string]any{"value": b}}.Differences(was, 1)) == 0
}
