package history

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/labels"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/cairn-dev/cairn/internal/podtemplate"
	"github.com/cairn-dev/cairn/revision"
)

// This file reads the logs of controllers that nobody has told us of and whose revisions do not describe themselves, by
// what they have in common: apps/v1 ControllerRevisions that the parent controls, with a part of the parent in data and
// a hash in a label.

// Inferred returns the format of the log that revisions are, all those that one parent of a kind controls. children are
// the metadata of the objects of one kind that it controls, of which there may be none: a label says which revision
// they come from. The format is for reading a log and for going back, never for writing revisions. The error says why
// that cannot be: see [revision.Inferred].
func Inferred(
	parent schema.GroupVersionKind, revisions []appsv1.ControllerRevision,
	childKind schema.GroupVersionKind, children []metav1.PartialObjectMetadata,
) (*Apps, error) {
	data := make([][]byte, 0, len(revisions))
	for i := range revisions {
		data = append(data, revisions[i].Data.Raw)
	}
	target, err := revision.Inferred(podtemplate.Normal, data...)
	if err != nil {
		return nil, fmt.Errorf("read the revisions of a %s: %w", parent.Kind, err)
	}
	f := &Apps{
		Parent:     parent,
		Versioned:  target,
		HashLabel:  hashLabel(revisions),
		Foreign:    true,
		SelectorOf: func(client.Object) (labels.Selector, error) { return labels.Everything(), nil },
		NewParent: func() client.Object {
			out := &unstructured.Unstructured{}
			out.SetGroupVersionKind(parent)
			return out
		},
	}
	if len(children) > 0 {
		f.Children, f.ChildLabel = []schema.GroupVersionKind{childKind}, f.childLabel(revisions, children)
	}
	return f, nil
}

// hashLabel returns the label in which revisions have the end of their names, or all of it.
func hashLabel(revisions []appsv1.ControllerRevision) string {
	for i := range revisions {
		r := &revisions[i]
		is := func(value string) bool {
			return value != "" && (r.Name == value || strings.HasSuffix(r.Name, "-"+value))
		}
		if is(r.Labels[appsv1.ControllerRevisionHashLabelKey]) {
			return appsv1.ControllerRevisionHashLabelKey
		}
		for _, key := range slices.Sorted(maps.Keys(r.Labels)) {
			if is(r.Labels[key]) {
				return key
			}
		}
	}
	return appsv1.ControllerRevisionHashLabelKey
}

// childLabel returns the label in which the most children have the name or the hash of a revision.
func (f *Apps) childLabel(revisions []appsv1.ControllerRevision, children []metav1.PartialObjectMetadata) string {
	known := map[string]bool{}
	for i := range revisions {
		known[revisions[i].Name] = true
		if hash := revisions[i].Labels[f.HashLabel]; hash != "" {
			known[hash] = true
		}
	}
	count := map[string]int{}
	for i := range children {
		for key, value := range children[i].Labels {
			if known[value] {
				count[key]++
			}
		}
	}
	best := f.HashLabel
	for _, key := range slices.Sorted(maps.Keys(count)) {
		if count[key] > count[best] {
			best = key
		}
	}
	return best
}
